"""The lower level of a paned window aggregate."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from millstream.algebra.aggregate.call import AggregateCall
from millstream.algebra.schema import Attribute, Schema
from millstream.algebra.window import PANE_END
from millstream.algebra.windower import Windower
from millstream.logical.nodes.kinds.grouped import Grouped
from millstream.logical.plan import Plan
from millstream.logical.windows import spelled


@dataclass(frozen=True, slots=True)
class PaneAggregate(Grouped):
    """Partial results per pane of windows; `windows` are the panes. With `partials` it merges those that sources
    computed."""

    stem = "pane_aggregate"

    input: Plan
    windows: Windower
    group: tuple[str, ...]
    aggregates: tuple[AggregateCall, ...]
    attribute: str | None = None
    partials: bool = field(default=False, repr=False)
    early: str = ""
    """Prods take its partial results along: "keep", or "release" if it starts afresh then; "": they do not."""

    held = "panes"
    end = PANE_END
    punctuates = frozenset({PANE_END})

    @property
    def schema(self) -> Schema:
        partials = tuple(partial for call in self.aggregates for partial in call.partials)
        source = self.input.schema
        attributes = (Attribute(PANE_END, self.end_type(source)), *self.group_attributes(source), *partials)
        offsets = ((PANE_END, 1),) if self.timed else ()
        return replace(source, attributes=attributes, time=None, follows=(), offsets=offsets)

    @property
    def lengths(self) -> tuple[int | None, int]:
        return (self.windows.length if self.timed else None), 1

    def describe(self) -> str:
        early = f" early {self.early}" if self.early else ""
        pane = spelled(self.windows.length, self.unit(self.input.schema))
        return f"PaneAggregate [PANE {pane}{self._over()}]{self._calls()}{early}"

    def parameters(self) -> dict[str, Any]:
        return Grouped.parameters(self) | self.values("windows", "early")
