"""A query that is added later on Spark: it sees what its streams accept from then on, or reads them again."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import millstream as ms

SUMS = "SELECT window_end, k, COUNT(*) AS n FROM s [RANGE 10] GROUP BY k"


def write(folder: Path, name: str, first: int, last: int) -> None:
    draft = folder.parent / name
    draft.write_text("".join(f"{ts},{ts % 2}\n" for ts in range(first, last)))
    draft.rename(folder / name)


@pytest.mark.timeout(900)
def test_files_read_from_now_and_from_the_beginning(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    write(folder, "1.csv", 0, 15)
    rows: dict[str, list[tuple[int, ...]]] = {}

    def read(mill: ms.Connection, accepted: int) -> None:
        """Wait until all queries have read that number of rows of the stream, then take their rows."""
        for query in mill.queries:
            while mill.mill.waiting() != {"s": 0} or mill.mill.counts("s")["accepted"] < accepted:
                mill.await_end(0.2)
            mill.mill.request_reports()
            rows.setdefault(query.name or "", []).extend(query.take().rows())

    with ms.connect(spark, checkpoint=tmp_path / "kept", shards=2) as mill:
        options = f"connector = 'csv', header = false, path = '{folder}'"
        mill.sql(f"CREATE STREAM s (ts BIGINT, k BIGINT) ORDER BY ts WITH ({options})")
        mill.sql(f"CREATE QUERY first AS {SUMS}")
        read(mill, 15)
        mill.sql(f"CREATE QUERY later AS {SUMS}; CREATE QUERY heir WITH (start = 'shared') AS {SUMS}")
        mill.sql(SUMS).start(name="again", start="beginning")
    with ms.connect(spark, checkpoint=tmp_path / "kept", shards=2) as mill:
        write(folder, "2.csv", 15, 35)
        read(mill, 35)
        assert "shared with first: all operators" in str(mill.sql("EXPLAIN heir"))
    whole = [(end, k, 5) for end in (10, 20, 30) for k in (0, 1)]
    assert sorted(rows["first"]) == sorted(rows["again"]) == whole
    assert sorted(rows["heir"]) == whole[2:]
    assert sorted(rows["later"]) == [(20, 0, 2), (20, 1, 3), *whole[4:]]
