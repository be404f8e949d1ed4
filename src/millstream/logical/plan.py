"""The logical plan: frozen nodes; schema and stream properties are derived, never stored.

Equal sub-plans are equal values, which is how queries that start alike share operators. Columns inside a plan have the
names of their stream; a join prefixes each side's columns with its alias (`a.price`) unless the side is itself a join.

Planners keep the recursion and the policies and ask each node what they need to know of it. `Plan` lists the questions;
a node answers them in its own file (`nodes`), alone or through a base that it shares with its like. `Plan` itself gives
an answer only where it is right for every node, if not the best one: nothing goes below, all columns are needed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

from millstream.algebra.expression import Expression
from millstream.algebra.names import Groups
from millstream.algebra.schema import TS, Schema
from millstream.algebra.values import value

if TYPE_CHECKING:
    from millstream.logical.contract.offers import Offers
    from millstream.logical.contract.state_parts import Cure, StatePart

Names = frozenset[str]
Key = tuple[str, ...]
"""The columns that something is hashed on."""
EVERYWHERE: Key = ()
"""Hashed on nothing: all shards have all of it."""
Conditions = tuple[Expression, ...]

NODES: dict[str, type[Plan]] = {}
"""The nodes that have been imported, by stem; `nodes.load` imports those of the logical plan."""


@dataclass(frozen=True, slots=True)
class Need:
    """The columns that a node needs of one input. `stored`: tuples stay in its state, so that no others should come;
    `exact`: just these, in the order that they have there."""

    names: Names
    stored: bool = False
    exact: bool = False


@dataclass(frozen=True, slots=True)
class Pushed:
    """Conditions on a node's result, divided: those that `node` now tests itself, those that each input can be asked to
    satisfy, and those that have to be tested above."""

    node: Plan
    below: tuple[Conditions, ...]
    above: Conditions = ()


@dataclass(frozen=True, slots=True)
class Plan(ABC):
    stem: ClassVar[str]
    """Names the operator in every layer: node, worker operator, reference, docs page."""
    page: ClassVar[str] = ""
    """The docs page, where its name is not the stem."""
    runs: ClassVar[bool] = True
    """Whether it stands in plans that run; False: only while a plan is made."""

    def __init_subclass__(cls) -> None:
        # A dataclass with slots is made twice; the second class is the one that is used.
        if "stem" in cls.__dict__:
            NODES[cls.stem] = value(cls.stem)(cls)

    # --- structure --------------------------------------------------------------------------------------------------

    @property
    @abstractmethod
    def schema(self) -> Schema:
        """The schema of the output, derived from the inputs'."""

    @property
    def inputs(self) -> tuple[Plan, ...]:
        found: list[Plan] = []
        for part in fields(self):
            value = getattr(self, part.name)
            found += [p for p in (value if isinstance(value, tuple) else (value,)) if isinstance(p, Plan)]
        return tuple(found)

    def with_inputs(self, inputs: tuple[Plan, ...]) -> Self:
        """The same node over other inputs, given in the order of `inputs`."""
        left = list(inputs)
        changed: dict[str, Any] = {}
        for part in fields(self):
            value = getattr(self, part.name)
            if isinstance(value, Plan):
                changed[part.name] = left.pop(0)
            elif isinstance(value, tuple) and any(isinstance(item, Plan) for item in value):
                changed[part.name] = tuple(left.pop(0) for _ in value)
        return replace(self, **changed)

    def altered(self, **changed: Any) -> Self:
        """The same node with other values in some fields."""
        return replace(self, **changed)

    def walk(self) -> Iterator[Plan]:
        """All nodes, inputs before the nodes that read them."""
        for plan in self.inputs:
            yield from plan.walk()
        yield self

    @property
    def contributing(self) -> tuple[Plan, ...]:
        """The inputs whose tuples the output is made of."""
        return self.inputs

    # --- EXPLAIN ----------------------------------------------------------------------------------------------------

    @abstractmethod
    def describe(self) -> str:
        """The node with its parameters, on one line."""

    # --- the optimizer ----------------------------------------------------------------------------------------------

    def canonical(self, spelled: Callable[[Expression], Expression]) -> Plan:
        """The node with its conditions, and whatever else has an order that means nothing, in canonical spelling."""
        return self

    def push(self, conditions: Conditions) -> Pushed:
        """Where conditions on the result can be tested; above the node in any case."""
        return Pushed(self, ((),) * len(self.inputs), conditions)

    def pruned(self, kept: Names) -> tuple[Plan, tuple[Need, ...]]:
        """The node without what only other result columns than these need, and what that asks of each input: in any
        case all columns are enough."""
        return self, tuple(Need(frozenset(input_.schema.names)) for input_ in self.inputs)

    @abstractmethod
    def copied(self, column: str) -> tuple[tuple[int, str], ...]:
        """The columns of which a result column is a copy, each with the position of its input; none: it is computed."""

    @property
    @abstractmethod
    def punctuates(self) -> Names:
        """The result columns that punctuation of the node's own making may restrict, beside its time."""

    def carried(self, below: tuple[Names, ...]) -> Names:
        """The result columns that punctuation may restrict, given those of each input."""
        own = {self.schema.time} - {None} | self.punctuates
        return frozenset(n for n in self.schema.names if n in own or any(c in below[i] for i, c in self.copied(n)))

    @property
    @abstractmethod
    def equal_columns(self) -> Groups:
        """Groups of result columns that are equal in every tuple, because a join made them so."""

    # --- partitioning -----------------------------------------------------------------------------------------------

    @property
    @abstractmethod
    def stateless(self) -> bool:
        """Whether it works tuple by tuple on one input and does not care on which shard."""

    @property
    @abstractmethod
    def positional(self) -> bool:
        """Whether some result depends on the position of tuples of equal time."""

    @abstractmethod
    def hash_keys(self) -> Iterable[Key]:
        """Keys over the output that are worth trying, for a node that is not stateless."""

    @abstractmethod
    def keys_below(self, key: Key) -> list[Key] | None:
        """What hashing the output on `key` asks of each input, or None if the node cannot work so."""

    # --- the contract -----------------------------------------------------------------------------------------------

    @abstractmethod
    def parts(self, inputs: tuple[Offers, ...]) -> tuple[StatePart, ...]:
        """The parts of its state, given what its inputs promise."""

    @abstractmethod
    def passes_on(self, inputs: tuple[Offers, ...], parts: tuple[StatePart, ...]) -> Offers:
        """What it promises its reader, given its inputs' promises and its state; nothing in it waits for ever."""

    def cures(self, part: StatePart) -> Iterator[Cure]:
        """What its inputs would have to promise to bound a part of its state, the likeliest first."""
        return iter(())

    def advice(self, part: StatePart, inputs: tuple[Offers, ...]) -> list[str]:
        """What else in the query would bound a part of its state."""
        return []

    # --- the worker -------------------------------------------------------------------------------------------------

    @abstractmethod
    def parameters(self) -> dict[str, Any]:
        """The plain values that its worker operator is made of."""

    def values(self, *names: str) -> dict[str, Any]:
        """Properties by name."""
        return {name: getattr(self, name) for name in names}


def columns_read(*expressions: Expression | None) -> Names:
    """The columns that expressions read, beside the hidden timestamp."""
    return frozenset(name for e in expressions if e is not None for name in e.columns() if name != TS)


def each_once(conditions: Iterable[Expression]) -> Conditions:
    return tuple(dict.fromkeys(conditions))


def subsets(names: list[str]) -> Iterator[Key]:
    """All columns of a key together, then each alone."""
    if names:
        yield tuple(names)
    if len(names) > 1:
        yield from ((name,) for name in names)
