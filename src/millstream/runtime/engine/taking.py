"""What an operator takes in one step: a page, punctuations, several pages, or one element that keeps its position."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import polars as pl

from millstream.algebra.element import Element
from millstream.algebra.punctuation.punctuations import Punctuations
from millstream.algebra.schema import NEVER
from millstream.runtime.engine.buffer import Entry
from millstream.runtime.engine.port import Port
from millstream.runtime.operator.contract import Input
from millstream.runtime.operator.frames import stack

UNLIMITED = 1 << 62


class Taken(NamedTuple):
    """The input of one step. `latest` is the highest timestamp of its rows. `pages` is the number of pages that a
    batching strategy counts. `placed` is an element that keeps its position, with its port; the inputs then have
    bounds only. `held`: rows that wait at each port, and are before a prod."""

    inputs: Sequence[Input]
    rows: int = 0
    punctuation_count: int = 0
    latest: int = NEVER
    pages: int = 1
    placed: tuple[int, Element] | None = None
    held: tuple[pl.DataFrame | None, ...] = ()


def take_element(ports: Sequence[Port], index: int) -> Taken:
    """Take the next element of one port, which keeps its position."""
    inputs = [Input(bound=port.bound()) for port in ports]  # before the tuples behind the element raise the bound
    element = ports[index].pass_element()
    ports[index].node.prods -= element.overtakes
    return Taken(inputs, punctuation_count=element.punctuation_count, placed=(index, element))


def take_only_punctuations(inputs: Sequence[Input]) -> Taken:
    """Return the step that takes the punctuations of these inputs, which have no rows."""
    count = sum(len(i.punctuations) for i in inputs if i.punctuations is not None)
    return Taken(inputs, punctuation_count=max(1, count))


def take_head(ports: Sequence[Port], index: int, entry: Entry, page_rows: int) -> Taken:
    """Take the next page of one port, or its punctuations; the other ports contribute their bounds only. A page of
    several rows is taken together with the punctuations right behind it: both were cut from one piece of the stream."""
    port = ports[index]
    if entry.element.keeps_position:
        return take_element(ports, index)
    if not entry.rows:
        punctuations = port.take_punctuations(entry)
        return take_only_punctuations(_offer(ports, index, None, punctuations))
    rows, latest = _take_page(port, entry, page_rows)
    behind = port.head() if rows.height > 1 else None
    if behind is None or behind.rows or behind.sequence != entry.sequence + 1 or behind.element.keeps_position:
        return Taken(_offer(ports, index, rows, None), rows.height, 0, latest)
    punctuations = port.take_punctuations(behind)
    return Taken(_offer(ports, index, rows, punctuations), rows.height, max(1, len(punctuations)), latest)


def _take_page(port: Port, entry: Entry, most: int) -> tuple[pl.DataFrame, int]:
    """Take at most `most` rows of the head element; return them with the timestamp of the last one."""
    left = entry.rows - port.offset
    if left <= most:
        return port.take_rows(entry, left), entry.last
    latest = entry.stamp(port.offset + most - 1)
    return port.take_rows(entry, most), latest


def take_batch(ports: Sequence[Port], index: int, limit: int, page_rows: int) -> Taken:
    """Take up to `limit` pages of one port in one step, with the punctuations among them. The batch ends before an
    element that keeps its position, and before anything younger than an element that waits at another port. The step
    has all rows before all punctuations."""
    port = ports[index]
    others = [head.sequence for other in ports if other is not port and (head := other.head()) is not None]
    before = min(others, default=port.buffer.ledger.sequence + 1)
    rows: list[pl.DataFrame] = []
    punctuations: list[Punctuations] = []
    latest, pages = NEVER, 0
    # Two ports may read one buffer: the same element then waits at both, and the chosen port takes it first.
    while (entry := port.head()) is not None and (entry.sequence < before or not (rows or punctuations)):
        if entry.element.keeps_position:
            break
        if not entry.rows:
            punctuations.append(port.take_punctuations(entry))
        elif pages < limit:
            taken, last = _take_page(port, entry, (limit - pages) * page_rows)
            rows.append(taken)
            latest, pages = max(latest, last), pages + -(-taken.height // page_rows)
        else:
            break
    return batch_of(ports, {index: rows}, {index: punctuations}, latest, pages)


def batch_of(
    ports: Sequence[Port],
    rows: Mapping[int, list[pl.DataFrame]],
    punctuations: Mapping[int, list[Punctuations]],
    latest: int,
    pages: int,
) -> Taken:
    """Return one step of many elements, given by port."""
    inputs: list[Input] = []
    count = 0
    for index, port in enumerate(ports):
        parts, batches = rows.get(index), punctuations.get(index, [])
        count += sum(max(1, len(batch)) for batch in batches)
        together = (batches[0] if len(batches) == 1 else Punctuations.concat(batches)) if batches else None
        inputs.append(Input(stack(parts) if parts else None, together, port.bound()))
    height = sum(i.rows.height for i in inputs if i.rows is not None)
    return Taken(inputs, height, count, latest, max(1, pages))


def _offer(
    ports: Sequence[Port], index: int, rows: pl.DataFrame | None, punctuations: Punctuations | None
) -> tuple[Input, ...]:
    """Return the inputs of a step that takes from one port: its rows and punctuations, and the bounds of all ports."""
    if len(ports) == 1:
        return (Input(rows, punctuations, ports[0].bound()),)
    return tuple(
        Input(rows, punctuations, port.bound()) if i == index else Input(None, None, port.bound())
        for i, port in enumerate(ports)
    )
