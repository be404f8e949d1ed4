"""Base class of joins and sequences: several inputs, each with a prefix, a key and perhaps a window.

Keys at the same position are equal over all sides. Where every result has equal keys, a condition is pushed into each
side whose own columns and keys decide it; a condition over several sides becomes part of the join. No condition is
pushed into a side with a ROWS window: it would change which tuples are the last n.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import ClassVar

from millstream.algebra.expression import Expression, calls_code, conjunction, conjuncts
from millstream.algebra.names import Groups, equal_classes, key_names, prefixed, renamed
from millstream.algebra.ranges import guarded
from millstream.algebra.response import Reach, Rule
from millstream.algebra.schema import TS, Attribute, Schema
from millstream.algebra.window import UNBOUNDED, Window
from millstream.logical.contract.offers import Offers, distinct, slowest
from millstream.logical.contract.state_parts import stream_names
from millstream.logical.plan import Conditions, Key, Names, Need, Plan, Pushed, columns_read, each_once, subsets
from millstream.logical.windows import written


@dataclass(frozen=True, slots=True)
class Side:
    """One input of a join or a sequence; `input` is None for a table. `preserved`: its tuples are emitted with or
    without a partner."""

    input: Plan | None
    schema: Schema
    prefix: str | None
    keys: tuple[str, ...]
    window: Window = UNBOUNDED
    preserved: bool = False

    @property
    def names(self) -> dict[str, str]:
        """Its columns, mapped to their names in the output."""
        return {name: prefixed(name, self.prefix) for name in self.schema.names}

    @property
    def key_names(self) -> tuple[str, ...]:
        """Its keys under their names in the output."""
        return tuple(prefixed(key, self.prefix) for key in self.keys)

    @property
    def rows(self) -> int | None:
        return self.window.rows

    @property
    def label(self) -> str:
        """Its alias, or its streams, for messages."""
        return self.prefix or ("" if self.input is None else stream_names(self.input))

    @property
    def groups(self) -> Groups:
        """Groups of its columns that are equal, under their names in the output."""
        below = () if self.input is None else self.input.equal_columns
        return tuple(tuple(prefixed(name, self.prefix) for name in group) for group in below)

    def columns_of(self, names: Names) -> Names:
        """Return its own names of the output columns `names` that it contributes."""
        return frozenset(name for name, output in self.names.items() if output in names)

    @property
    def window_text(self) -> str:
        return written(self.window, self.schema.unit)


def joined(sides: Iterable[Side]) -> tuple[Attribute, ...]:
    """Return the attributes of a join's output: those of each side in turn, under its prefix."""
    return tuple(Attribute(prefixed(a.name, side.prefix), a.type) for side in sides for a in side.schema)


