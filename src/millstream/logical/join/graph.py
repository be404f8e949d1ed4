"""A tree of joins as what it says, whatever its shape: inputs with their windows, equal columns, conditions.

A tree of joins of two checks every part of a result against its own window of the newest part: in the join where the
part comes in, and by conditions (`a.ts >= c.ts - 5`) in those above it. Here each input has one window, and conditions
that only repeat it are gone.

    WindowJoin [RANGE 6], c [RANGE 7] ON a.k = c.k WHERE a.ts >= c.ts - 5 AND b.ts >= c.ts - 6
    └─ WindowJoin a [RANGE 5], b [RANGE 6] ON a.k = b.k

is a [RANGE 5], b [RANGE 6], c [RANGE 7] with a.k = b.k = c.k. A tree that bounds an input differently towards different
others has no such form.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from functools import cached_property

from millstream.algebra.expression import Binary, Column, Expression, Literal, conjuncts
from millstream.algebra.names import equal_classes, prefixed
from millstream.algebra.schema import TS
from millstream.algebra.types import Type, micros
from millstream.algebra.window import UNBOUNDED, Window, widest
from millstream.logical.nodes.kinds.windowed import in_time
from millstream.logical.nodes.project import Project
from millstream.logical.nodes.window_join import WindowJoin
from millstream.logical.plan import Plan

LEAST = 3
"""Joins of fewer inputs are not grouped."""

ENTRY_TIME = "__time"
"""A visible copy of the hidden timestamp, where a stream has no time column of its own."""


@dataclass(frozen=True, slots=True)
class Leaf:
    """An input of the whole tree, its prefix in the output, and its window."""

    plan: Plan
    prefix: str | None
    window: Window = UNBOUNDED

    @property
    def names(self) -> tuple[str, ...]:
        """Its columns as the output calls them."""
        return tuple(prefixed(name, self.prefix) for name in self.plan.schema.names)

    @property
    def time(self) -> Column | None:
        """The output column that holds its timestamp."""
        schema = self.plan.schema
        name = schema.time
        if name is None and isinstance(self.plan, Project):
            copies = (n for n, e in self.plan.items if n == ENTRY_TIME and isinstance(e, Column) and e.name == TS)
            name = next(copies, None)
        return None if name is None else Column(schema.type_of(name), prefixed(name, self.prefix))


@dataclass(frozen=True)
class JoinGraph:
    """`equal` are the classes of equal columns, `residual` all other conditions, over output columns."""

    leaves: tuple[Leaf, ...]
    equal: tuple[tuple[str, ...], ...]
    residual: tuple[Expression, ...]

    @cached_property
    def owner(self) -> dict[str, int]:
        """The input that each output column comes from."""
        return {name: place for place, leaf in enumerate(self.leaves) for name in leaf.names}

    def reads(self, condition: Expression) -> frozenset[int]:
        """The inputs whose columns a condition reads."""
        return frozenset(self.owner[name] for name in condition.columns() if name in self.owner)

    def groups(self) -> tuple[tuple[int, ...], ...]:
        """Disjoint sets of at least three inputs with a common attribute, the largest first."""
        left = set(range(len(self.leaves)))
        found: list[tuple[int, ...]] = []
        while True:
            having = [sorted({self.owner[name] for name in names} & left) for names in self.equal]
            largest = max(having, key=len, default=[])
            if len(largest) < LEAST:
                return tuple(found)
            found.append(tuple(largest))
            left -= set(largest)


def join_graph(plan: WindowJoin) -> JoinGraph | None:
    """The graph of a tree of joins of at least three inputs; None if it has none."""
    made = _Collected()
    made.collect(plan, None)
    if len(made.leaves) < LEAST:
        return None
    return made.graph()


@dataclass(slots=True)
class _Collected:
    leaves: list[Leaf] = field(default_factory=list)
    pairs: list[tuple[str, str]] = field(default_factory=list)
    conditions: list[Expression] = field(default_factory=list)
    sides: list[tuple[list[int], list[int], Window]] = field(default_factory=list)
    """Per side of each join: its inputs, those of the other side, its window."""

    def collect(self, plan: Plan, prefix: str | None) -> list[int]:
        if prefix is None and isinstance(plan, Project) and isinstance(plan.input, WindowJoin) and _narrows(plan):
            plan = plan.input
        if not isinstance(plan, WindowJoin) or prefix is not None:
            self.leaves.append(Leaf(plan, prefix))
            return [len(self.leaves) - 1]
        left = self.collect(plan.left, plan.left_prefix)
        right = self.collect(plan.right, plan.right_prefix)
        self.pairs += [(prefixed(a, plan.left_prefix), prefixed(b, plan.right_prefix)) for a, b in plan.keys]
        self.conditions += conjuncts(plan.residual)
        self.sides += [(left, right, plan.left_window), (right, left, plan.right_window)]
        return left + right

    def graph(self) -> JoinGraph | None:
        count = len(self.leaves)
        written: dict[tuple[int, int], int] = {}
        rows: dict[int, Window] = {}
        composites: list[tuple[list[int], list[int], int]] = []
        for own, others, window in self.sides:
            if window.rows is not None:
                if len(own) > 1 or len(others) < count - 1:
                    return None
                rows[own[0]] = window
            elif window.range is not None and len(own) == 1:
                written |= {(own[0], other): window.range for other in others}
            elif window.range is not None:
                composites.append((own, others, window.range))
        said = self._said()
        limits = {
            key: min(limit for limit in (written.get(key), said.get(key)) if limit is not None)
            for key in written.keys() | said.keys()
        }
        for own, others, length in composites:
            if not any(all(limits.get((i, j), length + 1) <= length for j in others) for i in own):
                return None
        windows = [rows.get(i) or widest([limits.get((i, j)) for j in range(count) if j != i]) for i in range(count)]
        if any(i not in rows and _shorter(limit, windows[i]) for (i, _), limit in written.items()):
            return None
        leaves = tuple(Leaf(leaf.plan, leaf.prefix, window) for leaf, window in zip(self.leaves, windows, strict=True))
        if rows and not _ordered(leaves):
            # What is the last n then depends on when a join is given its input.
            return None
        residual = tuple(c for c in self.conditions if not self._repeats(c, windows))
        return JoinGraph(leaves, equal_classes(self.pairs), residual)

    def _times(self) -> dict[str, int]:
        return {leaf.time.name: place for place, leaf in enumerate(self.leaves) if leaf.time is not None}

    def _said(self) -> dict[tuple[int, int], int]:
        """How much older one input may be than another, as conditions say it."""
        times, found = self._times(), dict[tuple[int, int], int]()
        for condition in self.conditions:
            bound = _at_most_older(condition, times)
            if bound is not None:
                key, length = bound
                found[key] = min(length, found.get(key, length))
        return found

    def _repeats(self, condition: Expression, windows: list[Window]) -> bool:
        """Whether a condition says nothing that a window does not say."""
        bound = _at_most_older(condition, self._times())
        if bound is None:
            return False
        (older, _), length = bound
        own = windows[older].range
        return own is not None and own <= length


def _narrows(plan: Project) -> bool:
    """Whether a projection only leaves columns out."""
    return all(isinstance(item, Column) and item.name == name for name, item in plan.items)


def _shorter(limit: int, window: Window) -> bool:
    return window.range is None or limit < window.range


def _ordered(leaves: tuple[Leaf, ...]) -> bool:
    """Whether a join of the inputs processes in timestamp order."""
    timely = in_time((leaf.plan.schema for leaf in leaves), (leaf.window for leaf in leaves))
    return timely and sum(leaf.window == UNBOUNDED for leaf in leaves) <= 1


def _at_most_older(condition: Expression, times: dict[str, int]) -> tuple[tuple[int, int], int] | None:
    """`older >= newer - length`: the inputs of both times, and the length."""
    match condition:
        case Binary(
            op=">=", left=Column(name=older), right=Binary(op="-", left=Column(name=newer), right=Literal(value=value))
        ) if older in times and newer in times and times[older] != times[newer]:
            length = micros(value) if isinstance(value, timedelta) else value
            if isinstance(length, int) and length >= 0:
                return (times[older], times[newer]), length
    return None


def within(older: Column, newer: Column, length: int) -> Expression:
    """The condition that one input is at most so much older than another."""
    timed = older.type.polars.is_temporal()
    literal = Literal(Type.INTERVAL, timedelta(microseconds=length)) if timed else Literal(Type.BIGINT, length)
    return Binary(Type.BOOLEAN, ">=", older, Binary(newer.type, "-", newer, literal))
