"""What joins and sequences have in common: several inputs, each with a prefix, a key and perhaps a window.

Keys at the same place are equal over all sides. Where that holds of every result, a condition goes into each side that
can tell it from its own columns and keys; what reads several sides becomes part of the join. Nothing goes into a side
with a ROWS window: which tuples are the last n would change.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from millstream.algebra.expression import Expression, conjunction, conjuncts
from millstream.algebra.names import Groups, equal_classes, key_names, prefixed, renamed
from millstream.algebra.schema import TS, Attribute, Schema
from millstream.algebra.window import Window
from millstream.logical.contract.offers import Offers, distinct, slowest
from millstream.logical.contract.state_parts import named
from millstream.logical.plan import Conditions, Key, Names, Need, Plan, Pushed, columns_read, each_once, subsets
from millstream.logical.windows import written


@dataclass(frozen=True, slots=True)
class Side:
    """One input of a join or a sequence; `input` is None for a table. `window` is None where there can be none.
    `preserved`: its tuples come out whether or not they find a partner."""

    input: Plan | None
    schema: Schema
    prefix: str | None
    window: Window | None
    keys: tuple[str, ...]
    preserved: bool = False

    @property
    def names(self) -> dict[str, str]:
        """Its columns as the output calls them."""
        return {name: prefixed(name, self.prefix) for name in self.schema.names}

    @property
    def key_names(self) -> tuple[str, ...]:
        """Its keys as the output calls them."""
        return tuple(prefixed(key, self.prefix) for key in self.keys)

    @property
    def range(self) -> int | None:
        return None if self.window is None else self.window.range

    @property
    def rows(self) -> int | None:
        return None if self.window is None else self.window.rows

    @property
    def known(self) -> str:
        """As a reader knows it."""
        return self.prefix or ("" if self.input is None else named(self.input, None))

    @property
    def groups(self) -> Groups:
        """The columns of its own that are equal, as the output calls them."""
        below = () if self.input is None else self.input.equal_columns
        return tuple(tuple(prefixed(name, self.prefix) for name in group) for group in below)

    def own(self, names: Names) -> Names:
        """Those of the output's columns that come from it, under its own names."""
        return frozenset(name for name, output in self.names.items() if output in names)

    @property
    def kept(self) -> str:
        """The window as it may be written."""
        return "" if self.window is None else written(self.window, self.schema.unit)


def joined(sides: Iterable[Side]) -> tuple[Attribute, ...]:
    """The attributes of a join's output: one side's after the other's, each under its prefix."""
    return tuple(Attribute(prefixed(a.name, side.prefix), a.type) for side in sides for a in side.schema)


class Joining(Plan):
    """Answers as an inner join does: every result has a tuple of each side, with equal keys. A node of which that is
    not true, or that pairs tuples by their order, answers for itself."""

    __slots__ = ()

    residual: Expression | None
    stateless = False
    punctuates: Names = frozenset()

    @property
    @abstractmethod
    def sides(self) -> tuple[Side, ...]:
        """One for each input, in the order of `inputs`; after them one for a table."""

    @property
    @abstractmethod
    def merges(self) -> bool:
        """Whether it works in the order of time."""

    @property
    def equal(self) -> Groups:
        """The output's key columns, those that are equal together, the first side's first."""
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
        """For each side what takes conditions, given which key columns are equal in every result."""
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
        """With what the sides have taken; `inside` is left to the node."""
        node = self.altered(residual=conjunction(each_once(inside)))
        return Pushed(node, tuple(each_once(sifter.taken) for sifter in sifters), tuple(above))

    def pruned(self, kept: Names) -> tuple[Plan, tuple[Need, ...]]:
        read = kept | columns_read(self.residual)
        return self, tuple(Need(side.own(read) | {*side.keys}, stored=True) for side in self.sides)

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

    def hash_keys(self) -> Iterable[Key]:
        return subsets([names[0] for names in self.equal])

    def keys_below(self, key: Key) -> list[Key] | None:
        places = {name: place for place, names in enumerate(self.equal) for name in names}
        if not all(name in places for name in key):
            return None
        return [tuple(side.keys[places[name]] for name in key) for side in self.sides]

    # --- the contract -----------------------------------------------------------------------------------------------

    def joined_offers(self, inputs: tuple[Offers, ...], leave: Iterable[bool]) -> Offers:
        """The templates of each side whose tuples all `leave`, those on a key under the first side's name; the slowest
        time."""
        first = self.sides[0].key_names
        sides = zip(self.sides, inputs, leave, strict=True)
        found = [
            offers.renamed(side.names | key_names(zip(side.keys, first, strict=True))).templates
            for side, offers, free in sides
            if free
        ]
        time, clocks = slowest(inputs)
        return Offers(time, clocks, distinct(offer for offers in found for offer in offers))


class Paired(Joining):
    """Of two sides; `keys` pairs columns of both."""

    __slots__ = ()

    keys: tuple[tuple[str, str], ...]

    def keys_of(self, place: int) -> tuple[str, ...]:
        return tuple(pair[place] for pair in self.keys)

    def canonical(self, spelled: Callable[[Expression], Expression]) -> Plan:
        residual = None if self.residual is None else spelled(self.residual)
        return self.altered(keys=tuple(sorted(self.keys)), residual=residual)


@dataclass(slots=True)
class Sifter:
    """Takes the conditions that can be told from one side's columns alone, by its own names; `equal` are columns of the
    output that equal one of its keys."""

    side: Side
    equal: Mapping[str, str] = field(default_factory=dict)
    taken: list[Expression] = field(default_factory=list)

    def take(self, condition: Expression) -> bool:
        names = {output: name for name, output in self.side.names.items()} | dict(self.equal)
        columns = condition.columns()
        if self.side.rows or not columns or not columns <= names.keys():
            return False
        self.taken.append(renamed(condition, names, self.side.schema))
        return True
