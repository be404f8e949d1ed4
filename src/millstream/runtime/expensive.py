"""A costly expression, computed for a limited number of tuples per batch.

| | |
|---|---|
| computes | each tuple with the value of the expression as a column; at most `budget` tuples per batch, when all its |
| | input has been taken: those that a reader desires first, then in the order of arrival |
| state | the tuples that wait, in the order of arrival; the patterns that readers desire; with `aside`, those of them |
| | that wait behind newer ones, since a prod has passed them (`aside.py`) |
| sheds | with `sheds`, the tuples that a prod has passed, and says so in the stream (`algebra/shed.py`) |
| punctuation in → purged → out | any → nothing → itself, once no tuple that waits matches it; never on the column |
| progress v, or the port's bound v | → nothing → v, or the oldest tuple that waits; with `aside` also the range |
| | from the newest tuple aside to the oldest other one |
| feedback in → exploited → propagated | assumed, not on the column → tuples that wait and match are dropped → itself |
| | desired, not on the column → tuples that wait and match come first → as its kind says |
| prods | overtake the tuples that wait; early rows are worked on at once |
| cost | a step appends to the state; the work of a batch is `PIECES` calls with whole columns |

The work of a batch is done in pieces: the results of one go downstream before the next one begins, so that feedback
that they cause, such as that of PACE, prunes what it concerns before any work.

When the work is done depends on the batches. Without feedback the bag of all results does not: every tuple is emitted
once, and no punctuation overtakes a tuple that it matches.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from millstream.algebra.arrays import Mask
from millstream.algebra.early import Prod
from millstream.algebra.expression import Column, Expression
from millstream.algebra.feedback import MOST_DESIRED, Feedback, Intent
from millstream.algebra.punctuation.pattern import Pattern
from millstream.algebra.punctuation.punctuations import Punctuations
from millstream.algebra.schema import FOREVER, NEVER, TS, Schema
from millstream.algebra.shed import Shed
from millstream.algebra.upstream import Answer, Upstream
from millstream.runtime.aside import Aside
from millstream.runtime.operator.capabilities import (
    ActsOnProds,
    AnswersMessages,
    Counts,
    Disclaims,
    RowWise,
    Sheds,
    WorksOffBudget,
)
from millstream.runtime.operator.contract import Input, Operator, Output
from millstream.runtime.operator.frames import stack, where
from millstream.runtime.operator.propagation import NO_PUNCTUATIONS, Pending
from millstream.runtime.operator.registry import carries_out
from millstream.runtime.passed import Passed
from millstream.runtime.pipeline.project import Columns
from millstream.runtime.state.table import StateTable

PIECES = 10
"""Pieces that the budget of a batch is divided into."""


@carries_out("expensive")
class Expensive(Operator, RowWise, ActsOnProds, AnswersMessages, Disclaims, Sheds, WorksOffBudget, Counts):
    timed = True
    holds_results = True

    def __init__(
        self,
        input_schema: Schema,
        schema: Schema,
        name: str,
        expression: Expression,
        budget: int,
        aside: int | None = None,
        sheds: bool = False,
    ) -> None:
        self.schema, self._name, self._budget = schema, name, budget
        items = [(a.name, expression if a.name == name else Column(a.type, a.name)) for a in schema]
        self._columns = Columns(schema, items)
        self._passed_on = {each: each for each in input_schema.names if each != name}
        self._waiting = StateTable(input_schema.polars)
        self._oldest = FOREVER
        """The lowest timestamp of the tuples that wait, but for those aside."""
        self._aside = None if aside is None else Aside(input_schema, aside)
        self._passed = Passed(input_schema.names) if sheds or aside is not None else None
        self._lost: list[pl.DataFrame] = []
        """Tuples that were shed and that no notice has told of."""
        self._bound = NEVER
        self.pruned = self.shed = 0
        self._desired: list[Pattern] = []
        self._allowed = 0
        """Tuples that may still be worked on in this batch."""
        self._shrunk = False
        """True if tuples were dropped since the last step: punctuation may have become free."""
        self._pending = Pending()
        self._progress = NEVER, NEVER
        """The highest progress received in band, and emitted."""

    def process(self, inputs: Sequence[Input]) -> Output:
        (port,) = inputs
        if port.rows is not None and port.rows.height:
            behind = self._set_aside(port.rows)
            self._add(port.rows if behind is None else where(port.rows, ~behind))
        self._bound = max(self._bound, port.bound)
        rows = self._worked() if self._allowed and self.pending() else None
        punctuations = NO_PUNCTUATIONS if port.punctuations is None else port.punctuations.select(self._passed_on)
        return Output(rows, self._propagated(punctuations) or None, shed=self.take_shed())

    def _add(self, rows: pl.DataFrame) -> None:
        if rows.height:
            self._waiting.append(rows)
            self._oldest = min(self._oldest, int(rows.get_column(TS).min()))  # type: ignore[arg-type]

    def early(self, rows: Sequence[pl.DataFrame | None], prod: Prod) -> pl.DataFrame | None:
        if self._passed is not None and self._passed.pass_by(prod) and len(self._waiting):
            behind = self._set_aside(self._waiting.frame())
            if behind is not None:
                self._waiting.keep(~behind)
                self._note_oldest()
        return None if rows[0] is None else self._columns(rows[0])

    @property
    def owes(self) -> bool:
        """It is told of prods that have an answer, to put tuples aside or shed them."""
        return self._passed is not None

    def _set_aside(self, rows: pl.DataFrame) -> pl.Series | None:
        """Put those of the tuples aside, or shed them, that a prod has passed; return their mask, None: there are
        none."""
        behind = None if self._passed is None else self._passed.behind(rows, self._desired)
        if behind is not None and self._aside is not None:
            self._aside.put(rows, behind)
        elif behind is not None:
            self._lost.append(where(rows, behind))
            self.shed += self._lost[-1].height
        return behind

    def counts(self) -> Mapping[str, int]:
        return {"pruned": self.pruned, "aside": self.aside, "shed": self.shed}

    def take_shed(self) -> Shed | None:
        lost, self._lost = self._lost, []
        return Shed.of(stack(lost), self._passed_on) if lost else None

    # --- work ---------------------------------------------------------------------------------------------------------

    def work(self, *, allowed: bool) -> bool:
        self._allowed = self._budget if allowed else 0
        return self.unfinished()

    def unfinished(self) -> bool:
        return self._shrunk or (self._allowed > 0 and self.pending() > 0)

    def pending(self) -> int:
        return len(self._waiting) + self.aside

    @property
    def aside(self) -> int:
        return 0 if self._aside is None else len(self._aside)

    def _worked(self) -> pl.DataFrame | None:
        """Take a piece of the tuples that wait, and return its results."""
        count = min(self._allowed, self.pending(), -(-self._budget // PIECES))
        self._allowed -= count
        if self._aside is None or not len(self._aside):
            return self._columns(self._next(count))
        behind = self._aside.count(count, len(self._waiting), len(self._aside))
        chosen = stack([self._next(count - behind), self._aside.take(behind)])
        self._shrunk = True
        return self._columns(chosen)

    def _next(self, count: int) -> pl.DataFrame:
        """Remove and return the next tuples of the queue."""
        if not self._desired or count == len(self._waiting):
            chosen = self._waiting.take_first(count)
            self._note_oldest()
        else:
            held = self._waiting.frame()
            taken = self._first(held, count)
            chosen = where(held, taken)
            self._keep(~taken)
        return chosen

    def _first(self, held: pl.DataFrame, count: int) -> Mask:
        """Return a mask of the tuples to work on next: those that are desired, then the oldest."""
        taken = np.zeros(held.height, dtype=np.bool_)
        for pattern in self._desired:
            wanted = np.flatnonzero(pattern.match(held).to_numpy() & ~taken)[:count]
            taken[wanted] = True
            count -= len(wanted)
        taken[np.flatnonzero(~taken)[:count]] = True
        return taken

    def _keep(self, kept: Mask) -> None:
        self._waiting.keep(pl.Series(kept))
        self._note_oldest()

    def _note_oldest(self) -> None:
        lowest = self._waiting.frame().get_column(TS).min() if len(self._waiting) else None
        self._oldest = FOREVER if lowest is None else int(lowest)  # type: ignore[arg-type]
        self._shrunk = True

    # --- feedback -----------------------------------------------------------------------------------------------------

    def disclaim(self, pattern: Pattern, omitted: Sequence[Pattern | None]) -> None:  # noqa: ARG002
        if self._name in pattern.attributes or not self.pending():
            return
        if self._aside is not None and (dropped := self._aside.give_back(pattern).height):
            self.pruned += dropped
            self._shrunk = True
        kept = ~pattern.match(self._waiting.frame()).to_numpy()
        if not kept.all():
            self.pruned += int(np.count_nonzero(~kept))
            self._keep(kept)

    def answer(self, message: Upstream) -> Answer:
        if isinstance(message, Feedback) and message.intent is Intent.DESIRED:
            self.desire(message.pattern)
        return message.unanswered(self.arity)

    def desire(self, pattern: Pattern) -> None:
        """Work on tuples that match before others."""
        if self._name not in pattern.attributes and not any(each.covers(pattern) for each in self._desired):
            self._desired = [*(each for each in self._desired if not pattern.covers(each)), pattern][-MOST_DESIRED:]
            if self.aside and self._aside is not None:
                self._add(self._aside.give_back(pattern))

    # --- punctuation and time -----------------------------------------------------------------------------------------

    def _propagated(self, punctuations: Punctuations) -> Punctuations:
        received, emitted = self._progress
        received = max(received, punctuations.progress)
        free = NO_PUNCTUATIONS
        if len(punctuations):
            self._pending.add(punctuations.with_progress(NEVER))
        if len(self._pending):
            free = self._pending.release(self._held(), shrunk=self._shrunk)
        if self._desired and len(free):
            known = free.patterns()
            self._desired = [each for each in self._desired if not any(p.covers(each) for p in known)]
        self._shrunk = False
        oldest = self._lowest()
        time = max(received, self._bound)
        if self._passed is not None:
            self._passed.forget(min(time, self._oldest))
        if self._aside is not None:
            news = self._aside.complete(min(time, self._oldest), min(time, oldest))
            free = Punctuations.concat([free, news]) if len(news) else free
        reached = min(received, oldest)
        self._progress = received, max(emitted, reached)
        return free.with_progress(reached if reached > emitted else NEVER)

    def output_bound(self, bounds: Sequence[int]) -> int:
        return min(bounds[0], self._lowest())

    def _lowest(self) -> int:
        """The lowest timestamp of all tuples that wait."""
        return self._oldest if self._aside is None else min(self._oldest, self._aside.oldest)

    def _held(self) -> pl.DataFrame:
        """All tuples that wait."""
        held = self._waiting.frame()
        return held if self._aside is None or not len(self._aside) else stack([held, self._aside.table.frame()])

    # --- state --------------------------------------------------------------------------------------------------------

    def tables(self) -> Mapping[str, StateTable]:
        return {"pending": self._waiting} | ({} if self._aside is None else {"aside": self._aside.table})

    def scalars(self) -> dict[str, Any]:
        more: dict[str, Any] = {} if self._aside is None else {"aside": self._aside.to_value()}
        if self._passed is not None:
            more |= {"passed": self._passed.to_value(), "bound": self._bound, "shed": self.shed}
        return more | {
            "oldest": self._oldest,
            "desired": list(self._desired),
            "pruned": self.pruned,
            "shrunk": self._shrunk,
            "progress": self._progress,
            "pending": self._pending.to_value(),
        }

    def restore_scalars(self, values: Mapping[str, Any]) -> None:
        self._oldest, self.pruned, self._shrunk = values["oldest"], values["pruned"], values["shrunk"]
        self._desired = list(values["desired"])
        self._progress = tuple(values["progress"])
        self._pending.restore(values["pending"])
        if self._aside is not None:
            self._aside.restore(values["aside"])
        if self._passed is not None:
            self._passed.restore(values["passed"])
            self._bound, self.shed = values["bound"], values["shed"]
