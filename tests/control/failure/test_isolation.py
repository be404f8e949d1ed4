"""A query that fails is taken out, and the others go on as if nothing had happened."""

from __future__ import annotations

import traceback
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import millstream as ms
from millstream.config import Options
from millstream.control.mill.local import LocalMill
from millstream.control.mill.restarting import start_again
from millstream.errors import MillstreamError, OperatorError
from tests.tries import tries

MOST = (1 << 63) - 1
STREAMS = f"""
    CREATE STREAM s (k BIGINT, v BIGINT, ts BIGINT) ORDER BY ts;
    CREATE STREAM r (k BIGINT, v BIGINT, ts BIGINT) ORDER BY ts;
    CREATE STREAM d WITH (on_overflow = 'bad') AS SELECT k, v * {MOST} AS p, ts FROM s
"""
HEALTHY = {
    "plain": "SELECT k, v FROM s WHERE v > 2",
    "shown": "SELECT k + 1 AS k, ts FROM s",
    "counts": "SELECT k, COUNT(*) AS n, window_end FROM s [RANGE 10] GROUP BY k",
    "joined": "SELECT s.k, s.ts, r.ts AS rts FROM s [RANGE 5], r [RANGE 5] WHERE s.k = r.k",
    "total": "SELECT SUM(n) AS n, window_end FROM (SELECT k, COUNT(*) AS n, window_end FROM s [RANGE 10] GROUP BY k) t "
    "[RANGE 10] ",
    "diverted": "SELECT k, p FROM d",
    "others": "SELECT k, MAX(v) AS v, window_end FROM r [RANGE 10] GROUP BY k",
}
FAILING = {
    "product": f"SELECT k * {MOST} AS p FROM s",
    "filter": f"SELECT k FROM s WHERE v * {MOST} > 1",
    "diverted sum": "SELECT SUM(p) AS p, window_end FROM d [RANGE 10]",
    "group": f"SELECT k, COUNT(*) * {MOST} AS n, window_end FROM s [RANGE 10] GROUP BY k",
    "pairs": f"SELECT s.k FROM s [RANGE 5], r [RANGE 5] WHERE s.k = r.k AND s.v * {MOST} > r.v",
    "chain": f"SELECT SUM(n * {MOST}) AS n, window_end FROM "
    "(SELECT k, COUNT(*) AS n, window_end FROM s [RANGE 10] GROUP BY k) t [RANGE 10]",
}
rows = st.lists(st.tuples(st.sampled_from("sr"), st.integers(0, 3), st.integers(0, 4), st.integers(0, 4)), max_size=30)


def run(
    names: Sequence[str], batches: Sequence[Any], mill: LocalMill, *, restarts: frozenset[int] = frozenset()
) -> Any:
    queries = HEALTHY | FAILING
    mill.execute(STREAMS)
    found: dict[str, list[Any]] = {name: [] for name in names}
    for name in names:
        mill.add_query(name, queries[name])
    times = {"s": 0, "r": 0}
    for number, batch in enumerate(batches):
        for stream, k, v, step in batch:
            times[stream] += step
            mill.insert(stream, [(k, v, times[stream])])
        try:
            mill.batch()
        except OperatorError:
            assert not any(query.failure is None for query in mill.queries.values())
        for name in names:
            if mill.queries[name].failure is None:
                found[name] += mill.take_rows(name).rows()
                found[name] += [str(p) for p in mill.take_punctuations(name)]
        if number in restarts:
            mill = mill.restarted()
    failed = {name for name, query in mill.queries.items() if query.failure is not None}
    return {name: sorted(held, key=str) for name, held in found.items()}, failed


@settings(max_examples=tries(80), deadline=None)
@given(
    healthy=st.sets(st.sampled_from([*HEALTHY]), min_size=1),
    failing=st.sets(st.sampled_from([*FAILING]), min_size=1),
    batches=st.lists(rows, min_size=1, max_size=5),
    shards=st.integers(1, 3),
    restarts=st.frozensets(st.integers(0, 4), max_size=2),
    order=st.randoms(use_true_random=False),
)
def test_others_are_not_disturbed(
    healthy: set[str], failing: set[str], batches: Any, shards: int, restarts: frozenset[int], order: Any
) -> None:
    names = sorted(healthy | failing)
    order.shuffle(names)
    wanted, none = run([name for name in names if name in healthy], batches, LocalMill(Options(shards=shards)))
    found, failed = run(names, batches, LocalMill(Options(shards=shards)), restarts=restarts)
    assert not none and failed <= failing
    assert {name: found[name] for name in healthy} == wanted


