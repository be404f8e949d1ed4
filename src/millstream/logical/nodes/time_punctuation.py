"""A stream with a copy of a column that time closes, and punctuation on the copy.

Operators learn the time of a stream, not punctuation on its time column, so that nothing is computed per tuple. A join
without a window has no time that closes the columns of a side, since its results may have old tuples. But it holds
punctuation on such a column back until no stored tuple matches. The copy keeps what time implies apart from punctuation
that the stream has sent: a projection above drops it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from millstream.algebra.expression import Column, Expression, rewrite
from millstream.algebra.punctuation.template import UP_TO, Template
from millstream.algebra.response import Reach, Rule
from millstream.algebra.schema import Attribute, Schema
from millstream.algebra.time_limits import own_limits
from millstream.logical.contract.offers import Offer, Offers, Time, distinct
from millstream.logical.contract.state_parts import StatePart
from millstream.logical.nodes.kinds.common import Passing, Stateless
from millstream.logical.plan import Conditions, Names, Need, Plan, Pushed


@dataclass(frozen=True, slots=True)
class TimePunctuation(Stateless, Passing):
    """The tuples of `input`, and `column` once more under the name `copy`."""

    stem = "time_punctuation"
    rules = (
        Rule("any column", Reach.EVERY, passes="the same, of the column for its copy"),
        Rule("the column and its copy", why="no query names both"),
    )

    input: Plan
    column: str
    copy: str

    @property
    def schema(self) -> Schema:
        source = self.input.schema
        return replace(source, attributes=(*source.attributes, Attribute(self.copy, source.type_of(self.column))))

    def describe(self) -> str:
        return f"TimePunctuation {self.column} AS {self.copy}"

    def push(self, conditions: Conditions) -> Pushed:
        def original(part: Expression) -> Expression | None:
            return replace(part, name=self.column) if isinstance(part, Column) and part.name == self.copy else None

        return Pushed(self, (tuple(rewrite(condition, original) for condition in conditions),))

    def pruned(self, kept: Names) -> tuple[Plan, tuple[Need, ...]]:
        return self, (Need(kept - {self.copy} | {self.column}),)

    def copied(self, column: str) -> tuple[tuple[int, str], ...]:
        return ((0, self.column if column == self.copy else column),)

    @property
    def punctuates(self) -> Names:  # type: ignore[override]
        return frozenset({self.copy})

    @property
    def reads_time(self) -> bool:
        return True

    def passes_on(self, inputs: tuple[Offers, ...], parts: tuple[StatePart, ...]) -> Offers:
        (source,) = inputs
        if source.time is not Time.MOVES:
            return source
        made = Offer(Template(((self.copy, UP_TO),)), " and ".join(source.clocks))
        return replace(source, templates=distinct((*source.templates, made)))

    def parameters(self) -> dict[str, Any]:
        (limit,) = own_limits(self.input.schema.trails, [self.column])
        return {"limit": replace(limit, column=self.copy)} | self.values("schema", "column")
