"""What a query sees that is added to others: `start` = now, beginning or shared."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

import millstream
from millstream.config import Options
from millstream.control.mill import LocalMill
from millstream.errors import BindError, OptionError, SqlSyntaxError
from millstream.lang import ast, parse

SUMS = "SELECT window_end, k, SUM(v) AS total FROM s [RANGE 10] GROUP BY k"
LATE = "SELECT ts, v FROM s__late"
INNER = SUMS.replace("window_end", "window_end AS e")
OVER_SUMS = f"SELECT total, COUNT(*) AS n FROM ({INNER}) x [RANGE 20 ON e] GROUP BY total"
"""Two stages, where there are several shards."""
Rows = dict[str, list[tuple[object, ...]]]


def write(folder: Path, name: str, rows: Iterable[tuple[int, int, int]]) -> None:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text("".join(f"{ts},{k},{v}\n" for ts, k, v in rows))


def declare(folder: Path) -> str:
    options = f"connector = 'csv', header = false, path = '{folder}'"
    return f"CREATE STREAM s (ts BIGINT, k BIGINT, v BIGINT) ORDER BY ts WITH ({options})"


def take(mill: LocalMill, rows: Rows) -> None:
    mill.drain()
    for name in mill.queries:
        rows.setdefault(name, []).extend(mill.take_rows(name).rows())


def numbers(first: int, last: int) -> list[tuple[int, int, int]]:
    return [(ts, ts % 3, 1) for ts in range(first, last)]


@pytest.mark.parametrize("shards", [1, 3])
@pytest.mark.parametrize("durable", [False, True])
def test_files_are_read_from_the_beginning_beside_a_running_query(tmp_path: Path, shards: int, durable: bool) -> None:
    folder, rows = tmp_path / "in", Rows()
    options, kept = Options.read(shards=shards), tmp_path / "kept" if durable else None

    def restarted(mill: LocalMill) -> LocalMill:
        if not durable:
            return mill.restarted()
        mill.close()
        return LocalMill(options, kept)

    write(folder, "1.csv", [*numbers(0, 25), (5, 0, 7)])
    mill = LocalMill(options, kept)
    mill.execute(f"{declare(folder)}; CREATE QUERY first AS {SUMS}; CREATE QUERY late AS {LATE}")
    take(mill, rows)
    mill.execute(f"CREATE QUERY later AS {SUMS}; CREATE QUERY heir WITH (start = 'shared') AS {SUMS}")
    mill.execute(f"CREATE QUERY again WITH (start = 'beginning') AS {SUMS}")
    mill.execute(f"CREATE QUERY late_again WITH (start = 'beginning') AS {LATE}")
    mill = restarted(mill)
    take(mill, rows)
    write(folder, "2.csv", numbers(25, 50))
    take(mill, rows)
    mill = restarted(mill)
    mill.execute("DROP QUERY first")
    write(folder, "3.csv", numbers(50, 75))
    take(mill, rows)
    assert sorted(rows["first"]) == sorted(row for row in rows["again"] if row[0] <= 40)
    assert rows["late"] == rows["late_again"] == [(5, 7)]
    assert sorted(rows["heir"]) == sorted(row for row in rows["again"] if row[0] >= 30)
    assert sorted(row for row in rows["later"] if row[0] == 30) == [(30, 0, 1), (30, 1, 2), (30, 2, 2)]
    assert sorted(row for row in rows["later"] if row[0] > 30) == sorted(row for row in rows["heir"] if row[0] > 30)
    assert mill.counts("s") == {"accepted": 75, "late": 1, "bad": 0}
    assert mill.waiting() == {"s": 0} and mill.execute("SHOW QUERIES").splitlines()[2].endswith("start = shared")
    mill.close()


@pytest.mark.parametrize("shards", [1, 3])
def test_every_stage_reads_from_the_beginning(tmp_path: Path, shards: int) -> None:
    folder, rows = tmp_path / "in", Rows()
    write(folder, "1.csv", numbers(0, 33))
    mill = LocalMill(Options.read(shards=shards))
    mill.execute(f"{declare(folder)}; CREATE QUERY first AS {OVER_SUMS}")
    take(mill, rows)
    mill.execute(f"CREATE QUERY again WITH (start = 'beginning') AS {OVER_SUMS}")
    mill.execute(f"CREATE QUERY heir WITH (start = 'shared') AS {OVER_SUMS}")
    take(mill, rows)
    mill = mill.restarted()
    mill.execute("DROP QUERY first")
    mill = mill.restarted()
    write(folder, "2.csv", numbers(33, 95))
    take(mill, rows)
    both = sorted([*rows["first"], *rows["heir"]])
    assert both == sorted(rows["again"]) and len(rows["heir"]) > len(rows["first"]) > 0


def test_a_generator_is_read_from_the_beginning() -> None:
    mill, rows = LocalMill(), Rows()
    options = "connector = 'nexmark', stream = 'bid', rate = 1000, events = 500"
    mill.execute(f"CREATE STREAM bids (auction BIGINT, price BIGINT, ts TIMESTAMP) ORDER BY ts WITH ({options})")
    counts = "SELECT window_end, COUNT(*) AS n FROM bids [RANGE 1 SECOND]"
    mill.execute(f"CREATE QUERY first AS {counts}")
    take(mill, rows)
    mill.advance(2_000_000)
    take(mill, rows)
    mill.execute(f"CREATE QUERY again WITH (start = 'beginning') AS {counts}")
    take(mill, rows)
    mill.advance(5_000_000)
    take(mill, rows)
    assert rows["first"] and sorted(rows["first"]) == sorted(rows["again"])


def test_explain_names_what_is_shared(tmp_path: Path) -> None:
    write(tmp_path / "in", "1.csv", numbers(0, 5))
    mill = LocalMill()
    mill.execute(f"{declare(tmp_path / 'in')}; CREATE QUERY one AS {SUMS}")
    assert mill.execute(f"EXPLAIN {SUMS}").endswith("\n\nshared with one: all operators")
    mill.drain()
    assert mill.execute(f"EXPLAIN {SUMS}").endswith("\n\nshared with one: Scan s")
    assert mill.execute(f"EXPLAIN PHYSICAL {SUMS}").endswith("\n\nshared with one: Scan s")
    mill.execute(f"CREATE QUERY two AS {SUMS}; CREATE QUERY three AS {SUMS}")
    assert mill.execute("EXPLAIN two").endswith("\n\nshared with one: Scan s\nshared with three: all operators")
    shared = mill.execute(f"EXPLAIN CREATE QUERY q WITH (start = 'shared') AS {SUMS}")
    assert shared.endswith("\n\nshared with one: all operators, with what they hold")
    alone = mill.execute("EXPLAIN CREATE QUERY q WITH (start = 'shared') AS SELECT DISTINCT v FROM s")
    assert "no equal query runs: it starts as with start = 'now'" in alone
    again = f"CREATE QUERY again WITH (start = 'beginning') AS {SUMS}"
    assert mill.execute(f"EXPLAIN {again}").endswith("\n\nreads s from the beginning, apart from other queries")
    mill.execute(again)
    assert mill.execute("EXPLAIN again").endswith("\n\nreads s from the beginning, apart from other queries")


def test_only_sources_that_can_be_read_again_are_read_from_the_beginning(tmp_path: Path) -> None:
    write(tmp_path / "in", "1.csv", numbers(0, 5))
    mill = LocalMill()
    mill.execute(
        f"{declare(tmp_path / 'in')}; CREATE STREAM closing (id BIGINT, at BIGINT) ORDER BY at CLOSES s (k) BY (id)"
    )
    with pytest.raises(BindError, match=r"M2104: stream 'closing' .* fed row by row \(line 1, column 30\)"):
        mill.execute(f"CREATE QUERY q WITH (start = 'beginning') AS {SUMS}")
    assert not mill.queries


def test_mistakes_in_a_start() -> None:
    mill = LocalMill()
    mill.execute("CREATE STREAM s (ts BIGINT, k BIGINT, v BIGINT) ORDER BY ts")
    with pytest.raises(OptionError, match="M6002: start cannot be 'begining'"):
        mill.add_query("q", SUMS, start="begining")
    with pytest.raises(SqlSyntaxError, match="did you mean 'shared'"):
        mill.execute(f"CREATE QUERY q WITH (start = share) AS {SUMS}")


def test_the_text_of_a_query_survives_another_name() -> None:
    (statement,) = parse(f"create  query q with (start = 'shared') as {SUMS} INTO none")
    assert isinstance(statement, ast.CreateQuery) and statement.body == f"{SUMS} INTO none"
    (again,) = parse(ast.query_text('an "odd" name', statement, "beginning"))
    assert isinstance(again, ast.CreateQuery) and again.name == 'an "odd" name' and again.start.how == "beginning"
    assert again.select == statement.select and again.into == "none" and again.body == statement.body


def test_a_query_is_stopped_started_again_and_recovered(tmp_path: Path) -> None:
    with millstream.connect(local=True, checkpoint=tmp_path / "kept") as mill:
        mill.sql("CREATE STREAM s (ts BIGINT, k BIGINT, v BIGINT) ORDER BY ts")
        query = mill.sql(f"CREATE QUERY q AS {SUMS}")
        other = mill.sql(SUMS).start(name="other")
        mill.insert("s", [(1, 1, 5)])
        query.stop()
        query.start()
        heir = mill.sql(SUMS).start(name="heir", start="shared")
        assert (query.name, heir.name, other.name) == ("q", "heir", "other")
    with millstream.connect(local=True, checkpoint=tmp_path / "kept") as mill:
        mill.insert("s", [(2, 1, 7), (11, 1, 0)])
        assert mill.query("q").take().rows() == [(10, 1, 7)]
        assert mill.query("heir").take().rows() == mill.query("other").take().rows() == [(10, 1, 12)]


@pytest.mark.parametrize("shards", [1, 3])
def test_a_query_is_told_what_it_misses(tmp_path: Path, shards: int, caplog: pytest.LogCaptureFixture) -> None:
    write(tmp_path / "in", "1.csv", numbers(0, 10))
    with millstream.connect(local=True, shards=shards) as mill:
        mill.sql(declare(tmp_path / "in").replace("path", "once = true, path"))
        mill.sql("CREATE STREAM fed (k BIGINT)")
        first = mill.sql("SELECT ts FROM s").start()
        assert mill.await_end(5) and first.take().height == 10 and not caplog.messages
        again = mill.sql("SELECT ts FROM s").start(start="beginning")
        assert mill.await_end(5) and again.take().height == 10 and not caplog.messages
        mill.insert("fed", [(1,)])
        first.stop()
        second = mill.sql("SELECT ts FROM s").start(name="second")
        both = mill.sql("SELECT k FROM fed UNION ALL SELECT ts FROM s").start(name="both")
        said = next(text for text in caplog.messages if "'both'" in text)
        assert said.startswith("M5051") and "hint" not in said  # 'fed' cannot be read again
        mill.insert("fed", [(2,), (3,)])
        assert mill.await_end(5) and second.take().height == 0 and sorted(both.take().rows()) == [(2,), (3,)]
        text = (
            "M5051: query 'second' begins after 10 rows of stream 's', which it does not see\n  hint: WITH (start = 'b"
        )
        assert caplog.messages[0].startswith(text) and "'both'" in caplog.messages[1] and len(caplog.messages) == 2
        assert [query.progress().rows_in for query in (again, second, both)] == [10, 0, 2]
        mill.punctuate("fed", "[*]")
        mill.sql("SELECT k FROM fed").start()
        assert "begins after 3 rows of stream 'fed'" in caplog.messages[2] and "has ended" in caplog.messages[2]
