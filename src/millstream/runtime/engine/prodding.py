"""Prods in a graph: an operator answers when all copies of a prod have reached it, and passes it on.

A prod enters at one or several sources. An operator that several paths lead to receives a copy on each; what they bring
is put together. The early rows that arrive with a prod are computed on, never kept (`TakesEarly`). Where tuples are
taken in the order of time, those that wait for it are early rows as well: so an answer is over exactly the tuples
before the prod, whether or not they have had their turn.

A prod of one query ends at operators that only other queries read.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING

import polars as pl

from millstream.algebra.early import Asked, Prod
from millstream.runtime.operator.capabilities import (
    ActsOnProds,
    RewritesProds,
    Sheds,
    TakesEarly,
    answers,
    early_results,
)
from millstream.runtime.operator.contract import NOTHING, Output

if TYPE_CHECKING:
    from millstream.runtime.engine.graph import Graph
    from millstream.runtime.engine.nodes import OperatorNode, Source


def push(graph: Graph, copies: Sequence[tuple[Source, Prod]], among: Container[OperatorNode] | None) -> None:
    """Push the copies of one prod to sources, behind everything before it and before anything after it. `among`: the
    operators that it concerns; None: all."""
    if graph.ledger.ready:
        graph.run()
    _expect(copies, among)
    for source, prod in copies:
        source.put(prod)
    graph.run()


def _expect(copies: Iterable[tuple[Source, Prod]], among: Container[OperatorNode] | None) -> None:
    """Note how many copies each operator receives, where there are several, or where they end."""
    reached: dict[OperatorNode, int] = {}
    number, todo = "", []
    for source, prod in copies:
        number = prod.number
        todo.append(source.buffer)
    while todo:
        for port in todo.pop().ports:
            reached[port.node] = reached.get(port.node, 0) + 1
            if reached[port.node] == 1 and (among is None or port.node in among):
                todo.append(port.node.buffer)
    for node, count in reached.items():
        if among is not None and node not in among:
            node.expected[number] = -count
        elif count > 1:
            node.expected[number] = count


def meet(node: OperatorNode, port: int, prod: Prod, held: Sequence[pl.DataFrame | None] = ()) -> Output:
    """Let an operator answer a prod and pass it on, once its last copy is there. `held`: the rows that wait at each
    port, which are before the prod."""
    arrived = [(port, prod)]
    if (count := node.expected.get(prod.number, 1)) < 0:
        node.expected[prod.number] = count + 1
        if count == -1:
            del node.expected[prod.number]
        return NOTHING
    if count > 1:
        arrived = [*node.met.get(prod.number, ()), *arrived]
        if len(arrived) < count:
            node.met[prod.number] = arrived
            return NOTHING
        node.met.pop(prod.number, None)
        del node.expected[prod.number]
    held = held if any(rows is not None for rows in held) and _answered(node) else ()
    rows = [_together(node, place, arrived, held) for place in range(len(node.ports))]
    operator = node.operator
    passed = _united([copy.renamed(copies(node, place)) for place, copy in arrived])
    if isinstance(operator, RewritesProds):
        passed = operator.passed(passed, arrived[-1][1])
    early = None
    if any(r is not None for r in rows) or _acts(node):
        early = (
            operator.early(rows, arrived[-1][1]) if isinstance(operator, TakesEarly) else early_results(operator, rows)
        )
    return Output(
        elements=(passed.with_rows(early),), shed=operator.take_shed() if isinstance(operator, Sheds) else None
    )


def _acts(node: OperatorNode) -> bool:
    """Return whether an operator acts on a prod that has no early rows for it."""
    operator = node.operator
    return answers(operator) or (isinstance(operator, ActsOnProds) and operator.owes and _answered(node))


def _together(
    node: OperatorNode, place: int, arrived: Sequence[tuple[int, Prod]], held: Sequence[pl.DataFrame | None]
) -> pl.DataFrame | None:
    """The early rows that have arrived at a port, and those that wait there, without what the operator has
    disclaimed."""
    waiting = held[place] if place < len(held) else None
    found = [waiting, *(prod.rows for port, prod in arrived if port == place)]
    frames = [frame for frame in found if frame is not None]
    if not frames:
        return None
    rows = frames[0] if len(frames) == 1 else pl.concat(frames)
    guard = node.ports[place].guard
    return rows if guard is None else guard.filter(rows)


def _answered(node: OperatorNode) -> bool:
    """Return whether an operator behind this one, here or in a later stage, answers prods."""
    seen, todo = {node}, [node]
    while todo:
        found = {port.node for port in todo.pop().buffer.ports} - seen
        if any(answers(each.operator) for each in found):
            return True
        seen |= found
        todo += found
    return False


def _united(copies: Sequence[Prod]) -> Prod:
    """One prod for several copies: it asks for what each of them asks for, by all names."""
    first, *others = copies
    if not others or not first.asked:
        return first
    asked: list[Asked] = []
    for place, each in enumerate(first.asked):
        same = [copy.asked[place] for copy in copies]
        names, windows = (dict.fromkeys(chain(*part)) for part in ((s.names for s in same), (s.windows for s in same)))
        windowed = any(one.windowed for one in same)
        asked.append(replace(each, names=tuple(names), windows=tuple(windows), windowed=windowed))
    return replace(first, asked=tuple(asked), lost=all(copy.lost for copy in copies))


def copies(node: OperatorNode, place: int) -> Mapping[str, tuple[str, ...]]:
    """The columns that copy those of a port; a port that was attached later has none."""
    return node.copies[place] if place < len(node.copies) else {}
