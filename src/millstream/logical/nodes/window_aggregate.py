"""Grouped aggregates per window. A condition on group columns alone is pushed below."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from millstream.algebra.aggregate.call import AggregateCall
from millstream.algebra.early import FINALITY
from millstream.algebra.punctuation.pattern import Pattern
from millstream.algebra.punctuation.restriction import Restriction
from millstream.algebra.schema import Attribute, Schema
from millstream.algebra.types import Type
from millstream.algebra.window import PANE_END, WINDOW_END, WINDOW_START
from millstream.algebra.window_patterns import panes_of
from millstream.algebra.windower import Windower
from millstream.logical import two_levels
from millstream.logical.contract.offers import Offers, Time
from millstream.logical.contract.state_parts import StatePart
from millstream.logical.nodes.kinds.grouped import Grouped
from millstream.logical.plan import Conditions, Names, Need, Plan, Pushed
from millstream.logical.windows import spelled


@dataclass(frozen=True, slots=True)
class WindowAggregate(Grouped):
    """Grouped aggregates per window.

    `windows is None`: no windows; a group's row is emitted when punctuation closes the group. `attribute` is the
    windowing attribute (the hidden timestamp by default); time or punctuation on it bounds it. Output: `window_start`,
    `window_end` (if there are windows), the group columns, the aggregates. With `over_panes` the input is a
    PaneAggregate of the same calls and groups, whose partial results are merged. With `partials` the input has partial
    results of the same calls and groups, by pane, which sources computed.
    """

    stem = "window_aggregate"

    input: Plan
    windows: Windower | None
    group: tuple[str, ...]
    aggregates: tuple[AggregateCall, ...]
    attribute: str | None = None
    over_panes: bool = False
    partials: bool = field(default=False, repr=False)
    finality: bool = False
    """True if a last column tells early rows from final ones."""
    early: str = ""
    """"top": it answers prods for the reader of the query; "inner": for an aggregate above; "": it does not."""
    increments: bool = False
    """True if the panes below are released by prods."""

    @property
    def schema(self) -> Schema:
        source, windows = self.input.schema, self.windows
        kind = self.end_type(source)
        ends = (Attribute(WINDOW_START, kind), Attribute(WINDOW_END, kind)) if windows is not None else ()
        values = tuple(Attribute(call.name, call.type) for call in self.aggregates)
        marks = (Attribute(FINALITY, Type.VARCHAR),) if self.finality else ()
        attributes = ends + self.group_attributes(source) + values + marks
        if windows is not None and self.attribute is None:
            starts = ((WINDOW_START, windows.start(1)),) if windows.of_one_length else ()
            offsets = (*starts, (WINDOW_END, 1))
            return replace(source, attributes=attributes, time=None, follows=(), offsets=offsets)
        # A row has the time of its newest tuple: groups by time keep it, and follow it as their tuples do.
        time = source.time if windows is None and source.time in self.group else None
        trails = source.trails
        times = {name: offset for name, offset in source.times.items() if name in self.group and name != time}
        followed = ((name, value) for name, value in trails.items() if name in self.group and name != time)
        closes = not trails.keys().isdisjoint((*self.group, *([self.attribute] if self.attribute else [])))
        return replace(
            source,
            attributes=attributes,
            time=time,
            ordered=source.ordered and windows is None and bool(time or times),
            moves=source.moves and closes,
            follows=tuple(item for item in followed if item[0] not in times),
            offsets=tuple(times.items()),
        )

    @property
    def in_panes(self) -> bool:
        """True if it holds panes and makes windows of them when they close."""
        return two_levels.of_state(self) is not None

    @property
    def held(self) -> str:
        return "groups" if self.windows is None else "panes" if self.in_panes else "windows"

    @property
    def end(self) -> str | None:
        return None if self.windows is None else WINDOW_END

    @property
    def lengths(self) -> tuple[int | None, int]:
        if self.windows is None or not self.timed:
            return None, 1
        return self.windows.length + self.windows.step, self.windows.most

    @property
    def ends(self) -> tuple[str, ...]:
        return () if self.windows is None else (WINDOW_END, WINDOW_START)

    @property
    def punctuates(self) -> Names:  # type: ignore[override]
        return frozenset(self.ends)

    @property
    def answers(self) -> bool:
        return bool(self.early)

    @property
    def asked(self) -> tuple[str, ...]:
        return (WINDOW_END, *self.group)

    def describe(self) -> str:
        window = ""
        if self.windows is not None:
            unit = self.unit(self.input.schema)
            window = f" [{self.windows.spelled(lambda length: spelled(length, unit))}{self._over()}]"
        early = " finality" if self.finality else ""
        early += " early" if self.early and not (self.finality and self.early == "top") else ""
        panes = " over panes" if self.over_panes else " in panes" if self.in_panes else ""
        return f"WindowAggregate{window}{self._calls()}{panes}{early}"

    def push(self, conditions: Conditions) -> Pushed:
        groups = set() if self.over_panes else {*self.group}
        below = tuple(c for c in conditions if c.columns() and c.columns() <= groups)
        return Pushed(self, (below,), tuple(c for c in conditions if c not in below))

    def tuples_of(self, name: str, restriction: Restriction) -> tuple[str | None, Restriction]:
        if self.over_panes and name == WINDOW_END and self.windows is not None:
            return PANE_END, panes_of(restriction, self.windows)
        return Grouped.tuples_of(self, name, restriction)

    def watched(self, pattern: Pattern) -> Pattern | None:
        return None if self.in_panes else Grouped.watched(self, pattern)

    def pruned(self, kept: Names) -> tuple[Plan, tuple[Need, ...]]:
        """Drop calls whose result is not read, but keep at least one."""
        if self.over_panes:
            return Grouped.pruned(self, kept)
        calls = tuple(call for call in self.aggregates if call.name in kept) or self.aggregates[:1]
        read = (*self.group, *(name for call in calls for name in call.columns), self.attribute)
        finality = self.finality and FINALITY in kept
        return replace(self, aggregates=calls, finality=finality), (
            Need(frozenset(name for name in read if name is not None)),
        )

    def advice(self, part: StatePart, inputs: tuple[Offers, ...]) -> list[str]:
        return ["give it a window"] if self.windows is None and inputs[0].time is not Time.STILL else []

    def parameters(self) -> dict[str, Any]:
        return Grouped.parameters(self) | self.values(
            "windows", "over_panes", "in_panes", "finality", "early", "increments"
        )


def window_starts(plan: Plan) -> Names:
    """Return the columns of a plan that hold starts of windows, copied from a window aggregate."""
    own = {WINDOW_START} if isinstance(plan, WindowAggregate) and plan.windows is not None else set()
    below = [window_starts(part) for part in plan.inputs]
    return frozenset(n for n in plan.schema.names if n in own or any(c in below[i] for i, c in plan.copied(n)))
