"""A query that failed starts again with what its operators held: its results are those of an undisturbed run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import millstream as ms
from millstream.algebra.schema import Schema
from millstream.algebra.values import record
from millstream.config import Options
from millstream.control.mill.failures import Failures
from millstream.control.mill.local import LocalMill
from millstream.control.mill.restarting import start_again
from millstream.ingest.paged import SOURCES, SplitRows
from millstream.logical.nodes.select import Select
from millstream.logical.plan import Plan
from millstream.physical.plan import compile as compiling
from millstream.physical.plan.operators import build, build_pipeline
from millstream.runtime.operator.contract import Input, Operator, Output
from millstream.runtime.operator.registry import Site
from tests.tries import tries

MARKER = 999983
"""A constant in the queries that fail; so is a column named `marked`, which partial aggregates leave."""
ROWS, STEP = 120, 10
TROUBLE: dict[str, Any] = {}
"""Which operators raise: the lowest one, by the height of its plan, and the shard; or the stream whose source does."""


@record("numbered_piece")
class NumberedSplit:
    stream: str
    first: int
    last: int
    rows: int | None = None

    def read(self, columns: Sequence[str] | None = None) -> SplitRows:
        if TROUBLE.get("stream") == self.stream:
            raise RuntimeError(f"no rows from {self.first} on")
        numbers = range(self.first, self.last)
        late = [n - 25 if n % 17 == 5 else n for n in numbers]
        frame = pl.DataFrame({"k": [n * 7 % 5 for n in numbers], "n": late, "v": [n % 11 for n in numbers]})
        return SplitRows(frame.select(columns) if columns else frame)


class Numbered:
    """Some rows are late, a few in a batch."""

    def __init__(self, stream: str) -> None:
        self.stream = stream

    def start(self) -> dict[str, Any]:
        return {"n": 0}

    def latest(self, offset: dict[str, Any], now: int) -> dict[str, Any]:
        return {"n": min(ROWS, offset["n"] + STEP)}

    def splits(self, start: dict[str, Any], end: dict[str, Any], parallelism: int) -> list[NumberedSplit]:
        return [NumberedSplit(self.stream, n, min(n + 5, end["n"])) for n in range(start["n"], end["n"], 5)]

    def ended(self, offset: dict[str, Any]) -> bool:
        return offset["n"] == ROWS


class Raising(Operator):
    """An operator that raises in place of a step while there is trouble."""

    def __new__(cls, inner: Operator, depth: int, shard: int) -> Any:
        process = inner.process

        def raising(inputs: Sequence[Input]) -> Output:
            lowest, where = TROUBLE.get("operator", (99, 0))
            if depth >= lowest and shard == where:
                raise RuntimeError("trouble")
            return process(inputs)

        inner.process = raising  # type: ignore[method-assign]
        return inner


def height(plan: Plan) -> int:
    return 1 + max(map(height, plan.inputs), default=-1)


def marked(plan: Plan) -> bool:
    selects = any(isinstance(part, Select) and str(MARKER) in part.describe() for part in plan.walk())
    return selects or any("marked" in part.schema.names for part in plan.walk())


def building(plan: Plan, site: Site) -> Operator:
    made = build(plan, site)
    return Raising(made, height(plan), site.number) if marked(plan) else made


def building_pipeline(chain: list[Plan]) -> Operator:
    made = build_pipeline(chain)
    return Raising(made, height(chain[0]), 0) if marked(chain[0]) else made


@pytest.fixture(autouse=True)
def _registered(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    def opener(name: str, _schema: Schema, _given: Mapping[str, str], _required: Sequence[str]) -> Numbered:
        return Numbered(name)

    known, names = SOURCES.get, SOURCES.names
    monkeypatch.setattr(SOURCES, "get", lambda name: opener if name == "numbered" else known(name))
    monkeypatch.setattr(SOURCES, "names", lambda: [*names(), "numbered"])
    monkeypatch.setattr(compiling, "build", building)
    monkeypatch.setattr(compiling, "build_pipeline", building_pipeline)
    yield
    TROUBLE.clear()


STREAMS = "".join(
    f"CREATE STREAM {name} (k BIGINT, n BIGINT, v BIGINT) ORDER BY n WITH (connector = 'numbered');" for name in "ab"
)
QUERIES = {
    "window": f"SELECT k, COUNT(*) AS c, SUM(v) AS marked, window_end FROM a [RANGE 37] WHERE n <> {MARKER} GROUP BY k",
    "slide": f"SELECT k, MAX(v) AS marked, window_end FROM a [RANGE 40 SLIDE 15] WHERE n <> {MARKER} GROUP BY k",
    "join": f"""SELECT a.k, a.n, b.n AS o FROM a [RANGE 20], b [RANGE 30]
        WHERE a.k = b.k AND a.v <> b.v AND a.n <> {MARKER}""",
    "distinct": f"SELECT DISTINCT k, v FROM a [RANGE 33] WHERE n <> {MARKER}",
    "groups": f"SELECT k, v, n, COUNT(*) AS marked FROM a WHERE n <> {MARKER} GROUP BY k, v, n",
    "rows": f"SELECT k, v, n FROM a WHERE n <> {MARKER}",
    "late": f"SELECT k, n FROM a__late WHERE n <> {MARKER}",
    "union": f"SELECT n, k FROM a WHERE n <> {MARKER} UNION ALL SELECT n, v FROM b",
    "stages": f"""SELECT marked, COUNT(*) AS groups, window_end FROM
        (SELECT k, COUNT(*) AS marked, window_end AS e FROM a [RANGE 20] WHERE n <> {MARKER} GROUP BY k) [RANGE 60]
        GROUP BY marked""",
    "top": f"""SELECT x.k, y.n FROM (SELECT k, n, v FROM a WHERE n <> {MARKER}) [RANGE 30] x,
        (SELECT DISTINCT k, v, n FROM b [RANGE 25]) [RANGE 30] y WHERE x.v = y.v""",
}
OTHERS = {
    "plain": "SELECT k, n FROM a",
    "counts": "SELECT k, COUNT(*) AS c, window_end FROM b [RANGE 30] GROUP BY k",
}


class Run:
    """A mill with some queries, driven batch by batch."""

    def __init__(self, folder: Path | None, select: str, shards: int) -> None:
        self.folder, self.shards = folder, shards
        self.found: dict[str, list[Any]] = {name: [] for name in (*OTHERS, "q")}
        self.mill = LocalMill(Options(shards=shards), folder)
        self.mill.execute(STREAMS)
        for name, text in {**OTHERS, "q": select}.items():
            self.mill.add_query(name, text)

    def steps(self, count: int) -> None:
        for _ in range(count):
            self.mill.jobs.step()
            self.take()

    def start_failed(self) -> None:
        for name in self.mill.failures.of():
            assert start_again(self.mill, name).endswith("and missed no rows")

    def take(self) -> None:
        for name, rows in self.found.items():
            query = self.mill.queries[name]
            rows += query.output.take_rows().rows()

    def reopen(self) -> None:
        self.take()
        self.mill.close()
        self.mill = LocalMill(Options(shards=self.shards), self.folder)

    def finish(self) -> dict[str, list[Any]]:
        self.mill.drain()
        self.take()
        self.mill.close()
        return {name: sorted(rows) for name, rows in self.found.items()}


@cache
def undisturbed(select: str, shards: int) -> dict[str, list[Any]]:
    with TemporaryDirectory() as folder:
        return Run(Path(folder), select, shards).finish()


@settings(max_examples=tries(40), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_it_goes_on_with_what_it_held(data: st.DataObject) -> None:
    name, shards = data.draw(st.sampled_from(sorted(QUERIES))), data.draw(st.sampled_from([1, 2]))
    operators = [("operator", (depth, shard)) for depth in range(1, 4) for shard in range(shards)]
    trouble = data.draw(st.sampled_from([*operators, ("stream", "a")]))
    before, failed, after = (data.draw(st.integers(0, most)) for most in (9, 4, 4))
    reopened, again = data.draw(st.sampled_from(["", "failed", "started"])), data.draw(st.booleans())
    wanted = undisturbed(QUERIES[name], shards)
    with TemporaryDirectory() as folder:
        run = Run(Path(folder), QUERIES[name], shards)
        run.steps(before)
        TROUBLE.update([trouble])
        run.steps(failed + 1)
        if reopened == "failed":
            run.reopen()
        if again:  # the cause is still there
            run.start_failed()
            run.steps(1)
        TROUBLE.clear()
        run.start_failed()
        run.steps(after)
        if reopened == "started":
            run.reopen()
        assert run.finish() == wanted
        assert not [*Path(folder).glob("*/parked/*")]


@pytest.mark.parametrize("name", ["window", "stages", "join"])
def test_the_driver_ends_before_the_shards_are_asked(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ending(*_: object) -> None:
        raise KeyboardInterrupt

    wanted = undisturbed(QUERIES[name], 2)
    run = Run(tmp_path, QUERIES[name], 2)
    run.steps(5)
    TROUBLE["operator"] = 1, 0
    with monkeypatch.context() as context, pytest.raises(KeyboardInterrupt):
        context.setattr(Failures, "park", ending)
        run.steps(5)
    run.reopen()
    assert run.mill.queries["q"].failure is not None
    run.steps(2)
    TROUBLE.clear()
    run.start_failed()
    assert run.finish() == wanted


class Sinking:
    """A sink that raises in the third batch that it is given, and not again."""

    def __init__(self) -> None:
        self.rows: list[Any] = []
        self.writes = 0

    def __call__(self, _batch: int, rows: pl.DataFrame) -> None:
        self.writes += 1
        if self.writes == 3:
            raise ValueError("no room")
        self.rows += rows.rows()


@pytest.mark.parametrize("kept", [False, True])
@pytest.mark.parametrize("name", ["window", "stages", "join", "groups"])
def test_a_query_that_its_sink_has_stopped(name: str, kept: bool, tmp_path: Path) -> None:
    """It goes on after the batch whose results are spooled, also in memory."""
    wanted, sink = undisturbed(QUERIES[name], 2), Sinking()
    with ms.connect(local=True, checkpoint=tmp_path if kept else None, shards=2) as mill:
        mill.sql(STREAMS)
        with mill.together():
            other = mill.sql(OTHERS["plain"]).start(name="plain")
            query = mill.sql(QUERIES[name]).start(sink, name="q", on_error="stop")
        assert mill.await_end()
        assert query.error is not None and sorted(other.take().rows()) == wanted["plain"]
        query.start()
        assert mill.await_end()
    assert sorted(sink.rows) == wanted["q"]


def test_too_much_to_be_parked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("millstream.physical.shard.parking.MOST_BYTES", 100)
    run = Run(tmp_path, QUERIES["window"], 2)
    run.steps(5)
    TROUBLE["operator"] = 1, 0
    run.steps(5)
    TROUBLE.clear()
    assert start_again(run.mill, "q").endswith("and missed no rows; what its operators held is lost")
    run.finish()


def test_in_memory_the_start_says_what_is_lost() -> None:
    run = Run(None, QUERIES["window"], 2)
    run.steps(5)
    TROUBLE["operator"] = 1, 0
    run.steps(5)
    TROUBLE.clear()
    assert start_again(run.mill, "q").endswith("and missed no rows; what its operators held is lost")
    run.finish()


def test_a_dropped_query_leaves_nothing(tmp_path: Path) -> None:
    run = Run(tmp_path, QUERIES["window"], 2)
    run.steps(5)
    TROUBLE["operator"] = 1, 0
    run.steps(5)
    assert [*tmp_path.glob("*/parked/*")]
    run.mill.execute("DROP QUERY q")
    assert not [*tmp_path.glob("*/parked/*")]
    run.mill.close()
