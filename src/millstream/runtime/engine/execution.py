"""The execution step: hand an operator the input of one step and append its output to the buffer."""

from __future__ import annotations

from enum import IntEnum
from time import perf_counter_ns
from typing import TYPE_CHECKING

import polars as pl
from polars.exceptions import PanicException

from millstream.algebra.early import Prod
from millstream.algebra.element import Page
from millstream.algebra.punctuation.punctuations import Punctuations
from millstream.algebra.schema import NEVER, TS
from millstream.algebra.shed import Shed
from millstream.errors import OperatorError, PlanError, ResultOutOfRange, reason_of
from millstream.runtime.engine import prodding, upstream
from millstream.runtime.engine.guarding import guarded, issue
from millstream.runtime.engine.nodes import OperatorNode
from millstream.runtime.engine.taking import Taken
from millstream.runtime.expression.overflow import EXCEEDS
from millstream.runtime.operator.capabilities import KeepsPosition, UsesValues, missing
from millstream.runtime.operator.contract import Ahead, Input, Output

if TYPE_CHECKING:
    from millstream.runtime.engine.graph import Graph


class Done(IntEnum):
    NOTHING = 0
    LEARNED = 1
    """The step took only punctuation or time and emitted no tuple: no reason to ask sources for time again."""
    CONSUMED = 2


def execute(graph: Graph, node: OperatorNode) -> Done:
    """Run one step of an operator, if it has input."""
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
    if taken.placed is not None and node.prone and node.last_bounds != tuple(offer.bound for offer in taken.inputs):
        # The operator learns the time before the element first; the time behind the element is emitted behind it.
        _step(graph, node, taken._replace(placed=None), passes_time=False)
    return _step(graph, node, taken)


def step_without_input(graph: Graph, node: OperatorNode) -> bool:
    """Run a step without input if the bounds of an operator that merges, or has several inputs, have risen since its
    last step, or if it has deferred work: time alone may let it purge tuples and emit results and punctuation. One that
    looks ahead also learns the time behind the tuples that wait. Return whether it emitted anything."""
    bounds = tuple(port.bound() for port in node.ports)
    unfinished = node.defers is not None and node.defers.unfinished()
    acts = unfinished or len(bounds) > 1 or (node.operator.merges and node.operator.timed)
    reached = tuple(port.reached() for port in node.ports) if node.looks_ahead else bounds
    known = bounds == node.last_bounds and reached == node.last_reached
    if not acts or (known and not unfinished):
        return False
    before = node.buffer.tail, node.counters.tuples_out, node.counters.punctuations_out
    inputs = [
        Input(bound=bound, ahead=Ahead(time, port.waiting) if time > bound else None)
        for port, bound, time in zip(node.ports, bounds, reached, strict=True)
    ]
    _step(graph, node, Taken(inputs))
    node.last_reached = reached
    return before != (node.buffer.tail, node.counters.tuples_out, node.counters.punctuations_out)


def _step(graph: Graph, node: OperatorNode, taken: Taken, *, passes_time: bool = True) -> Done:
    node.pages = taken.pages
    node.last_bounds = node.last_reached = tuple(offer.bound for offer in taken.inputs)
    counters = node.counters
    inputs = guarded(graph, node, taken.inputs) if node.guarded else taken.inputs
    start = perf_counter_ns()
    try:
        output = node.operator.process(inputs) if taken.placed is None else _meet(node, taken)
        if output.exceeding is not None and output.rows is not None:
            _refuse_used(node, output.rows, output.exceeding)
    except PlanError as error:
        error.operator = node.name
        raise
    except (Exception, PanicException) as error:
        raise OperatorError(node.name, reason_of(error)) from error
    counters.nanoseconds += perf_counter_ns() - start
    rows, punctuations = output.rows, output.punctuations
    if output.shed:
        node.buffer.append(output.shed)
    if rows is not None and rows.height:
        counters.tuples_out += rows.height
        if node.prone:
            node.latest_out = max(node.latest_out, int(rows.item(-1, TS)))
        node.buffer.append(Page(rows))
    else:
        rows = None
    if output.elements:
        node.sent = max(node.sent, NEVER if punctuations is None else punctuations.progress)
        for element in (punctuations, *output.elements) if punctuations else output.elements:
            counters.punctuations_out += element.punctuation_count
            node.buffer.append(element)
        punctuations = None
    if node.prone and passes_time:
        punctuations = _add_time(graph, node, taken, punctuations, silent=rows is None)
    if punctuations:
        counters.punctuations_out += punctuations.punctuation_count
        node.buffer.append(punctuations)
    for pattern in output.abandoned:
        upstream.abandon(graph, node, pattern)
    for port, message in output.upstream:
        issue(node.ports[port], message)
        upstream.tell(graph, node.ports[port], message)
    return Done.CONSUMED if taken.rows or rows is not None else Done.LEARNED


def _meet(node: OperatorNode, taken: Taken) -> Output:
    """Hand an operator an element that keeps its position."""
    assert taken.placed is not None
    port, element = taken.placed
    if isinstance(element, Prod):
        return prodding.meet(node, port, element, taken.held)
    if isinstance(element, Shed):
        passed = element.renamed(prodding.copies(node, port))
        return Output(shed=missing(node.operator, port, element, passed))
    if not isinstance(node.operator, KeepsPosition):
        kinds = type(node.operator).__name__, type(element).__name__
        raise PlanError("M3091", "{} does not take a {} among its tuples".format(*kinds))
    return node.operator.meet(port, element)


def _refuse_used(node: OperatorNode, rows: pl.DataFrame, exceeding: pl.DataFrame) -> None:
    """Raise ResultOutOfRange for the first result that does not fit its type and that a reader uses."""
    for reasons in exceeding.get_columns():
        column, exceeds = reasons.name, reasons.is_not_null()
        marked = rows.with_columns(exceeds.alias(EXCEEDS + column))
        masks = [
            reader.uses(marked, column) if isinstance(reader := port.node.operator, UsesValues) else exceeds
            for port in node.buffer.ports
        ]
        masks += [exceeds] if node.buffer.sinks else []
        used = [int(mask.arg_max() or 0) for mask in masks if mask.any()]
        if used:
            raise ResultOutOfRange(reasons[min(used)])


def _add_time(
    graph: Graph, node: OperatorNode, taken: Taken, punctuations: Punctuations | None, *, silent: bool
) -> Punctuations | None:
    """Add the operator's time bound to its output if its readers have to learn it in band.

    An operator with one input forwards time itself. One with several inputs, or one that reshapes time, has a bound of
    its own; the bound is sent once there is no more input, and after tuples that produced nothing. Where enabling
    timestamps do not travel in band, only operators that time has reached in band send it that way.
    """
    node.in_band = node.in_band or any(
        offer.punctuations is not None and offer.punctuations.progress > NEVER for offer in taken.inputs
    )
    own = punctuations.progress if punctuations is not None else NEVER
    if graph.in_band or node.in_band:
        value = NEVER
        if not node.more():
            value = node.bound()
        elif silent and taken.rows and graph.in_band and node.operator.merges:
            value = min(taken.latest, node.bound())
        known = node.sent if node.reader_unordered else max(node.sent, node.latest_out)
        if value > max(known, own):
            node.sent = value
            return Punctuations.of((), value) if punctuations is None else punctuations.with_progress(value)
    node.sent = max(node.sent, own)
    return punctuations
