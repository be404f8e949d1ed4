"""Join graphs: the meaning of a tree of joins, whatever its shape: inputs with windows, equal columns, conditions.

A tree of binary joins checks that every part of a result is within its own window of the newest part: in the join that
reads the part, and by conditions (`a.ts >= c.ts - 5`) in the joins above. In the graph each input has one window, and
conditions that only repeat it are gone.

    WindowJoin [RANGE 6], c [RANGE 7] ON a.k = c.k WHERE a.ts >= c.ts - 5 AND b.ts >= c.ts - 6
    └─ WindowJoin a [RANGE 5], b [RANGE 6] ON a.k = b.k

is a [RANGE 5], b [RANGE 6], c [RANGE 7] with a.k = b.k = c.k. A tree that bounds an input differently relative to
different other inputs has no graph.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
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
"""The fewest inputs of a graph."""

ENTRY_TIME = "__time"
"""A visible copy of the hidden timestamp, for a stream without a time column."""


@dataclass(frozen=True, slots=True)
class JoinInput:
    """An input of the whole tree, its prefix in the output, and its window."""

    plan: Plan
    prefix: str | None
    window: Window = UNBOUNDED

    @property
    def names(self) -> tuple[str, ...]:
        """Its columns under their names in the output."""
        return tuple(prefixed(name, self.prefix) for name in self.plan.schema.names)

    def own_name(self, name: str) -> str:
        """Return its own name of an output column."""
        return self.plan.schema.names[self.names.index(name)]

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
    """`equal` are the classes of equal columns, `residual` all other conditions; both name output columns."""

    inputs: tuple[JoinInput, ...]
    equal: tuple[tuple[str, ...], ...]
    residual: tuple[Expression, ...]

    @cached_property
    def owner(self) -> dict[str, int]:
        """The position of the input of each output column."""
        return {name: place for place, input_ in enumerate(self.inputs) for name in input_.names}

    def reads(self, condition: Expression) -> frozenset[int]:
        """Return the inputs whose columns a condition reads."""
        return frozenset(self.owner[name] for name in condition.columns() if name in self.owner)

    def groups(self) -> tuple[tuple[int, ...], ...]:
        """Return disjoint sets of at least three inputs with a common attribute, the largest first."""
        left = set(range(len(self.inputs)))
        found: list[tuple[int, ...]] = []
        while True:
            having = [sorted({self.owner[name] for name in names} & left) for names in self.equal]
            largest = max(having, key=len, default=[])
            if len(largest) < LEAST:
                return tuple(found)
            found.append(tuple(largest))
            left -= set(largest)


def join_graph(plan: WindowJoin) -> JoinGraph | None:
    """Return the graph of a tree of joins of at least three inputs; None if there is none."""
    tree = _Tree()
    tree.collect(plan, None)
    return tree.graph() if len(tree.inputs) >= LEAST else None


@dataclass(slots=True)
class _Tree:
    inputs: list[JoinInput] = field(default_factory=list)
    pairs: list[tuple[str, str]] = field(default_factory=list)
    conditions: list[Expression] = field(default_factory=list)
    sides: list[tuple[list[int], list[int], Window]] = field(default_factory=list)
    """For each side of each join: its inputs, those of the other side, its window."""

    def collect(self, plan: Plan, prefix: str | None) -> list[int]:
        if prefix is None and isinstance(plan, Project) and isinstance(plan.input, WindowJoin) and _narrows(plan):
            plan = plan.input
        if not isinstance(plan, WindowJoin) or prefix is not None:
            self.inputs.append(JoinInput(plan, prefix))
            return [len(self.inputs) - 1]
        left = self.collect(plan.left, plan.left_prefix)
        right = self.collect(plan.right, plan.right_prefix)
        self.pairs += [(prefixed(a, plan.left_prefix), prefixed(b, plan.right_prefix)) for a, b in plan.keys]
        self.conditions += conjuncts(plan.residual)
        self.sides += [(left, right, plan.left_window), (right, left, plan.right_window)]
        return left + right

    def graph(self) -> JoinGraph | None:
        count = len(self.inputs)
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
        times = {input_.time.name: place for place, input_ in enumerate(self.inputs) if input_.time is not None}
        bounds = [(c, bound) for c in self.conditions if (bound := _at_most_older(c, times)) is not None]
        limits = dict(written)
        for _, (pair, length) in bounds:
            limits[pair] = min(length, limits.get(pair, length))
        for own, others, length in composites:
            if not any(all(limits.get((i, j), length + 1) <= length for j in others) for i in own):
                return None
        windows = [rows.get(i) or widest([limits.get((i, j)) for j in range(count) if j != i]) for i in range(count)]
        if any(i not in rows and _shorter(limit, windows[i]) for (i, _), limit in written.items()):
            return None
        in_order = in_time((input_.plan.schema for input_ in self.inputs), windows) and windows.count(UNBOUNDED) <= 1
        if rows and not in_order:
            # Which tuples are the last n then depends on when a join gets its input.
            return None
        implied = [c for c, ((older, _), length) in bounds if not _shorter(length, windows[older])]
        residual = tuple(c for c in self.conditions if c not in implied)
        inputs = (replace(input_, window=window) for input_, window in zip(self.inputs, windows, strict=True))
        return JoinGraph(tuple(inputs), equal_classes(self.pairs), residual)


def _narrows(plan: Project) -> bool:
    """True if a projection only drops columns."""
    return all(isinstance(item, Column) and item.name == name for name, item in plan.items)


def _shorter(limit: int, window: Window) -> bool:
    return window.range is None or limit < window.range


def _at_most_older(condition: Expression, times: dict[str, int]) -> tuple[tuple[int, int], int] | None:
    """Match `older >= newer - length`; return the inputs of both times, and the length."""
    match condition:
        case Binary(
            op=">=", left=Column(name=older), right=Binary(op="-", left=Column(name=newer), right=Literal(value=value))
        ) if older in times and newer in times and times[older] != times[newer]:
            length = micros(value) if isinstance(value, timedelta) else value
            if isinstance(length, int) and length >= 0:
                return (times[older], times[newer]), length
    return None


def within(older: Column, newer: Column, length: int) -> Expression:
    """Return the condition that `older` is at most `length` older than `newer`."""
    timed = older.type.polars.is_temporal()
    literal = Literal(Type.INTERVAL, timedelta(microseconds=length)) if timed else Literal(Type.BIGINT, length)
    return Binary(Type.BOOLEAN, ">=", older, Binary(newer.type, "-", newer, literal))
