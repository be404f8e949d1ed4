"""The logical plan: frozen nodes whose schema and stream properties are derived from their fields.

Equal sub-plans are equal values, so queries with equal lower parts share operators. Columns inside a plan have the
names of their stream; a join prefixes each side's columns with its alias (`a.price`) unless the side is itself a join.

Planners hold the recursion and the policies; nodes answer their questions. `Plan` lists the questions. A node answers
them in its own file (`nodes`), or through a base class of its kind. `Plan` has a default only where it is correct for
every node, if not optimal: no condition is pushed down, all columns are needed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields, replace
from functools import wraps
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar

from millstream.algebra.expression import Expression
from millstream.algebra.names import Groups
from millstream.algebra.punctuation.pattern import Pattern
from millstream.algebra.punctuation.scheme import NO_FEEDBACK, FeedbackScheme
from millstream.algebra.response import UNKNOWN, Response, Rule, applying
from millstream.algebra.schema import TS, Schema
from millstream.algebra.values import fields_of, value
from millstream.logical.disclaimed import Omitted, omitted

if TYPE_CHECKING:
    from millstream.logical.contract.offers import Offers
    from millstream.logical.contract.requirements import Requirement
    from millstream.logical.contract.state_parts import StatePart

R = TypeVar("R")
Names = frozenset[str]
Key = tuple[str, ...]
"""The columns of a hash key."""
EVERYWHERE: Key = ()
"""The empty hash key: every shard gets every tuple."""
Conditions = tuple[Expression, ...]

NODES: dict[str, type[Plan]] = {}
"""The imported nodes by stem; `nodes.load` imports all nodes of the logical plan."""


@dataclass(frozen=True, slots=True)
class Need:
    """The columns that a node needs from one input. `stored`: the node stores the tuples, so the input should have no
    other columns. `exact`: the input must have just these columns, in their order."""

    names: Names
    stored: bool = False
    exact: bool = False


@dataclass(frozen=True, slots=True)
class Pushed:
    """Conditions on a node's result, divided: `node` tests some itself, some are pushed `below` into each input, and
    the rest must be tested `above`."""

    node: Plan
    below: tuple[Conditions, ...]
    above: Conditions = ()


class _Node:
    """What tells a plan node from other values of its fields: to ask an abstract class takes ten times as long."""

    __slots__ = ("_inputs", "_schema")


def _once(slot: str) -> Callable[[Callable[[Any], R]], Callable[[Any], R]]:
    """Let a property be derived when it is first asked for: planners ask many times."""

    def kept(derive: Callable[[Any], R]) -> Callable[[Any], R]:
        @wraps(derive)
        def found(node: Any) -> R:
            try:
                return getattr(node, slot)  # type: ignore[no-any-return]
            except AttributeError:
                object.__setattr__(node, slot, made := derive(node))
                return made

        return found

    return kept


@dataclass(frozen=True, slots=True)
class Plan(_Node, ABC):
    stem: ClassVar[str]
    """The operator's name in every layer: node, worker operator, reference, docs page."""
    page: ClassVar[str] = ""
    """The docs page, if its name is not the stem."""
    runs: ClassVar[bool] = True
    """False for a node that exists only during planning."""

    def __init_subclass__(cls) -> None:
        if "schema" in cls.__dict__:
            cls.schema = property(_once("_schema")(cls.__dict__["schema"].fget))  # type: ignore[assignment]
        # A dataclass with slots is created twice; the second class is the one in use.
        if "stem" in cls.__dict__:
            NODES[cls.stem] = value(cls.stem)(cls)

    # --- structure --------------------------------------------------------------------------------------------------

    @property
    @abstractmethod
    def schema(self) -> Schema:
        """The schema of the output, derived from the schemas of the inputs."""

    @property
    @_once("_inputs")
    def inputs(self) -> tuple[Plan, ...]:
        found: list[Any] = []
        for name in fields_of(type(self)):
            value = getattr(self, name)
            found += [p for p in (value if isinstance(value, tuple) else (value,)) if isinstance(p, _Node)]
        return tuple(found)

    def with_inputs(self, inputs: tuple[Plan, ...]) -> Self:
        """Return the node over other inputs, in the order of `inputs`."""
        remaining = iter(inputs)
        changed: dict[str, Any] = {}
        for part in fields(self):
            value = getattr(self, part.name)
            if isinstance(value, Plan):
                changed[part.name] = next(remaining)
            elif isinstance(value, tuple) and any(isinstance(item, Plan) for item in value):
                changed[part.name] = tuple(next(remaining) for _ in value)
        return replace(self, **changed)

    def altered(self, **changed: Any) -> Self:
        """Return the node with other values in some fields."""
        return replace(self, **changed)

    def walk(self) -> Iterator[Plan]:
        """Yield all nodes, inputs before the nodes that read them."""
        for plan in self.inputs:
            yield from plan.walk()
        yield self

    @property
    def contributing(self) -> tuple[Plan, ...]:
        """The inputs whose tuples appear in the output."""
        return self.inputs

    @property
    def timed_by(self) -> tuple[Plan, ...]:
        """The inputs whose timestamps appear in the output."""
        return self.contributing

    # --- EXPLAIN ----------------------------------------------------------------------------------------------------

    @abstractmethod
    def describe(self) -> str:
        """Return the node with its parameters on one line."""

    # --- the optimizer ----------------------------------------------------------------------------------------------

    def canonical(self, spelled: Callable[[Expression], Expression]) -> Plan:
        """Return the node with its conditions, and everything else whose order is irrelevant, in canonical spelling."""
        return self

    def push(self, conditions: Conditions) -> Pushed:
        """Push conditions on the result down as far as possible; by default none below the node."""
        return Pushed(self, ((),) * len(self.inputs), conditions)

    def pruned(self, kept: Names) -> tuple[Plan, tuple[Need, ...]]:
        """Return the node reduced to the result columns `kept`, and what it then needs from each input; by default
        all columns."""
        return self, tuple(Need(frozenset(input_.schema.names)) for input_ in self.inputs)

    @abstractmethod
    def copied(self, column: str) -> tuple[tuple[int, str], ...]:
        """Return the input columns that a result column copies, each after the position of its input; none if
        computed."""

    @property
    @abstractmethod
    def punctuates(self) -> Names:
        """The result columns, apart from time, that punctuation made by this node may restrict."""

    def carried(self, below: tuple[Names, ...]) -> Names:
        """Return the result columns that punctuation may restrict, given those of each input."""
        own = {self.schema.time} - {None} | self.punctuates
        return frozenset(n for n in self.schema.names if n in own or any(c in below[i] for i, c in self.copied(n)))

    @property
    @abstractmethod
    def equal_columns(self) -> Groups:
        """Groups of result columns that a join made equal in every tuple."""

    # --- feedback ---------------------------------------------------------------------------------------------------

    rules: ClassVar[tuple[Rule, ...]] = (UNKNOWN,)
    """Its responses to feedback; the first that applies to a pattern counts. By default its output is guarded."""

    def respond(self, pattern: Pattern) -> Response:
        """Return the response to feedback: no result that matches the pattern is wanted."""
        below, watched = self.disclaimed(pattern), self.watched(pattern)
        told = watched is not None or any(each is not None for each in below)
        return Response(applying(self.rules, below, watched), below, watched, () if told else self.parts(pattern))

    def disclaimed(self, pattern: Pattern) -> Omitted:
        """Return the tuples that each input may omit if no result that matches the pattern is wanted; by default those
        that a condition would drop that is pushed down."""
        return omitted(self, pattern)

    def parts(self, pattern: Pattern) -> tuple[Pattern, ...]:
        """Return patterns that match the same results, and to which it responds, though not to the pattern itself."""
        return ()

    def feedback_sent(self, inputs: tuple[Offers, ...]) -> tuple[FeedbackScheme, ...]:
        """Return the assumed feedback that it sends to each input by itself, whatever it receives, if inputs promise
        this; by default none."""
        return (NO_FEEDBACK,) * len(self.inputs)

    def watched(self, pattern: Pattern) -> Pattern | None:
        """Return the pattern if a result that matches it now will match it when it is emitted, so that what it is
        computed of can be given up; else None."""
        return None

    # --- partitioning -----------------------------------------------------------------------------------------------

    @property
    @abstractmethod
    def stateless(self) -> bool:
        """True if it processes its one input tuple by tuple, on any shard."""

    @property
    @abstractmethod
    def positional(self) -> bool:
        """True if a result depends on the position of tuples with equal timestamps."""

    @property
    @abstractmethod
    def holds_time(self) -> bool:
        """True if the time of its output depends on the tuples that it holds, so that each shard has a time of its
        own."""

    @property
    def reads_time(self) -> bool:
        """True if the time of its inputs makes it emit or purge."""
        return not self.stateless

    @property
    def holds_punctuation(self) -> bool:
        """True if it holds punctuation back while it stores tuples that match, so that each shard emits it at a time of
        its own."""
        return not self.stateless

    def reads_punctuation(self, place: int, columns: Names) -> bool:
        """True if punctuation of an input that restricts these columns, and is not implied by its time, makes it emit
        or purge."""
        return not self.stateless

    @abstractmethod
    def hash_keys(self) -> Iterable[Key]:
        """Return the keys over the output worth trying, for a node that is not stateless."""

    @abstractmethod
    def keys_below(self, key: Key) -> list[Key] | None:
        """Return the key of each input if the output is hashed on `key`; None if the node cannot be partitioned so."""

    # --- queries that share it --------------------------------------------------------------------------------------

    common: ClassVar[bool] = False
    """True if all queries in a shard read one operator, whenever they were added."""
    silent: ClassVar[bool] = False
    """True if a query that ends in it has no results."""
    finite: ClassVar[bool] = False
    """True if its output is complete some time while its input goes on."""

    def owned(self, query: str, *, inner: bool) -> Plan:
        """Return the node for one query alone, if its state is that of a query; `inner`: it is in a subquery."""
        return self

    @property
    def forgets(self) -> bool:
        """True if its output does not depend on tuples or punctuations before: queries that read from different points
        share its operator."""
        return False

    @property
    def keeps(self) -> str:
        """The table whose rows it keeps while streams write them; empty: none."""
        return ""

    @property
    def looks_up(self) -> str:
        """The table whose rows it has from the start, which no stream writes; empty: none."""
        return ""

    @property
    def empty(self) -> bool:
        """True if it emits nothing at all."""
        return False

    @property
    def writes(self) -> str:
        """The table that it writes; empty: none."""
        return ""

    # --- prods ------------------------------------------------------------------------------------------------------

    passes_prods: ClassVar[bool] = False
    """True if it adds no rows to the prods that it passes on."""
    passes_answers: ClassVar[bool] = False
    """True if the answers of an operator below it to prods are answers when they have passed it."""

    @property
    def answers(self) -> bool:
        """True if it answers prods, or has a part in the answers of an operator below it."""
        return False

    @property
    def asked(self) -> tuple[str, ...]:
        """If it may answer prods of a query: the columns of its output that they may restrict."""
        return ()

    # --- the contract -----------------------------------------------------------------------------------------------
    # The next two answers are its contract form (`contract.form`): they must be monotone in what the inputs promise.

    @abstractmethod
    def state_parts(self, inputs: tuple[Offers, ...]) -> tuple[StatePart, ...]:
        """Return the parts of its state, given what its inputs promise."""

    @abstractmethod
    def passes_on(self, inputs: tuple[Offers, ...], parts: tuple[StatePart, ...]) -> Offers:
        """Return what it promises the node above, given its inputs' promises and its state; no tuple waits for ever."""

    def requirements(self, part: StatePart) -> Iterator[Requirement]:
        """Yield what its inputs would have to promise to bound a part of its state, the likeliest first."""
        return iter(())

    def advice(self, part: StatePart, inputs: tuple[Offers, ...]) -> list[str]:
        """Return changes to the query that would bound a part of its state."""
        return []

    # --- the worker -------------------------------------------------------------------------------------------------

    @abstractmethod
    def parameters(self) -> dict[str, Any]:
        """Return the arguments of its worker operator."""

    def values(self, *names: str) -> dict[str, Any]:
        """Return the named attributes."""
        return {name: getattr(self, name) for name in names}


def columns_read(*expressions: Expression | None) -> Names:
    """Return the columns that expressions read, without the hidden timestamp."""
    return frozenset(name for e in expressions if e is not None for name in e.columns() if name != TS)


def each_once(conditions: Iterable[Expression]) -> Conditions:
    return tuple(dict.fromkeys(conditions))


def subsets(names: list[str]) -> Iterator[Key]:
    """Yield all columns of a key together, then each alone."""
    if names:
        yield tuple(names)
    if len(names) > 1:
        yield from ((name,) for name in names)
