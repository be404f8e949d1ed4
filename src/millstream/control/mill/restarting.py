"""Starting a failed query again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from millstream.control.mill.failures import LOG
from millstream.control.mill.outputs import QueryOutput
from millstream.control.mill.placing import place
from millstream.control.mill.running_query import reads_punctuation
from millstream.control.mill.starting import new_output
from millstream.lang import ast
from millstream.physical.plan.stages import stateful

if TYPE_CHECKING:
    from millstream.control.mill.base import Mill
    from millstream.control.mill.running_query import RunningQuery


def start_again(mill: Mill, name: str) -> str:
    """Start a failed query again; return where it goes on, and what it has missed."""
    query = mill.query(name)
    name = query.name
    if query.failure is None:  # its job has stopped
        mill.job(name).start()
        return f"query '{name}' goes on after the last committed batch"
    mill.failures.settle()
    text, places = mill.failures.missed(name), query.failure.places
    held = None if places is None else mill.failures.resumption(name)
    taken: list[bool] = []

    def register(fits: bool) -> None:
        output = dict(held.head.output) if held is not None and fits else {}
        query.output = _output_after(mill, query, output)
        query.failure = None
        mill.deliveries.open_sink(query, resumed=True)
        mill.journal.note("started", (name, output))
        taken.append(fits)

    punctuated = reads_punctuation(query.sink)
    place(mill, name, query.plan, ast.NOW, punctuated=punctuated, places=places, resumption=held, placed=register)
    if not all(taken) and stateful(query.plan):
        text += "; what its operators held is lost"
    mill.failures.unpark(name)
    LOG.warning("%s", text)
    mill.take_effect()
    return text


def _output_after(mill: Mill, query: RunningQuery, state: dict[str, Any]) -> QueryOutput:
    """The output of a query that starts again, with the rows that are still to be taken. `state`: that of the output
    when the query failed; empty: it is not known."""
    before = query.output
    made = new_output(mill, query.name, query.plan)
    made.rows_made, made.first = before.rows_made, before.first
    made.take_up(before.take_rows(), before.take_punctuations())
    if state:
        made.restore(state)
    return made
