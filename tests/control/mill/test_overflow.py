"""Values that do not fit stop the query with an error that names the query, the operator and the values."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.config import Options
from millstream.control.job.jobs import LocalJobs
from millstream.control.mill import LocalMill
from millstream.control.mill.base import Mill
from millstream.errors import OperatorError
from tests.tries import tries

MOST = (1 << 63) - 1
STREAM = "CREATE STREAM s (ts BIGINT, k BIGINT, v BIGINT) ORDER BY ts"


def error_of(query: str, lines: list[str], shards: int = 1, folder: Path | None = None, streams: str = STREAM) -> str:
    """The message of the error that stops the query on these lines."""
    mill = Mill(LocalJobs(folder, shards=shards), options=Options(shards=shards))
    mill.execute(f"{streams}; CREATE QUERY q AS {query}")
    for line in lines:
        mill.feed_line("s", line)
    with pytest.raises(OperatorError) as caught:
        mill.batch()
    assert caught.value.code == "M6053"
    return caught.value.message


PRODUCT = f"(k * v) does not fit BIGINT with k = 2, v = {MOST}"


@pytest.mark.parametrize("shards", [1, 3])
def test_a_projection_and_a_selection(shards: int, tmp_path: Path) -> None:
    lines = ["1 | 1 | 1", f"2 | 2 | {MOST}", "3 | 1 | 1"]
    for number, query in enumerate(("SELECT k * v AS p FROM s", "SELECT k FROM s WHERE k * v > 1")):
        message = error_of(query, lines, shards)
        assert message.startswith("operator Project-") and " of query q failed" in message
        assert message.endswith(PRODUCT)
        kept = error_of(query, lines, shards, tmp_path / str(number))
        assert f"of query q failed on a row of stream s (ts = 2, k = 2, v = {MOST}): (k * v) does not fit" in kept


@pytest.mark.parametrize("shards", [1, 3])
def test_a_sum_names_its_group_and_window(shards: int, tmp_path: Path) -> None:
    lines = [f"1 | 2 | {MOST}", "2 | 1 | 7", "3 | 2 | 1", "4 | 2 | 4", "20 | 1 | 1"]
    for folder in (None, tmp_path):
        message = error_of("SELECT k, SUM(v) AS t FROM s [RANGE 10] GROUP BY k", lines, shards, folder)
        assert message.endswith(f"failed: SUM(v) does not fit BIGINT: {MOST + 5}, group (k = 2), window [0, 10)")
        assert " of query q " in message


HAVING = ("COUNT(*) < {c}", "COUNT(*) < {c} AND SUM(v) > {c}", "COUNT(*) > {c} OR SUM(v) > {c}", "SUM(v) > {c}")


@settings(max_examples=tries(120), deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 3), st.sampled_from([MOST, 1 << 62, 1, -5, -MOST])), max_size=12),
    st.sampled_from(HAVING),
    st.integers(0, 4),
    st.booleans(),
    st.sampled_from([1, 3]),
)
def test_a_sum_counts_where_a_row_uses_it(
    rows: list[tuple[int, int]], having: str, c: int, selected: bool, shards: int
) -> None:
    groups: dict[int, list[int]] = {}
    for k, v in rows:
        groups.setdefault(k, []).append(v)
    wanted, used = [], False
    for k, values in groups.items():
        n, total = len(values), sum(values)
        by_count = {"COUNT(*) < {c}": n < c, "SUM(v) > {c}": None}.get(having, n < c if "AND" in having else n > c)
        decided = by_count is not None and ("AND" not in having or not by_count) and ("OR" not in having or by_count)
        kept = by_count if decided else total > c
        used |= abs(total) > MOST and (not decided or (bool(kept) and selected))
        if kept:
            wanted.append((k, total) if selected else (k,))
    mill = LocalMill(Options(shards=shards))
    mill.execute(STREAM)
    mill.add_query("q", f"SELECT k{', SUM(v) AS t' if selected else ''} FROM s GROUP BY k HAVING {having.format(c=c)}")
    mill.insert("s", [(number, *row) for number, row in enumerate(rows)])
    mill.feed_line("s", "[*, *, *]")
    if used:
        with pytest.raises(OperatorError, match=r"SUM\(v\) does not fit BIGINT"):
            mill.batch()
    else:
        mill.batch()
        assert sorted(mill.take_rows("q").rows()) == sorted(wanted)


def test_a_join() -> None:
    lines = [f"1 | 2 | {MOST}", "2 | 3 | 1", "20 | 1 | 1"]
    query = "SELECT a.k FROM s [RANGE 5] a, s [RANGE 5] b WHERE a.k = b.k AND a.v * b.k > 3"
    message = error_of(query, lines)
    assert message.startswith("operator WindowJoin-")
    assert message.endswith(f"(a.v * b.k) does not fit BIGINT with a.v = {MOST}, b.k = 2")


def test_a_tuple_without_a_partner_uses_nothing() -> None:
    mill = Mill(LocalJobs(), options=Options())
    mill.execute(f"""{STREAM}; CREATE STREAM r (ts BIGINT, k BIGINT, v BIGINT) ORDER BY ts;
        CREATE QUERY q AS SELECT s.ts FROM s [RANGE 5], r [RANGE 5] WHERE s.k = r.k AND s.v * 2 > 3 AND r.v * r.k > 3;
        CREATE QUERY padded AS SELECT s.ts, r.v FROM s [RANGE 5] LEFT JOIN r [RANGE 5] ON s.k = r.k AND r.v * 2 > 3""")
    for stream, line in (("s", f"1 | 2 | {MOST}"), ("s", "2 | 1 | 2"), ("s", "3 | 7 | 1"), ("r", f"2 | 3 | {MOST}")):
        mill.feed_line(stream, line)
    mill.feed_line("r", "4 | 1 | 5")
    mill.feed_line("r", "4 | 7 | 5")
    mill.feed_line("s", "20 | 8 | 9")
    mill.feed_line("r", "20 | 9 | 9")
    mill.batch()
    assert mill.take_rows("q").rows() == [(2,)]
    assert sorted(mill.take_rows("padded").rows(), key=str) == [(1, None), (2, 5), (3, 5)]


def test_a_sum_of_partial_results_made_where_the_stream_is_read(tmp_path: Path) -> None:
    rows = [f"1,2,{MOST}", "2,2,1", f"3,2,-{MOST}", f"11,2,{MOST}", "12,2,1", "40,1,1"]
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_text("\n".join(["ts,k,v", *rows]) + "\n")
    stream = f"{STREAM} WITH (connector = 'csv', path = '{tmp_path / 'in'}')"
    jobs = LocalJobs(tmp_path / "state", shards=2)
    mill = Mill(jobs, options=Options(shards=2), wall=True)
    mill.execute(f"{stream}; CREATE QUERY q AS SELECT k, SUM(v) AS t FROM s [RANGE 10] GROUP BY k")
    with pytest.raises(OperatorError) as caught:
        while jobs.step():
            pass
    assert caught.value.message.endswith(f"SUM(v) does not fit BIGINT: {MOST + 1}, group (k = 2), window [10, 20)")


def test_an_expression_below_a_partial_aggregate(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_text(f"ts,k,v\n1,1,1\n2,2,{MOST}\n40,1,1\n")
    stream = f"{STREAM} WITH (connector = 'csv', path = '{tmp_path / 'in'}')"
    jobs = LocalJobs(tmp_path / "state", shards=2)
    mill = Mill(jobs, options=Options(shards=2), wall=True)
    mill.execute(f"{stream}; CREATE QUERY q AS SELECT k, SUM(k * v) AS t FROM s [RANGE 10] GROUP BY k")
    with pytest.raises(OperatorError) as caught:
        while jobs.step():
            pass
    message = caught.value.message
    assert f"on a row of stream s (ts = 2, k = 2, v = {MOST}" in message
    assert message.endswith(f"(k * v) does not fit BIGINT with k = 2, v = {MOST}")


def test_chronicle_judges_only_the_pairs_that_it_may_use() -> None:
    streams = f"{STREAM}; CREATE STREAM r (ts BIGINT, k BIGINT, v BIGINT) ORDER BY ts"
    mill = Mill(LocalJobs(), options=Options())
    query = "SELECT s.ts AS a, r.ts AS b FROM s, r WHERE SEQ(s, r) MODE CHRONICLE AND s.v + r.v > 0"
    mill.execute(f"{streams}; CREATE QUERY q AS {query}")
    for stream, line in (("s", f"1 | 1 | {MOST - 5}"), ("s", "2 | 1 | 3"), ("r", "3 | 1 | 1"), ("r", "4 | 1 | 6")):
        mill.feed_line(stream, line)
    mill.feed_line("s", "9 | 1 | 1")
    mill.feed_line("r", "9 | 1 | -5")
    mill.batch()
    assert mill.take_rows("q").rows() == [(1, 3), (2, 4)]
