"""Starting a query: its plan, its parts in a job, its output and its sink.

Jobs deliver from threads of their own. The records that start a query are written, and the query is registered with its
sink, while deliveries wait: the first batch that has results of the query finds it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from millstream.control.mill.contracts import refuse_unbounded, warn_missed, warn_unused_windows
from millstream.control.mill.outputs import QueryOutput
from millstream.control.mill.placing import place
from millstream.control.mill.running_query import RunningQuery, reads_punctuation
from millstream.control.mill.statements import note_query
from millstream.errors import BindError, MillstreamError, OptionError, did_you_mean
from millstream.lang import ast
from millstream.lang.names import new_name
from millstream.lang.spelling import spelled
from millstream.logical.early import owned
from millstream.logical.nodes.window_aggregate import window_starts
from millstream.logical.plan import Plan
from millstream.logical.repeats import repeats

if TYPE_CHECKING:
    from millstream.control.mill.base import Mill


def start_query(
    mill: Mill,
    name: str,
    text: str,
    select: ast.Runs,
    sink: Any = None,
    sink_options: Mapping[str, str] | None = None,
    start: ast.Start = ast.NOW,
) -> None:
    """Start a continuous query, or register one that was recovered."""
    name = new_name(name)
    if name in mill.queries:
        raise BindError("M2091", f"query '{name}' exists already", hint=f"DROP QUERY {spelled(name)} first")
    if start.how not in ast.STARTS:
        raise OptionError("M6002", f"start cannot be '{start.how}'", hint=did_you_mean(str(start.how), ast.STARTS))
    plan = owned(mill.plan(select), name)
    if isinstance(sink, str) and sink.lower() == "memory" and not sink_options:
        sink = None  # its output is what `take_rows` takes
    refuse_unbounded(mill, name, plan)
    warn_unused_windows(mill, select)
    mill.written.begin(plan)

    def register(_: bool = False) -> None:
        query = RunningQuery(name, text, plan, new_output(mill, name, plan), sink, dict(sink_options or {}), start.how)
        mill.queries[name] = query
        mill.deliveries.open_sink(query, resumed=mill.journal.recovering, note=lambda: note_query(mill, query, select))

    if name in mill.placements.of:  # it was recovered
        register()
        return
    try:
        warn_missed(mill, name, plan, start)
        place(mill, name, plan, start, punctuated=reads_punctuation(sink), placed=register)
    except MillstreamError:
        _undo(mill, name)
        raise


def _undo(mill: Mill, name: str) -> None:
    """Stop a query whose start has failed."""
    if ("query", name) in mill.journal.texts:
        mill.stop_query(name)
    elif mill.queries.pop(name, None) is not None or name in mill.placements.of:
        mill.placements.remove(name)


def new_output(mill: Mill, name: str, plan: Plan) -> QueryOutput:
    """An output for a placed query."""
    return QueryOutput(plan.schema, len(mill.placements.of[name].top.labels), window_starts(plan), repeats(plan))
