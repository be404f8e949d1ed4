"""A union in the order of arrival, without the tuples that are too late: PACE.

The result depends on the order in which tuples of different inputs arrive. So it runs on one shard, no condition moves
below it (a dropped tuple might be the newest), and feedback from above is not passed on. It issues feedback itself: its
inputs may omit what it would drop.

The paced column is the time of the result. The result is out of order by `tolerance` at most, so its time moves with
every tuple, to the highest value seen minus the tolerance.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from millstream.algebra.punctuation.scheme import FeedbackScheme, Scheme
from millstream.algebra.punctuation.template import UP_TO, Template
from millstream.algebra.response import Rule
from millstream.algebra.schema import Schema, TimeKind
from millstream.algebra.types import MICROS
from millstream.logical.contract.offers import Offers, Time
from millstream.logical.contract.state_parts import StatePart
from millstream.logical.nodes.union import Merging, Union
from millstream.logical.plan import Conditions, Key, Names, Need, Plan, Pushed
from millstream.logical.windows import spelled


@dataclass(frozen=True, slots=True)
class Pace(Merging):
    """The tuples of all members whose `column` is at most `tolerance` below the highest one that has arrived.
    `feedback`: tell the members what would be dropped."""

    stem = "pace"
    rules = (Rule("any column", why="a tuple that is omitted might be the newest"),)

    column: str
    tolerance: int
    feedback: bool = True

    @property
    def schema(self) -> Schema:
        united = Union(self.members).schema
        if united.time == self.column:
            return replace(united, ordered=False, moves=True)
        unit = 1 if united.type_of(self.column).is_integer else MICROS
        return replace(
            united,
            kind=TimeKind.EXTERNAL,
            time=self.column,
            unit=unit,
            ordered=False,
            moves=True,
            follows=(),
            offsets=(),
        )

    @property
    def timed_by(self) -> tuple[Plan, ...]:
        return ()

    @property
    def merges(self) -> bool:
        return False

    def describe(self) -> str:
        late = spelled(self.tolerance, self.schema.unit)
        return f"Pace ON MAX({self.column}) {late}, in order of arrival{'' if self.feedback else ', FEEDBACK OFF'}"

    def push(self, conditions: Conditions) -> Pushed:
        return Pushed(self, ((),) * len(self.members), conditions)

    def pruned(self, kept: Names) -> tuple[Plan, tuple[Need, ...]]:
        return Merging.pruned(self, kept | {self.column})

    def feedback_sent(self, inputs: tuple[Offers, ...]) -> tuple[FeedbackScheme, ...]:
        """Upper bounds on the paced column of each member. A bound replaces those before it."""
        if not self.feedback:
            return Merging.feedback_sent(self, inputs)
        columns = [dict(self.copied(self.column))[place] for place in range(len(self.members))]
        return tuple(Scheme.of(Template(((column, UP_TO),))) for column in columns)

    def hash_keys(self) -> Iterable[Key]:
        return ()

    def keys_below(self, key: Key) -> list[Key] | None:
        return None

    def state_parts(self, inputs: tuple[Offers, ...]) -> tuple[StatePart, ...]:
        return ()

    def passes_on(self, inputs: tuple[Offers, ...], parts: tuple[StatePart, ...]) -> Offers:
        return replace(Merging.passes_on(self, inputs, parts), time=Time.MOVES, clocks=(f"PACE ON {self.column}",))

    def parameters(self) -> dict[str, Any]:
        return {"members": [m.schema for m in self.members]} | self.values("schema", "column", "tolerance", "feedback")
