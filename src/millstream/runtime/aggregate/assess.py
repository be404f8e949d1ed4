"""Compares the early answers for each window and group with the final one, and predicts the final value.

| | |
|---|---|
| computes | its input; with `estimates` also the final value that is expected, an interval, and the share seen |
| state | early values by window and group, until the final row; with `estimates` a history of pairs (`history`) |
| punctuation in → purged → out | any → early values of windows and groups that match it → itself |
| early rows | are kept for comparison, if they answer the query that owns it |
| notice of shed tuples | → nothing → itself; final rows that may lack tuples are not compared |
| cost | none without prods; with them a join of the rows with the state |

Of the answers for a window and group within the same `BINS`th part of the window, the last one is compared: so the
state is bounded by the open windows and groups. The history is that of a group, so the result does not depend on the
number of shards. It has no sliding windows that had begun long before the first prod, as those at the beginning of a
stream: they lack tuples. Final rows are compared at the end of a batch, or when the result is needed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from millstream.algebra.early import COMPLETE, ESTIMATES, Prod
from millstream.algebra.expression import Expression
from millstream.algebra.punctuation.pattern import Pattern
from millstream.algebra.punctuation.punctuations import Punctuations
from millstream.algebra.qualities import Accuracy, Qualities, accuracies
from millstream.algebra.schema import FOREVER, NEVER, TS, Schema
from millstream.algebra.shed import Shed
from millstream.algebra.window import WINDOW_END
from millstream.algebra.windower import Windower
from millstream.runtime.aggregate.closed_answers import reached_by, still_open
from millstream.runtime.aggregate.estimates import DEVIATION, VALUE, estimated
from millstream.runtime.aggregate.history import BIN, COUNT, EARLY, END, FINAL, GAP, SHARE, History, bin_of
from millstream.runtime.aggregate.shed_results import ShedResults
from millstream.runtime.engine.statistics import Counters
from millstream.runtime.expression.evaluate import to_polars
from millstream.runtime.operator.capabilities import Disclaims, LacksShed, Reports, RewritesProds, TakesEarly
from millstream.runtime.operator.contract import Input, Operator, Output
from millstream.runtime.operator.frames import pick, stack
from millstream.runtime.operator.keys import joined
from millstream.runtime.operator.registry import carries_out
from millstream.runtime.python.calls import PythonCalls
from millstream.runtime.state.table import StateTable

QUALITY = "__quality"
Judged = tuple[int, int, float, float, float, float | None, float | None]
"""The end of a window, the number of its early answers that were last before the final one, the sum of the shares that
they had seen, and of their qualities, the worst quality, the sum of the early values, and of the final ones; None if
these are no numbers."""


@carries_out("assess")
class Assess(Operator, TakesEarly, RewritesProds, Disclaims, LacksShed, Reports):
    def __init__(
        self,
        schema: Schema,
        keys: tuple[str, ...],
        value: str,
        kind: str,
        windows: Windower,
        moments: tuple[str, ...] = (),
        estimates: bool = False,
        quality: Expression | None = None,
        owner: str = "",
        inner: bool = False,
        timed: bool = False,
    ) -> None:
        self.schema, self.owner, self.inner, self.timed = schema, owner, inner, timed
        self._keys, self._groups = list(keys), [name for name in keys if name != WINDOW_END]
        self._value, self._kind, self._windows = value, kind, windows
        self._moments, self._estimates = moments, estimates
        types = schema.polars
        self._type = types[value] if quality is not None else pl.Float64()
        self._quality = None if quality is None else PythonCalls(None, [quality])
        self._unit = schema.unit
        numbers = {BIN: pl.Int32(), SHARE: pl.Float64(), EARLY: self._type, COUNT: pl.Float64()}
        self._pending = StateTable({name: types[name] for name in keys} | numbers)
        self._shed = ShedResults({name: types[name] for name in keys}, WINDOW_END, 1)
        hourly = isinstance(types[WINDOW_END], pl.Datetime)
        self._history = History({name: types[name] for name in self._groups}, windows.step, hourly=hourly)
        self._now = NEVER
        """The time of the last prod."""
        self._first = FOREVER
        """The time of the first one."""
        self._accuracy = Accuracy()
        self._judged: list[Judged] = []
        self._finals: list[pl.DataFrame] = []
        self._closed: list[Punctuations] = []
        self._reached = NEVER

    # --- final rows -------------------------------------------------------------------------------------------------

    def process(self, inputs: Sequence[Input]) -> Output:
        (port,) = inputs
        rows = port.rows
        if len(self._pending) or len(self._shed):
            self._put_off(port)
        if rows is not None and self._estimates:
            final = pl.col(self._value).cast(pl.Float64)
            columns = [*(final.alias(name) for name in ESTIMATES[:3]), pl.lit(1.0).alias(COMPLETE)]
            rows = rows.with_columns(columns).select([*self.schema.names, TS])
        return Output(rows, port.punctuations)

    def _put_off(self, port: Input) -> None:
        """Compare final rows later, with others of the batch; at once if that calls Python, which may fail."""
        if port.rows is not None:
            self._finals.append(pick(port.rows, [*self._keys, self._value]))
        if port.punctuations is not None:
            self._closed.append(port.punctuations)
        self._reached = max(self._reached, reached_by(port))
        if self._quality is not None:
            self.settle()

    def missing(self, port: int, shed: Shed, passed: Shed) -> Shed:  # noqa: ARG002
        self._shed.add(shed)
        return passed

    def settle(self) -> None:
        """Compare the final rows since the last call, and forget the answers for what is closed."""
        finals, punctuations = self._finals, Punctuations.concat(self._closed)
        self._finals, self._closed = [], []
        if finals and len(self._pending):
            self._compare(stack(finals))
        self._shed.forget(self._reached if self.timed else NEVER, punctuations)
        if len(self._pending):
            held = self._pending.frame()
            self._pending.keep(still_open(held, self._keys, punctuations, self._reached, timed=self.timed))

    def _compare(self, rows: pl.DataFrame) -> None:
        """Pair the early values of final rows with these, in the order of the final rows."""
        held = self._pending.frame()
        final = rows.select(*self._keys, pl.col(self._value).cast(self._type).alias(FINAL))
        pairs = joined(final, held, self._keys, "inner")
        if not pairs.height:
            return
        self._pending.replace(joined(held, final, self._keys, "anti"))
        if len(self._shed):
            pairs = pairs.filter(~self._shed.mask(pairs))
        end = pl.col(WINDOW_END).to_physical().cast(pl.Int64).alias(END)
        pairs = pairs.with_columns(end).drop_nulls([EARLY, FINAL])
        if not self.inner:
            self._judge(pairs)
        if self._estimates:
            whole = pairs.drop_nulls(SHARE)
            if self._windows.most > 1:
                whole = whole.filter(self._windows.start(pl.col(END)) + self._windows.step >= self._first)
            self._history.add(whole.cast({EARLY: pl.Float64, FINAL: pl.Float64}), self._now)

    def _judge(self, pairs: pl.DataFrame) -> None:
        judged = pairs.with_columns(self._qualities(pairs).alias(QUALITY))
        last = judged.filter(pl.struct(self._keys).is_last_distinct())
        both = (Qualities.of(each.get_column(QUALITY), each.get_column(FINAL)) for each in (judged, last))
        self._accuracy += Accuracy(*both)
        known = last.drop_nulls(QUALITY).group_by(END, maintain_order=True)
        sums = [pl.col(SHARE).sum(), pl.col(QUALITY).sum(), pl.col(QUALITY).min().alias("worst")]
        for name in (EARLY, FINAL):  # a text has no sum
            sums.append(pl.col(name).cast(pl.Float64).sum() if self._type.is_numeric() else pl.lit(None).alias(name))
        self._judged += known.agg(pl.len(), *sums).rows()

    def _qualities(self, pairs: pl.DataFrame) -> pl.Series:
        calls = self._quality
        if calls is None:
            return pairs.select(accuracies(pl.col(EARLY), pl.col(FINAL))).to_series()
        gap = (1 - pl.col(SHARE)) * self._windows.length / self._unit
        made = calls.for_items(pairs.with_columns(gap.alias(GAP)))
        return made.select(to_polars(calls.items[0]).cast(pl.Float64)).to_series()

    def report(self) -> tuple[str, list[Judged]] | None:
        """Return what was compared since the last report, for the query that owns it."""
        if self.inner:
            return None
        self.settle()
        judged, self._judged = self._judged, []
        return (self.owner, judged) if judged else None

    def summary(self, counters: Counters) -> tuple[str, Accuracy] | None:  # noqa: ARG002
        """Return the accuracy of all answers compared so far."""
        if self.inner:
            return None
        self.settle()
        return self.owner, self._accuracy

    # --- early rows -------------------------------------------------------------------------------------------------

    def passed(self, prod: Prod, arrived: Prod) -> Prod:
        # On every shard, whether it has early rows or not.
        if arrived.time is not None and (not self.owner or arrived.concerns(self.owner)):
            self._first = min(self._first, arrived.time)
        return prod

    def early(self, rows: Sequence[pl.DataFrame | None], prod: Prod) -> pl.DataFrame | None:
        given = rows[0]
        if given is None or not given.height or (self.owner and not prod.concerns(self.owner)):
            return None
        if self._estimates:  # from all pairs so far
            self.settle()
        end = pl.col(WINDOW_END).to_physical().cast(pl.Int64)
        share, value = self._share(prod), pl.col(self._value).cast(self._type)
        counts = self._moments[:1] if self._kind != "count" else (self._value,)
        number = pl.col(counts[0]) if counts else pl.lit(None)
        columns = share.alias(SHARE), value.alias(EARLY), number.cast(pl.Float64).alias(COUNT)
        answers = given.select(*self._keys, bin_of(share).alias(BIN), *columns)
        self._now = self._now if prod.time is None else max(self._now, prod.time)
        if self._estimates:
            known = [given.get_column(name).cast(pl.Float64).alias(DEVIATION) for name in self._moments[1:]]
            made = answers.with_columns(end.alias(END), pl.col(EARLY).cast(pl.Float64).alias(VALUE), *known)
            pairs = self._history.for_rows(made, self._now)
            found = estimated(self._kind, made, pairs)
            shares = answers.get_column(SHARE).alias(COMPLETE)
            given = given.hstack(found).with_columns(shares).select([*self.schema.names, TS])
        self._keep(answers)
        return given

    def _share(self, prod: Prod) -> pl.Expr:
        """The share of the window's time that has passed at a prod."""
        if prod.time is None:
            return pl.lit(None, pl.Float64)
        start = self._windows.start(pl.col(WINDOW_END).to_physical().cast(pl.Int64))
        return ((float(prod.time) - start) / self._windows.length).clip(0.0, 1.0)

    def _keep(self, answers: pl.DataFrame) -> None:
        """Keep early values for comparison, each in place of the one before in the same part of its window."""
        held = self._pending.frame()
        if held.height:
            again = joined(held, answers, [*self._keys, BIN], "anti")
            if again.height < held.height:
                self._pending.replace(again)
        self._pending.append(answers)

    def disclaim(self, pattern: Pattern, omitted: Sequence[Pattern | None]) -> None:  # noqa: ARG002
        self.settle()
        if pattern.attributes <= {*self._keys}:
            self._pending.keep(~pattern.match(self._pending.frame()))

    # --- state ------------------------------------------------------------------------------------------------------

    def tables(self) -> Mapping[str, StateTable]:
        self.settle()
        return {"answers": self._pending, "pairs": self._history.table, "shed": self._shed.table}

    def state_rows(self) -> int:
        """Return the number of pairs. Early values that wait for the final row count in bytes only: a prod leaves the
        number of tuples and groups that a query holds as it is."""
        self.settle()
        return len(self._history.table)

    def scalars(self) -> dict[str, Any]:
        self.settle()
        return {"now": self._now, "first": self._first, "accuracy": self._accuracy}

    def restore_scalars(self, values: Mapping[str, Any]) -> None:
        self._now, self._first, self._accuracy = values["now"], values.get("first", NEVER), values["accuracy"]