@settings(max_examples=tries(60), deadline=None)
@given(
    healthy=st.sets(st.sampled_from([*HEALTHY]), min_size=1, max_size=3),
    failing=st.sets(st.sampled_from([*FAILING]), min_size=1),
    batches=st.lists(rows, min_size=1, max_size=4),
    shards=st.integers(1, 2),
    reopened=st.frozensets(st.integers(0, 3)),
)
def test_a_checkpoint_is_not_poisoned(
    healthy: set[str],
    failing: set[str],
    batches: Any,
    shards: int,
    reopened: frozenset[int],
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    names = sorted(healthy | failing)
    wanted, _ = run(sorted(healthy), batches, LocalMill(Options(shards=shards)))
    folder = tmp_path_factory.mktemp("kept")
    found: dict[str, list[Any]] = {name: [] for name in names}
    mill = LocalMill(Options(shards=shards), folder)
    mill.execute(STREAMS)
    for name in names:
        mill.add_query(name, (HEALTHY | FAILING)[name])
    times = {"s": 0, "r": 0}
    for number, batch in enumerate(batches):
        for stream, k, v, step in batch:
            times[stream] += step
            mill.insert(stream, [(k, v, times[stream])])
        mill.batch()
        for name in healthy:
            found[name] += mill.take_rows(name).rows()
            found[name] += [str(p) for p in mill.take_punctuations(name)]
        if number in reopened:
            failed = {name: query.failure.text for name, query in mill.queries.items() if query.failure}
            mill.close()
            mill = LocalMill(Options(shards=shards), folder)
            assert failed == {name: query.failure.text for name, query in mill.queries.items() if query.failure}
    assert {name: sorted(found[name], key=str) for name in healthy} == wanted
    mill.close()


def test_the_report(tmp_path: Path) -> None:
    mill = LocalMill(Options(shards=2), tmp_path)
    mill.execute(STREAMS)
    mill.add_query("fine", "SELECT k FROM s")
    mill.add_query("bad", "SELECT k * v AS p FROM s")
    mill.insert("s", [(1, 1, 1)])
    mill.batch()
    mill.insert("s", [(2, MOST, 2), (3, 1, 3)])
    mill.batch()
    assert mill.take_rows("fine").rows() == [(1,), (2,), (3,)]
    assert mill.take_rows("bad").rows() == [(1,)]
    with pytest.raises(OperatorError) as caught:
        mill.take_rows("bad")
    assert caught.value.row == f"(k = 2, v = {MOST}, ts = 2)"
    assert "sink: memory" in caught.value.detail and "start()" in caught.value.hint
    shown = mill.execute("SHOW QUERIES")
    assert shown.splitlines()[0] == "fine: 3 rows out"
    assert shown.splitlines()[1].startswith("bad: 1 row out, failed in batch ") and "M6053: operator Project-" in shown
    with pytest.raises(MillstreamError, match="M2091"):
        mill.add_query("bad", "SELECT k FROM s")
    assert "missed 2 rows of s since batch" in start_again(mill, "bad")
    mill.insert("s", [(7, 3, 4)])
    mill.batch()
    assert mill.take_rows("bad").rows() == [(21,)]
    mill.close()
    mill = LocalMill(Options(shards=2), tmp_path)
    mill.insert("s", [(7, 4, 5)])
    mill.batch()
    assert mill.take_rows("bad").rows() == [(28,)]
    mill.execute("DROP QUERY bad")
    assert [*mill.queries] == ["fine"]
    mill.close()


def test_the_last_query_stops_the_job_as_it_is(tmp_path: Path) -> None:
    """The batch is run again, by the next start."""
    mill = LocalMill(Options(), tmp_path)
    mill.execute(STREAMS)
    mill.add_query("bad", "SELECT k * v AS p FROM s")
    mill.insert("s", [(2, MOST, 2)])
    with pytest.raises(OperatorError):
        mill.batch()
    mill.close()
    mill = LocalMill(Options(), tmp_path)
    with pytest.raises(OperatorError):
        mill.batch()
        mill.sync()
    mill.close()


@pytest.mark.parametrize("stage", ["", "PHYSICAL ", "CONTRACT "])
def test_a_failed_query_is_explained(stage: str) -> None:
    mill = LocalMill()
    run(["plain", "product"], [[("s", 3, 3, 1)]], mill)
    shown = mill.execute(f"EXPLAIN {stage}product")
    assert "Project" in shown and "failed in batch" in shown and "M6053" in shown


@pytest.mark.parametrize("others", [0, 1])
def test_a_kept_error_does_not_grow(others: int) -> None:
    """Each call raises a copy: neither its traceback nor notes of the caller are there the next time."""
    with ms.connect(local=True, contracts="off") as mill:
        mill.sql("CREATE STREAM s (k BIGINT)")
        query = mill.sql(f"SELECT k + {MOST} AS k FROM s").start()
        for _ in range(others):
            mill.sql("SELECT k FROM s").start()
        with pytest.raises(MillstreamError) if not others else nullcontext():
            mill.insert("s", [(1,)])
        lengths = set()
        for call in [query.take, query.punctuations, mill.check] * 3:
            try:
                call()
            except MillstreamError as error:
                lengths.add((call, len(traceback.format_exception(error)), *getattr(error, "__notes__", ())))
                error.add_note("mine")
        assert 1 <= len(lengths) <= 3
