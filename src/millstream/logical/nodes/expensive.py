"""A costly expression, computed for at most `budget` tuples per batch; the others wait.

Every tuple of the input is emitted once, with the value of the expression as a column. Which batch emits it depends on
the cut of the input into batches and shards, so the time of a result is exempt from the invariance of cuts; the bag of
all results is not. Feedback prunes tuples that wait, which is why a result may be missing only if it was disclaimed.

A condition on any column but the computed one is tested below, before any work.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from millstream.algebra.expression import Expression
from millstream.algebra.names import Groups
from millstream.algebra.punctuation.pattern import Pattern
from millstream.algebra.response import Reach, Rule
from millstream.algebra.schema import Attribute, Schema
from millstream.logical.contract.offers import Offers
from millstream.logical.contract.state_parts import StatePart
from millstream.logical.disclaimed import Omitted, omitted
from millstream.logical.plan import Conditions, Key, Names, Need, Plan, Pushed, columns_read, subsets


@dataclass(frozen=True, slots=True)
class Expensive(Plan):
    """The tuples of `input` with `expression` as the column `name`, in place of a column of that name. `guard`: what
    feedback disclaims is also dropped on arrival, and disclaimed below. `aside`: tuples that a prod has passed wait
    behind newer ones, and are worked on after each `aside` of these (0: if no other waits); None: they do not. `shed`:
    they are dropped, for one query, the `owner`."""

    stem = "expensive"
    rules = (
        Rule("columns of its input, with a guard", Reach.EVERY, purges="tuples that wait", passes="the same"),
        Rule("the computed column, or without a guard", why="what it computes is not known before"),
    )
    stateless = False
    positional = False
    holds_time = True
    punctuates = Names()

    input: Plan
    name: str
    expression: Expression
    budget: int
    guard: bool = True
    aside: int | None = None
    shed: bool = False
    owner: str = ""

    @property
    def schema(self) -> Schema:
        """Tuples that a reader desires overtake others, so the output is in no order of time."""
        source = self.input.schema
        made = Attribute(self.name, self.expression.type)
        attributes = tuple(made if a.name == self.name else a for a in source)
        attributes = attributes if self.name in source else (*attributes, made)
        follows = tuple(item for item in source.follows if item[0] != self.name)
        offsets = tuple(item for item in source.offsets if item[0] != self.name)
        return replace(source, attributes=attributes, ordered=False, follows=follows, offsets=offsets)

    def describe(self) -> str:
        guard = "" if self.guard else ", no guard"
        aside = "" if self.aside is None else f", aside: 1 after {self.aside}" if self.aside else ", aside: in lulls"
        aside += ", shed: what prods have passed" if self.shed else ""
        return f"Expensive {self.expression} AS {self.name} [BUDGET {self.budget} per batch and shard{guard}{aside}]"

    def owned(self, query: str, *, inner: bool) -> Plan:
        return replace(self, owner=query) if self.shed else self

    def push(self, conditions: Conditions) -> Pushed:
        below = tuple(c for c in conditions if c.columns() and self.name not in c.columns())
        return Pushed(self, (below,), tuple(c for c in conditions if c not in below))

    def disclaimed(self, pattern: Pattern) -> Omitted:
        return omitted(self, pattern) if self.guard else (None,)

    def pruned(self, kept: Names) -> tuple[Plan, tuple[Need, ...]]:
        time = frozenset([self.input.schema.time]) if self.aside is not None and self.input.schema.time else frozenset()
        return self, (Need((kept - {self.name}) | columns_read(self.expression) | time, stored=True),)

    def copied(self, column: str) -> tuple[tuple[int, str], ...]:
        return () if column == self.name else ((0, column),)

    @property
    def equal_columns(self) -> Groups:
        groups = (tuple(name for name in group if name != self.name) for group in self.input.equal_columns)
        return tuple(group for group in groups if len(group) > 1)

    # --- partitioning: any shard may do the work for any tuple --------------------------------------------------------

    def hash_keys(self) -> Iterable[Key]:
        read = columns_read(self.expression) - {self.name}
        return subsets([name for name in self.input.schema.names if name in read] or self._others())

    def _others(self) -> list[str]:
        return [name for name in self.input.schema.names if name != self.name]

    def keys_below(self, key: Key) -> list[Key] | None:
        return None if self.name in key else [key]

    # --- the contract -------------------------------------------------------------------------------------------------

    def state_parts(self, inputs: tuple[Offers, ...]) -> tuple[StatePart, ...]:
        names = ("pending",) if self.aside is None else ("pending", "aside")
        return tuple(
            StatePart(name, (f"the budget of {self.budget} per batch, if tuples come no faster",)) for name in names
        )

    def passes_on(self, inputs: tuple[Offers, ...], parts: tuple[StatePart, ...]) -> Offers:
        kept = tuple(o for o in inputs[0].templates if self.name not in o.attributes)
        return replace(inputs[0], templates=kept)

    def parameters(self) -> dict[str, Any]:
        held = self.values("schema", "name", "expression", "budget", "aside")
        return {"input_schema": self.input.schema, "sheds": self.shed} | held
