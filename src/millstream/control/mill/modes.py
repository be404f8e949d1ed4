"""The rows of a query that its sink takes, if it gives early answers (`sinks/modes.py`)."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl

from millstream.algebra.early import EARLY, FINALITY, REVISION
from millstream.errors import OptionError
from millstream.logical.early import above_answers, answering, emits_early
from millstream.logical.nodes.revise import Revise
from millstream.logical.plan import Plan
from millstream.sinks.modes import ALL, UPSERT, modes_of

Shape = Callable[[pl.DataFrame], pl.DataFrame]


def shape_of(plan: Plan, sink: object, name: str, mode: str | None, *, named: bool) -> Shape:
    """Return what makes of the rows of a batch those that the sink takes; `name`: the sink, as messages name it."""
    takes = modes_of(sink, named=named)
    if mode is not None and mode not in takes:
        raise OptionError("M6002", f"sink {name} does not take mode = '{mode}'", hint=f"one of {', '.join(takes)}")
    return shape(plan, mode or takes[0], f"sink {name}") if emits_early(plan) else _unchanged


def shape(plan: Plan, mode: str, what: str) -> Shape:
    """The rows of a query with early answers that belong to a mode; `what`: where they go."""
    if mode == ALL:
        return _unchanged
    sources = {column: _source(plan, column) for column in plan.schema.names}
    if mode == UPSERT:
        return _newest(plan, sources, what)
    finality = next((column for column, source in sources.items() if source == FINALITY), None)
    if finality is None:
        message = f"{what} takes final rows, and the early rows of this query do not say that they are early"
        raise OptionError("M6046", message, hint="add finality to the select list, or mode = 'all'")
    return lambda rows: rows.filter(pl.col(finality) != EARLY)


def _newest(plan: Plan, sources: dict[str, str | None], what: str) -> Shape:
    """The last row for each window and group."""
    top = answering(plan)
    needed = [*dict.fromkeys(name for name in top.asked if name in top.schema), REVISION]
    held = {source: column for column, source in sources.items() if source is not None}
    missing = [name for name in needed if name not in held]
    if missing:
        message = f"{what} replaces rows by window and group, and this query does not return {', '.join(missing)}"
        raise OptionError("M6046", message, hint=f"add {', '.join(missing)} to the select list")
    *keys, revision = (held[name] for name in needed)
    if not keys:
        return lambda rows: rows.sort(revision).tail(1)
    return lambda rows: rows.sort(revision, maintain_order=True).unique(keys, keep="last", maintain_order=True)


def _source(plan: Plan, column: str) -> str | None:
    """The column of the topmost aggregate, or the revision, that a column of the output copies; None if it is
    computed."""
    for part in above_answers(plan):
        if isinstance(part, Revise) and column == REVISION:
            return REVISION
        copies = part.copied(column)
        if not copies:
            return None
        column = copies[0][1]
    return column


def _unchanged(rows: pl.DataFrame) -> pl.DataFrame:
    return rows
