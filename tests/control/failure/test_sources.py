"""A source that raises, and a query that cannot be built: only the queries concerned are taken out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import millstream as ms
from millstream.algebra.schema import Schema
from millstream.algebra.values import record
from millstream.config import Options
from millstream.control.mill.local import LocalMill
from millstream.control.mill.restarting import start_again
from millstream.errors import MillstreamError
from millstream.ingest.paged import SOURCES, SplitRows
from millstream.logical.nodes.distinct import Distinct
from millstream.logical.plan import Plan
from millstream.physical.plan.operators import build
from millstream.runtime.operator.contract import Operator
from millstream.runtime.operator.registry import Site

TROUBLE: dict[str, int] = {}
"""The method of the source that raises, and the place from which on."""


def raises(method: str, at: int) -> None:
    if at >= TROUBLE.get(method, 1 << 60):
        raise RuntimeError(f"{method} at {at}")


@record("counting_piece")
class CountingSplit:
    first: int
    last: int
    rows: int | None = None

    def read(self, columns: Sequence[str] | None = None) -> SplitRows:
        raises("read", self.first)
        numbers = range(self.first, self.last)
        frame = pl.DataFrame({"k": [n % 3 for n in numbers], "n": [*numbers]})
        return SplitRows(frame.select(columns) if columns else frame)


class Counting:
    """The numbers from 0 to 60, ten in a batch."""

    def start(self) -> dict[str, Any]:
        return {"n": 0}

    def latest(self, offset: dict[str, Any], now: int) -> dict[str, Any]:
        raises("latest", offset["n"])
        return {"n": min(60, offset["n"] + 10)}

    def splits(self, start: dict[str, Any], end: dict[str, Any], parallelism: int) -> list[CountingSplit]:
        raises("splits", start["n"])
        return [CountingSplit(n, n + 5) for n in range(start["n"], end["n"], 5)]

    def ended(self, offset: dict[str, Any]) -> bool:
        return offset["n"] == 60

    def behind(self, offset: dict[str, Any]) -> int | None:
        raises("behind", offset["n"])
        return 60 - offset["n"]


def opener(_name: str, _schema: Schema, _given: Mapping[str, str], _required: Sequence[str]) -> Counting:
    return Counting()


@pytest.fixture(autouse=True)
def _registered(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    TROUBLE.clear()
    known, names = SOURCES.get, SOURCES.names
    monkeypatch.setattr(SOURCES, "get", lambda name: opener if name == "counting" else known(name))
    monkeypatch.setattr(SOURCES, "names", lambda: [*names(), "counting"])
    yield
    TROUBLE.clear()


STREAMS = """
    CREATE STREAM good (k BIGINT, n BIGINT) ORDER BY n
        WITH (connector = 'csv', path = '{path}', once = true, max_rows_per_trigger = 10);
    CREATE STREAM bad (k BIGINT, n BIGINT) ORDER BY n WITH (connector = 'counting')
"""


def statements(folder: Path) -> str:
    path = folder / "good.csv"
    path.write_text("k,n\n" + "".join(f"{n % 3},{n}\n" for n in range(60)))
    return STREAMS.format(path=path)


@pytest.mark.parametrize("kept", [False, True])
@pytest.mark.parametrize("method", ["latest", "splits", "read", "behind"])
def test_its_readers_alone_fail(tmp_path: Path, method: str, kept: bool) -> None:
    mill = LocalMill(Options(shards=2), tmp_path / "kept" if kept else None)
    mill.execute(statements(tmp_path))
    mill.add_query("fine", "SELECT n FROM good")
    mill.add_query("counts", "SELECT k, COUNT(*) AS c, window_end FROM good [RANGE 10] GROUP BY k")
    mill.add_query("reader", "SELECT n FROM bad")
    mill.add_query("both", "SELECT good.n FROM good [RANGE 5], bad [RANGE 5] WHERE good.n = bad.n")
    TROUBLE[method] = 30
    mill.drain()
    assert sorted(mill.take_rows("fine").rows()) == [(n,) for n in range(60)]
    assert mill.take_rows("counts").height == 18
    assert mill.waiting() == {"good": 0} or method == "behind"
    if method == "behind":
        assert mill.queries["reader"].failure is None
        return
    found = sorted(mill.take_rows("reader").rows())
    assert found == [(n,) for n in range(30)]
    for name in ("reader", "both"):
        with pytest.raises(MillstreamError) as caught:
            mill.take_rows(name)
            mill.take_rows(name)
        assert caught.value.code == "M5047"
        assert caught.value.message == f"the source of stream 'bad' failed: RuntimeError: {method} at 30"
    if kept:
        mill.close()
        mill = LocalMill(Options(shards=2), tmp_path / "kept")
        assert mill.queries["reader"].failure is not None
        mill.drain()
    TROUBLE.clear()
    start_again(mill, "reader")
    mill.drain()
    assert sorted(mill.take_rows("reader").rows())[-1] == (59,)
    mill.close()


def test_a_query_that_cannot_be_built(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def failing(plan: Plan, site: Site) -> Operator:
        if isinstance(plan, Distinct):
            raise RuntimeError("no such function")
        return build(plan, site)

    mill = LocalMill(Options(), tmp_path)
    mill.execute("CREATE STREAM s (k BIGINT, ts BIGINT) ORDER BY ts")
    mill.add_query("fine", "SELECT k FROM s")
    monkeypatch.setattr("millstream.physical.plan.compile.build", failing)
    mill.add_query("bad", "SELECT DISTINCT k FROM s [RANGE 5] WHERE k < 5")
    mill.insert("s", [(1, 1)])
    mill.batch()
    failure = mill.queries["bad"].failure
    assert failure is not None
    assert failure.error.message == "the operators of query bad could not be built: RuntimeError: no such function"
    assert mill.take_rows("fine").rows() == [(1,)]
    mill.close()
    mill = LocalMill(Options(), tmp_path)
    mill.insert("s", [(2, 2)])
    mill.batch()
    assert mill.take_rows("fine").rows() == [(2,)]
    monkeypatch.undo()
    start_again(mill, "bad")
    mill.insert("s", [(3, 3)])
    mill.batch()
    assert mill.take_rows("bad").rows() == [(3,)]
    mill.close()


def test_the_python_api(tmp_path: Path) -> None:
    TROUBLE["read"] = 30
    with ms.connect(local=True, checkpoint=tmp_path / "kept") as mill:
        mill.sql(statements(tmp_path))
        fine = mill.sql("SELECT n FROM good").start(name="fine")
        bad = mill.sql("SELECT n FROM bad").start(name="reader")
        with pytest.raises(MillstreamError, match="M5047"):
            bad.await_end(timeout=20)
        assert fine.await_end(timeout=20)
        assert fine.running and not bad.running
        assert bad.error is not None and bad.error.code == "M5047"
        assert bad.progress().error == f"M5047: {bad.error.message}"
        mill.check()
        TROUBLE.clear()
        bad.start()
        assert bad.running and bad.error is None
        with pytest.raises(MillstreamError, match="M2091"):
            bad.start()
        assert bad.await_end(timeout=20)
        assert (59,) in bad.take().rows()
