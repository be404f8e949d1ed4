"""The plan node of a join of several inputs on common keys."""

from __future__ import annotations

from dataclasses import dataclass, replace

from millstream.algebra.expression import Expression
from millstream.algebra.schema import Attribute, Schema
from millstream.logical.plan import UNBOUNDED, Plan, Window, WindowJoin, in_time


def prefixed(name: str, prefix: str | None) -> str:
    return f"{prefix}.{name}" if prefix else name


@dataclass(frozen=True, slots=True)
class MultiJoin(Plan):
    """Combinations of one tuple of each member, each within its own window of the newest. `keys[i]` are columns of
    member i, those at the same place equal over all members; `residual` is over output columns."""

    members: tuple[Plan, ...]
    windows: tuple[Window, ...]
    keys: tuple[tuple[str, ...], ...]
    residual: Expression | None = None
    prefixes: tuple[str | None, ...] = ()

    @property
    def merges(self) -> bool:
        """Whether it processes in timestamp order: all inputs are `in_time`, and at most one is without a window. So
        does a tree of joins of two, whatever its order. With a window that counts rows it does in any case: which are
        the last n would otherwise depend on arrival."""
        counts = any(window.rows is not None for window in self.windows)
        timely = in_time((member.schema for member in self.members), self.windows)
        return timely and (counts or self.windows.count(UNBOUNDED) <= 1)

    @property
    def schema(self) -> Schema:
        attributes = tuple(
            Attribute(prefixed(a.name, prefix), a.type)
            for member, prefix in zip(self.members, self.prefixes, strict=True)
            for a in member.schema
        )
        moves = all(member.schema.moves for member in self.members)
        return replace(self.members[0].schema, attributes=attributes, time=None, ordered=self.merges, moves=moves)

    def pair(self, i: int, j: int) -> WindowJoin:
        """The join of two members alone, which says what one does to the other's tuples."""
        windows, prefixes = (self.windows[i], self.windows[j]), (self.prefixes[i], self.prefixes[j])
        keys = tuple(zip(self.keys[i], self.keys[j], strict=True))
        return WindowJoin(self.members[i], self.members[j], *windows, keys, None, *prefixes)

    @property
    def equal(self) -> tuple[tuple[str, ...], ...]:
        """The output's key columns, those that are equal together, the first member's first."""
        named = [[prefixed(k, prefix) for k in own] for own, prefix in zip(self.keys, self.prefixes, strict=True)]
        return tuple(zip(*named, strict=True))
