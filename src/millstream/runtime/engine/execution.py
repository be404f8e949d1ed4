"""The execution step: hand an operator the input of one step and append what it puts out."""

from __future__ import annotations

from enum import IntEnum
from time import perf_counter_ns
from typing import TYPE_CHECKING

from polars.exceptions import PanicException

from millstream.algebra.element import Page
from millstream.algebra.punctuation.punctuations import Punctuations
from millstream.algebra.schema import NEVER, TS
from millstream.errors import OperatorError, PlanError, reason_of
from millstream.runtime.engine import upstream
from millstream.runtime.engine.nodes import OperatorNode, Taken
from millstream.runtime.operator.contract import Input

if TYPE_CHECKING:
    from millstream.runtime.engine.graph import Graph


class Done(IntEnum):
    NOTHING = 0
    LEARNED = 1
    """Only punctuation or time was taken, and no tuple came of it: no reason to ask sources for time again."""
    CONSUMED = 2


def execute(graph: Graph, node: OperatorNode) -> Done:
    """Take one step of an operator, if there is input for it."""
    taken = node.take()
    if taken is None:
        return Done.NOTHING
    counters = node.counters
    counters.steps += 1
    counters.tuples_in += taken.rows
    counters.punctuations_in += taken.punctuation_count
    if graph.on_step is not None:
        graph.on_step(node, taken.rows + taken.punctuation_count)
    if graph.trace is not None:
        graph.trace(("execute", node.name))
    if taken.met is not None and node.prone and node.known != tuple(offer.bound for offer in taken.inputs):
        # The time that was told before the element is heard before it; the time told behind it is passed on behind it.
        _step(graph, node, taken._replace(met=None), passes_time=False)
    return _step(graph, node, taken)


def settle(graph: Graph, node: OperatorNode) -> bool:
    """Tell an operator with several inputs how far their time has come since its last step, for that alone may let it
    forget tuples and pass punctuation on, and that they are empty; whether it put something out."""
    bounds = tuple(port.bound() for port in node.ports)
    if len(bounds) < 2 or (bounds == node.known and not node.operator.unfinished()):
        return False
    before = node.buffer.tail, node.counters.punctuations_out
    _step(graph, node, Taken([Input(bound=bound) for bound in bounds], 0, 0, NEVER, progress=False, fresh=False))
    return before != (node.buffer.tail, node.counters.punctuations_out)


def _step(graph: Graph, node: OperatorNode, taken: Taken, *, passes_time: bool = True) -> Done:
    node.pages = taken.pages
    node.known = tuple(offer.bound for offer in taken.inputs)
    counters = node.counters
    start = perf_counter_ns()
    try:
        output = node.operator.process(taken.inputs) if taken.met is None else node.operator.meet(*taken.met)
    except PlanError:
        raise
    except (Exception, PanicException) as error:
        raise OperatorError(node.name, reason_of(error)) from error
    counters.nanoseconds += perf_counter_ns() - start
    rows, told = output.rows, output.punctuations
    if rows is not None and rows.height:
        counters.tuples_out += rows.height
        if node.prone:
            node.latest_out = max(node.latest_out, int(rows.item(-1, TS)))
        node.buffer.append(Page(rows))
    else:
        rows = None
    if output.elements:
        node.sent = max(node.sent, NEVER if told is None else told.progress)
        for element in (told, *output.elements) if told else output.elements:
            counters.punctuations_out += element.punctuation_count
            node.buffer.append(element)
        told = None
    if node.prone and passes_time:
        told = _carry_time(graph, node, taken, told, silent=rows is None)
    if told:
        counters.punctuations_out += told.punctuation_count
        node.buffer.append(told)
    for port, message in output.upstream:
        upstream.send(graph, node.ports[port], message)
    return Done.CONSUMED if taken.fresh or rows is not None else Done.LEARNED


def _carry_time(
    graph: Graph, node: OperatorNode, taken: Taken, told: Punctuations | None, *, silent: bool
) -> Punctuations | None:
    """Add the operator's time bound to its output if the readers there have to learn it in band.

    Operators with one input pass time on themselves. One with several, or one that reshapes time, has a bound of its
    own; it is sent once nothing more can be processed, and after tuples that produced nothing. Where enabling
    timestamps do not travel in band, only operators that time has reached in band pass it on that way.
    """
    node.in_band = node.in_band or taken.progress
    own = told.progress if told is not None else NEVER
    if graph.in_band or node.in_band:
        value = NEVER
        if not node.more():
            value = node.bound()
        elif silent and taken.rows and graph.in_band and node.operator.merges:
            value = min(taken.latest, node.bound())
        known = node.sent if node.reader_unordered else max(node.sent, node.latest_out)
        if value > max(known, own):
            told = Punctuations.of((), progress=value) if told is None else told.with_progress(value)
            own = value
    node.sent = max(node.sent, own)
    return told
