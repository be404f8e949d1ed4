"""An operator that fails on a page: the error names it, the stream and the row, and nothing is lost."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from millstream.config import Options
from millstream.control.job.jobs import LocalJobs
from millstream.control.mill.base import Mill
from millstream.errors import MillstreamError, OperatorError
from millstream.physical.failure.transport import Reported, read_report
from millstream.physical.plan.partial import Partial
from millstream.runtime.join.window_join import WindowJoin
from millstream.runtime.operator.contract import Input, Output
from millstream.runtime.pipeline.pipeline import Pipeline

NEXMARK = "connector = 'nexmark', events = '4000', max_rows_per_trigger = '1000'"
BIDS = f"""CREATE STREAM bids (auction BIGINT, price BIGINT, ts TIMESTAMP) ORDER BY ts
           WITH ({NEXMARK}, stream = 'bid')"""
AUCTIONS = f"""CREATE STREAM auctions (id BIGINT, category BIGINT, ts TIMESTAMP) ORDER BY ts
               WITH ({NEXMARK}, stream = 'auction')"""
JOIN = """CREATE QUERY joined AS SELECT a.category, b.auction, b.price FROM bids b JOIN auctions a ON b.auction = a.id
          WHERE b.ts BETWEEN a.ts AND a.ts + INTERVAL '10' SECOND"""


class Fault:
    """Makes operators of a kind fail on a value, until it is None."""

    def __init__(self, patch: pytest.MonkeyPatch, kind: type, column: str) -> None:
        self.value: Any = None
        process = kind.process

        def fails(operator: Any, inputs: Sequence[Input]) -> Output:
            for offer in inputs:
                rows = offer.rows if offer.rows is not None else pl.DataFrame()
                if column in rows.columns and self.value in rows.get_column(column).to_list():
                    raise ArithmeticError(f"cannot stand {self.value}")
            return process(operator, inputs)

        patch.setattr(kind, "process", fails)


class Rig:
    def __init__(self, folder: Path, statements: str, shards: int = 2) -> None:
        self.jobs = LocalJobs(folder, shards=shards)
        self.mill = Mill(self.jobs, options=Options(), wall=True)
        self.mill.execute(statements)

    def failure(self) -> OperatorError:
        """The error that stops the job, as the driver reads it from Spark's text."""
        with pytest.raises(MillstreamError) as caught:
            self.all()
        self.jobs.restart()
        line = Reported(caught.value)
        error = read_report(f"org.apache.spark.SparkException: Job aborted\n  {line}\n\tat java.lang.Thread")
        assert isinstance(error, OperatorError) and error.code == "M6053"
        return error

    def all(self) -> None:
        """Run all batches; one that failed before runs again on the state before it."""
        while self.jobs.step():
            pass


def taken(rig: Rig, query: str) -> list[tuple[Any, ...]]:
    return sorted(rig.mill.queries[query].output.take_rows().rows())


def test_a_row_on_which_a_join_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fault = Fault(monkeypatch, WindowJoin, "price")
    undisturbed = Rig(tmp_path / "a", f"{AUCTIONS};{BIDS};{JOIN}")
    undisturbed.all()
    wanted = taken(undisturbed, "joined")
    prices = [price for _, _, price in wanted]
    fault.value = next(price for price in prices[len(prices) // 2 :] if prices.count(price) == 1)
    rig = Rig(tmp_path / "b", f"{AUCTIONS};{BIDS};{JOIN}")
    error = rig.failure()
    assert error.operator.startswith("WindowJoin-")
    assert error.stream == "bids" and f"price = {fault.value}" in (error.row or "")
    assert error.message == (
        f"operator {error.operator} of query joined failed on a row of stream bids {error.row}: "
        f"ArithmeticError: cannot stand {fault.value}"
    )
    assert "same checkpoint" in error.hint
    fault.value = None
    rig.all()
    assert taken(rig, "joined") == wanted


def test_a_row_that_waits_for_another_stream(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A join on ordered streams takes an auction only when the bids have reached its time."""
    fault = Fault(monkeypatch, WindowJoin, "category")
    fault.value = 13
    error = Rig(tmp_path, f"{AUCTIONS};{BIDS};{JOIN}", shards=1).failure()
    assert error.stream == "auctions" and "category = 13" in (error.row or "")


def test_a_row_fed_by_hand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fault = Fault(monkeypatch, Pipeline, "k")
    fault.value = 3
    rig = Rig(tmp_path, "CREATE STREAM s (k BIGINT, v BIGINT, ts BIGINT) ORDER BY ts")
    rig.mill.execute("CREATE QUERY q AS SELECT k + v AS total FROM s WHERE v > 1")
    rig.mill.insert("s", pl.DataFrame({"k": [1, 2, 3, 4], "v": [10, 20, 30, 40], "ts": [1, 2, 3, 4]}))
    rig.mill.batch()
    error = rig.failure()
    assert (error.stream, error.row) == ("s", "(k = 3, v = 30, ts = 3)")
    fault.value = None
    rig.all()
    assert taken(rig, "q") == [(11,), (22,), (33,), (44,)]


def test_a_row_that_is_aggregated_where_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = Partial.rows
    bad = 100_000_000

    def fails(partial: Partial, page: pl.DataFrame) -> pl.DataFrame:
        if "price" in page.columns and page.height and page.select((pl.col("price") > bad).any()).item():
            raise ValueError("too dear")
        return rows(partial, page)

    monkeypatch.setattr(Partial, "rows", fails)
    counted = "CREATE QUERY top AS SELECT window_start, MAX(price) AS top FROM bids [RANGE 100 MILLISECONDS]"
    undisturbed = Rig(tmp_path / "a", f"{BIDS};{counted}")
    undisturbed.all()
    wanted = taken(undisturbed, "top")
    bad = sorted(top for _, top in wanted)[-2]
    rig = Rig(tmp_path / "b", f"{BIDS};{counted}")
    error = rig.failure()
    assert error.message.startswith("operator partial aggregate failed on a row of stream bids (price = ")
    assert error.reason == "ValueError: too dear" and str(max(top for _, top in wanted)) in (error.row or "")
    bad = 100_000_000
    rig.all()
    assert taken(rig, "top") == wanted


def test_time_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An operator that fails when time passes, whatever the rows, fails on no row."""
    process = WindowJoin.process

    def fails(operator: Any, inputs: Sequence[Input]) -> Output:
        if min(offer.bound for offer in inputs) > 50:
            raise RuntimeError("too late")
        return process(operator, inputs)

    monkeypatch.setattr(WindowJoin, "process", fails)
    rig = Rig(
        tmp_path, "CREATE STREAM a (k BIGINT, ts BIGINT) ORDER BY ts; CREATE STREAM b (k BIGINT, ts BIGINT) ORDER BY ts"
    )
    rig.mill.execute("CREATE QUERY q AS SELECT a.k FROM a, b [RANGE 5] WHERE a.k = b.k")
    rig.mill.insert("a", [(1, 10)])
    rig.mill.insert("b", [(1, 10)])
    rig.mill.punctuate("a", "[*, < 100]")
    rig.mill.punctuate("b", "[*, < 100]")
    rig.mill.batch()
    error = rig.failure()
    assert error.row is None and error.message.endswith(
        "failed on time or punctuation of stream b: RuntimeError: too late"
    )
