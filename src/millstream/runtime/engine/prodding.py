"""Prods in a graph: an operator answers when all copies of a prod have reached it, and passes it on.

A prod enters at one or several sources. An operator that several paths lead to receives a copy on each; what they bring
is put together. The early rows that arrive with a prod are computed on, never kept (`Operator.early`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import polars as pl

from millstream.algebra.early import Asked, Prod
from millstream.algebra.schema import NEVER
from millstream.runtime.operator.contract import NOTHING, Output

if TYPE_CHECKING:
    from millstream.runtime.engine.graph import Graph
    from millstream.runtime.engine.nodes import OperatorNode, Source


def push(graph: Graph, copies: Sequence[tuple[Source, Prod]]) -> None:
    """Push the copies of one prod to sources, behind everything before it and before anything after it."""
    graph.run()
    _expect(copies)
    for source, prod in copies:
        source.put(prod)
    graph.run()


def _expect(copies: Iterable[tuple[Source, Prod]]) -> None:
    """Note how many copies each operator receives, where there are several."""
    reached: dict[OperatorNode, int] = {}
    number, todo = "", []
    for source, prod in copies:
        number = prod.number
        todo.append(source.buffer)
    while todo:
        for port in todo.pop().ports:
            reached[port.node] = reached.get(port.node, 0) + 1
            if reached[port.node] == 1:
                todo.append(port.node.buffer)
    for node, count in reached.items():
        if count > 1:
            node.expected[number] = count


def meet(node: OperatorNode, port: int, prod: Prod) -> Output:
    """Let an operator answer a prod and pass it on, once its last copy is there."""
    arrived = [(port, prod)]
    if (count := node.expected.get(prod.number, 1)) > 1:
        arrived = [*node.met.get(prod.number, ()), *arrived]
        if len(arrived) < count:
            node.met[prod.number] = arrived
            return NOTHING
        node.met.pop(prod.number, None)
        del node.expected[prod.number]
    rows = [_together(node, place, arrived) for place in range(len(node.ports))]
    operator = node.operator
    passed = _united([copy.renamed(_copies(node, place)) for place, copy in arrived])
    passed = operator.passed(passed, arrived[-1][1])
    if node.prone:
        passed = replace(passed, stamp=NEVER)
    early = operator.early(rows, arrived[-1][1]) if operator.answers or any(r is not None for r in rows) else None
    committed = operator.released(arrived[-1][1])
    return Output(committed, elements=(passed.with_rows(early),))


def _together(node: OperatorNode, place: int, arrived: Sequence[tuple[int, Prod]]) -> pl.DataFrame | None:
    """The early rows that have arrived at a port, without those that the operator has disclaimed."""
    frames = [prod.rows for port, prod in arrived if port == place and prod.rows is not None]
    if not frames:
        return None
    rows = frames[0] if len(frames) == 1 else pl.concat(frames)
    guard = node.ports[place].guard
    return rows if guard is None else guard.filter(rows)


def _united(copies: Sequence[Prod]) -> Prod:
    """One prod for several copies: it asks for what each of them asks for, by all names."""
    first, *others = copies
    if not others or not first.asked:
        return first
    asked: list[Asked] = []
    for place, each in enumerate(first.asked):
        names = dict.fromkeys(name for copy in copies for name in copy.asked[place].names)
        asked.append(replace(each, names=tuple(names)))
    return replace(first, asked=tuple(asked), lost=all(copy.lost for copy in copies))


def _copies(node: OperatorNode, place: int) -> Mapping[str, tuple[str, ...]]:
    """The columns that copy those of a port; a port that was attached later has none."""
    return node.copies[place] if place < len(node.copies) else {}
