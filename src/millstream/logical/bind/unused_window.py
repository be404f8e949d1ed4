"""Windows that change nothing: on a stream that is neither aggregated nor joined with another stream."""

from __future__ import annotations

from collections.abc import Iterator

from millstream.errors import PlanError
from millstream.lang import ast
from millstream.logical.bind.aggregate.user_calls import user_calls, with_user_calls
from millstream.logical.bind.expressions import contains_aggregate, contains_over
from millstream.logical.catalog import Catalog


def unused_windows(query: ast.Node, catalog: Catalog) -> Iterator[PlanError]:
    """A warning for each window of a query that is bound that changes nothing."""
    for select in query.walk():
        if isinstance(select, ast.Select) and not _aggregates(with_user_calls(select, catalog)):
            yield from (_warning(select, window) for window in _windows(select, catalog) if _is_finite(window))


def _aggregates(select: ast.Select) -> bool:
    if select.group or select.having is not None:
        return True
    calls = (call for item in select.items for call in user_calls(item.expression))
    return any(call.over is None for call in calls) or any(contains_aggregate(item.expression) for item in select.items)


def _windows(select: ast.Select, catalog: Catalog) -> list[ast.WindowClause]:
    """The WINDOW clause, and the bracket of the only stream."""
    streams = [joined.source for joined in select.sources if not _is_table(joined.source, catalog)]
    brackets = [streams[0].window] if len(streams) == 1 else []
    return [window for window in (select.window, *brackets) if window is not None]


def _is_table(source: ast.Source, catalog: Catalog) -> bool:
    return isinstance(source.relation, str) and source.relation in catalog and catalog.is_table(source.relation)


def _is_finite(window: ast.WindowClause) -> bool:
    return window.range is not None or window.rows is not None


def _warning(select: ast.Select, window: ast.WindowClause) -> PlanError:
    hint = "leave it out; a window is for an aggregate, as in SELECT COUNT(*) … [RANGE 10 SECONDS], or for a join"
    if any(contains_over(item.expression) for item in select.items):
        hint = "write it into OVER: OVER (RANGE 10 SECONDS PRECEDING)"
    elif select.distinct:
        hint = "GROUP BY the columns: each window then has its own groups"
    kind = "RANGE" if window.range is not None else "ROWS"
    message = f"the {kind} window changes nothing: each tuple is taken once, as it comes"
    return PlanError("M3027", message, hint=hint, **window.place)