class Joining(Plan):
    """The answers of an inner join: every result has a tuple of each side, with equal keys. A node without that
    property, or one that pairs tuples by their order, overrides them."""

    __slots__ = ()

    residual: Expression | None
    rules: ClassVar[tuple[Rule, ...]] = (
        Rule("keys", Reach.EVERY, purges="stored tuples that match, of every input", passes="the same, by key"),
        Rule(
            "columns of one input, with or without keys",
            Reach.SOME,
            purges="stored tuples of that input that match",
            passes="the same, to that input",
        ),
        Rule(
            "columns of several inputs, or of one with `[ROWS n]`",
            why="a tuple may have partners outside the pattern, or counts for others",
        ),
    )
    stateless = False
    holds_time = False
    punctuates: Names = frozenset()

    @property
    @abstractmethod
    def sides(self) -> tuple[Side, ...]:
        """One side for each input, in the order of `inputs`, then one for a table."""

    @property
    @abstractmethod
    def merges(self) -> bool:
        """True if it processes in timestamp order."""

    @property
    def equal(self) -> Groups:
        """The output's key columns in groups of equal ones, the first side's column first."""
        return tuple(zip(*(side.key_names for side in self.sides), strict=True))

    @property
    def positional(self) -> bool:
        return any(side.rows is not None for side in self.sides)

    # --- EXPLAIN ----------------------------------------------------------------------------------------------------

    def _on(self) -> str:
        pairs = " AND ".join(" = ".join(names) for names in self.equal)
        return f" ON {pairs}" if pairs else ""

    def _where(self) -> str:
        return "" if self.residual is None else f" WHERE {self.residual}"

    # --- the optimizer ----------------------------------------------------------------------------------------------

    def canonical(self, spelled: Callable[[Expression], Expression]) -> Plan:
        return self if self.residual is None else self.altered(residual=spelled(self.residual))

    def sifters(self, equal: Groups) -> list[Sifter]:
        """Return a sifter for each side, given the key columns that are equal in every result."""
        return [
            Sifter(side, {name: own for own, names in zip(side.keys, equal, strict=False) for name in names})
            for side in self.sides
        ]

    def push(self, conditions: Conditions) -> Pushed:
        sifters = self.sifters(self.equal)
        inside: list[Expression] = []
        above: list[Expression] = []
        for condition in each_once((*conjuncts(self.residual), *conditions)):
            taken = [sifter.take(condition) for sifter in sifters]
            if not any(taken):
                (above if TS in condition.columns() else inside).append(condition)
        return self.sifted(sifters, inside, above)

    def sifted(self, sifters: Sequence[Sifter], inside: Iterable[Expression], above: Iterable[Expression]) -> Pushed:
        """Push what each sifter has taken; the node tests `inside`."""
        node = self.altered(residual=conjunction(each_once(inside)))
        return Pushed(node, tuple(each_once(sifter.taken) for sifter in sifters), tuple(above))

    def pruned(self, kept: Names) -> tuple[Plan, tuple[Need, ...]]:
        read = kept | columns_read(self.residual)
        return self, tuple(Need(side.columns_of(read) | {*side.keys}, stored=True) for side in self.sides)

    def copied(self, column: str) -> tuple[tuple[int, str], ...]:
        owned = (
            (place, name)
            for place, side in enumerate(self.sides)
            for name, output in side.names.items()
            if output == column and side.input is not None
        )
        return tuple(owned)[:1]

    def carried(self, below: tuple[Names, ...]) -> Names:
        sides = zip(self.sides, below, strict=False)  # a table has no punctuation
        return frozenset(prefixed(name, side.prefix) for side, names in sides for name in names)

    @property
    def equal_columns(self) -> Groups:
        return equal_classes([*self.equal, *(group for side in self.sides for group in side.groups)])

    # --- partitioning -----------------------------------------------------------------------------------------------

    @property
    def holds_punctuation(self) -> bool:
        return not self.stateless

    def reads_punctuation(self, place: int, columns: Names) -> bool:
        side = self.sides[place]
        return not columns.isdisjoint(side.keys) and columns <= {*side.keys, *side.schema.times}

    def hash_keys(self) -> Iterable[Key]:
        return subsets([names[0] for names in self.equal])

    def keys_below(self, key: Key) -> list[Key] | None:
        places = {name: place for place, names in enumerate(self.equal) for name in names}
        if not all(name in places for name in key):
            return None
        return [tuple(side.keys[places[name]] for name in key) for side in self.sides]

    # --- the contract -----------------------------------------------------------------------------------------------

    def joined_offers(self, inputs: tuple[Offers, ...], drains: Iterable[bool]) -> Offers:
        """Return the slowest time, the templates of each side that `drains`, and all foreign keys; a key gets the first
        side's name."""
        first = self.sides[0].key_names
        found = [
            offers.renamed(side.names | key_names(zip(side.keys, first, strict=True)))
            for side, offers in zip(self.sides, inputs, strict=True)
        ]
        time, clocks = slowest(inputs)
        drained = (offers.templates for offers, drains_ in zip(found, drains, strict=True) if drains_)
        references = distinct(each for offers in found for each in offers.references)
        return Offers(time, clocks, distinct(chain.from_iterable(drained)), references)


class Paired(Joining):
    """A join of two sides; `keys` pairs their columns."""

    __slots__ = ()

    keys: tuple[tuple[str, str], ...]

    def keys_of(self, place: int) -> tuple[str, ...]:
        return tuple(pair[place] for pair in self.keys)

    def canonical(self, spelled: Callable[[Expression], Expression]) -> Plan:
        residual = None if self.residual is None else spelled(self.residual)
        return self.altered(keys=tuple(sorted(self.keys)), residual=residual)


@dataclass(slots=True)
class Sifter:
    """Takes the conditions that one side's columns decide, under its own names. `equal` maps output columns that equal
    one of its keys to that key. Of a condition that may overflow it takes a form that does not."""

    side: Side
    equal: Mapping[str, str] = field(default_factory=dict)
    taken: list[Expression] = field(default_factory=list)

    def take(self, condition: Expression) -> bool:
        """Return whether the condition need not be tested on pairs any more."""
        names = {output: name for name, output in self.side.names.items()} | dict(self.equal)
        columns = condition.columns()
        if self.side.rows or not columns or not columns <= names.keys():
            return False
        own = renamed(condition, names, self.side.schema)
        if guarded(own) is not own and calls_code(own):
            return False
        self.taken.append(guarded(own))
        return self.taken[-1] is own
