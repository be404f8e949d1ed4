"""Queries that prod themselves get the same answers wherever their stream comes from, at any cut and on any shards."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

import millstream as ms
from tests.tries import tries

ORDERS = ("ORDER BY ts", "WATERMARK FOR ts AS ts - 6")
EARLY = ("EVERY 7", "EVERY 10", "AT 60 %", "3 BEFORE END", "AT 100 %")
WINDOWS = ("[RANGE 10]", "[RANGE 20 SLIDE 10]", "[RANGE 9 SLIDE 6]")
QUERIES = (
    "SELECT window_end, k, COUNT(*) AS n, SUM(v) AS total, finality, revision FROM s {window} GROUP BY k",
    "SELECT window_end, MAX(n) AS n, finality, revision "
    "FROM (SELECT k, COUNT(*) AS n FROM s [RANGE 5] GROUP BY k) {window}",
)
Rows = list[tuple[int, int, int]]


def pages(chance: random.Random, *, ordered: bool) -> list[Rows]:
    """Tuples of a stream, cut at random; time leaps now and then."""
    time, made = chance.randint(0, 30), list[Rows]()
    for _ in range(chance.randint(1, 4)):
        page: Rows = []
        for _ in range(chance.randint(1, 12)):
            time += chance.choice((0, 1, 1, 2, 5, 13, 48))
            page.append((chance.randint(1, 4), chance.randint(0, 9), time if ordered else time - chance.randint(0, 5)))
        made.append(page)
    return made


def fed(order: str, text: str, given: list[Rows], shards: int) -> list[tuple[object, ...]]:
    with ms.connect(local=True, shards=shards, contracts="off") as mill:
        mill.sql(f"CREATE STREAM s (k BIGINT, v BIGINT, ts BIGINT) {order}")
        query, rows = mill.sql(text).start(), list[tuple[object, ...]]()
        for page in given:
            mill.insert("s", page)
            rows += query.take().rows()
        return sorted(rows, key=repr)


def read(folder: Path, order: str, text: str, given: list[Rows], shards: int) -> list[tuple[object, ...]]:
    folder.mkdir()
    with ms.connect(local=True, shards=shards, contracts="off") as mill:
        source = f"WITH (connector = 'csv', path = '{folder}')"
        mill.sql(f"CREATE STREAM s (k BIGINT, v BIGINT, ts BIGINT) {order} {source}")
        query, rows = mill.sql(text).start(), list[tuple[object, ...]]()
        for number, page in enumerate(given):
            lines = "".join(f"{k},{v},{ts}\n" for k, v, ts in page)
            (folder / f"{number:03}.csv").write_text(f"k,v,ts\n{lines}")
            rows += query.take().rows()
        return sorted(rows, key=repr)


@pytest.mark.parametrize("seed", range(tries(12)))
def test_fed_or_read(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    order, early = chance.choice(ORDERS), chance.choice(EARLY)
    if early == "AT 100 %" and order == ORDERS[0]:
        early = "EVERY 7"
    text = f"{chance.choice(QUERIES).format(window=chance.choice(WINDOWS))} EMIT EARLY {early}"
    given = pages(chance, ordered=order == ORDERS[0])
    whole = [[row for page in given for row in page]]
    expected = fed(order, text, whole, 1)
    assert fed(order, text, given, 3) == expected, (order, text, given)
    assert read(tmp_path / "one", order, text, given, 1) == expected, (order, text, given)
    assert read(tmp_path / "three", order, text, given, 3) == expected, (order, text, given)
    assert read(tmp_path / "whole", order, text, whole, 2) == expected, (order, text, given)


def test_rows_that_nobody_wants_pass_marks(tmp_path: Path) -> None:
    """They are left out where the stream is read, and still move its time."""
    page: Rows = [(1, 1, 2), (2, 5, 6), (1, 1, 11), (2, 5, 12), (1, 1, 17), (1, 1, 25), (2, 5, 26), (1, 1, 44)]
    text = f"{QUERIES[0].format(window='[RANGE 20]')} EMIT EARLY EVERY 10"
    found = []
    for source in ("", f"WITH (connector = 'csv', path = '{tmp_path}')"):
        with ms.connect(local=True, shards=2, contracts="off") as mill:
            mill.sql(f"CREATE STREAM s (k BIGINT, v BIGINT, ts BIGINT) ORDER BY ts {source}")
            query = mill.sql(text).start()
            query.feedback("~[k = 1]")
            if source:
                lines = "".join(f"{k},{v},{ts}\n" for k, v, ts in page)
                (tmp_path / "1.csv").write_text(f"k,v,ts\n{lines}")
            else:
                mill.insert("s", page)
            found.append(sorted(query.take().rows(), key=repr))
    early = [(20, 2, 1, 5, "early", 1), (20, 2, 2, 10, "early", 2)]
    final = [(20, 2, 2, 10, "final", 3), (40, 2, 1, 5, "early", 1), (40, 2, 1, 5, "final", 2)]
    assert found == [[*early, *final]] * 2


def test_an_altered_period_reaches_the_tasks_that_read(tmp_path: Path) -> None:
    """A query that is dropped leaves nothing for the next one of its name."""
    with ms.connect(local=True, shards=2, contracts="off") as mill:
        source = f"WITH (connector = 'csv', path = '{tmp_path}')"
        mill.sql(f"CREATE STREAM s (k BIGINT, ts BIGINT) ORDER BY ts {source}")
        text = "CREATE QUERY q AS SELECT window_end, COUNT(*) AS n, finality FROM s [RANGE 100] EMIT EARLY EVERY"
        query = mill.sql(f"{text} 50")
        (tmp_path / "1.csv").write_text("k,ts\n1,1\n2,20\n3,51\n")
        assert query.take().rows() == [(100, 2, "early")]
        mill.sql("ALTER QUERY q EMIT EARLY EVERY 20")
        (tmp_path / "2.csv").write_text("k,ts\n1,60\n2,79\n3,95\n")
        assert query.take().rows() == [(100, 3, "early"), (100, 5, "early")]
        mill.sql("DROP QUERY q")
        query = mill.sql(f"{text} 40")
        (tmp_path / "3.csv").write_text("k,ts\n1,101\n2,119\n3,121\n")
        assert query.take().rows() == [(200, 2, "early")]
