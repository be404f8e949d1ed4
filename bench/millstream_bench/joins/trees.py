"""Joins of several streams on a common key: in one operator, and as trees of window joins.

A tree has the results of the one operator: every part is within its window of the newest. A window join ensures that
for the newest parts of its two inputs; where an input is a join itself, the times of its parts are compared too, as in
the planner. A partial result holds one of several equal keys.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from millstream.algebra.expression import Binary, Column, Expression, Literal, conjunction
from millstream.algebra.schema import TS, Schema
from millstream.algebra.types import Type
from millstream.algebra.window import Window
from millstream.runtime.join.multi.multi_join import MultiJoin
from millstream.runtime.join.window_join import WindowJoin
from millstream.runtime.operator.contract import Input, Operator
from millstream.runtime.state.table import StateTable
from millstream_bench.joins.drive import Trace, note
from millstream_bench.joins.streams import Step

Shape = int | tuple["Shape", "Shape"]
"""A stream by its number, or a join of two shapes."""


def leaf(number: int) -> Schema:
    return Schema.of((f"s{number}.k", Type.BIGINT), (f"s{number}.v", Type.BIGINT), (f"s{number}.ts", Type.BIGINT))


def named(step: Step) -> Step:
    """A step whose columns have the names of the streams, and a visible time."""
    made = []
    for number, port in enumerate(step):
        rows = port.rows
        if rows is not None:
            rows = rows.rename({"k": f"s{number}.k", "v": f"s{number}.v"}).insert_column(
                2, rows.get_column(TS).alias(f"s{number}.ts")
            )
        told = None if port.punctuations is None else port.punctuations.select({"k": f"s{number}.k"})
        made.append(Input(rows, told, port.bound))
    return tuple(made)


def together(count: int, window: int) -> MultiJoin:
    """All streams in one operator."""
    leaves = [leaf(number) for number in range(count)]
    schema = Schema(tuple(attribute for own in leaves for attribute in own))
    windows = [Window(window)] * count
    return MultiJoin(leaves, schema, [[f"s{number}.k"] for number in range(count)], windows, merges=True)


def shapes(count: int) -> list[Shape]:
    """The trees that differ where the first stream is not like the others: it joins first, or last; one is bushy."""
    if count == 3:
        return [((0, 1), 2), ((1, 2), 0)]
    return [(((0, 1), 2), 3), (((1, 2), 0), 3), (((1, 2), 3), 0), ((0, 1), (2, 3))]


@dataclass(slots=True)
class Part:
    """A part of a tree: a stream, or a join of two parts. `duplicate` is the key that its results leave out."""

    schema: Schema
    streams: tuple[int, ...]
    key: str
    join: WindowJoin | None = None
    inputs: tuple[Part, Part] | None = None
    duplicate: str = ""

    @property
    def joins(self) -> list[tuple[str, Operator]]:
        if self.join is None or self.inputs is None:
            return []
        name = "".join(map(str, self.streams))
        return [*self.inputs[0].joins, *self.inputs[1].joins, (name, self.join)]

    def process(self, step: Step) -> Input:
        """Process a step and return the output of the part."""
        if self.join is None or self.inputs is None:
            return step[self.streams[0]]
        ports = [part.process(step) for part in self.inputs]
        out = self.join.process(ports)
        rows = None if out.rows is None else out.rows.drop(self.duplicate)
        return Input(rows, out.punctuations, self.join.output_bound([port.bound for port in ports]))


def planted(shape: Shape, window: int) -> Part:
    if isinstance(shape, int):
        return Part(leaf(shape), (shape,), f"s{shape}.k")
    left, right = (planted(part, window) for part in shape)
    schema = Schema((*left.schema, *right.schema))
    kept = Window(window)
    join = WindowJoin(
        left.schema,
        right.schema,
        schema,
        ((left.key, right.key),),
        _within(left, right, window),
        kept,
        kept,
        merges=True,
    )
    own = schema.with_attributes(attribute for attribute in schema if attribute.name != right.key)
    return Part(own, left.streams + right.streams, left.key, join, (left, right), right.key)


def _within(left: Part, right: Part, window: int) -> Expression | None:
    """Every part of a partial result is within the window of every part of the other input."""
    made: list[Expression] = []
    for own, other in ((left, right), (right, left)):
        if len(own.streams) > 1:
            made += [_not_older(mine, its, window) for mine in own.streams for its in other.streams]
    return conjunction(tuple(made))


def _not_older(one: int, other: int, window: int) -> Expression:
    times = [Column(Type.BIGINT, f"s{number}.ts") for number in (one, other)]
    earliest = Binary(Type.BIGINT, "-", times[1], Literal(Type.BIGINT, window))
    return Binary(Type.BOOLEAN, ">=", times[0], earliest)


def run_tree(shape: Shape, window: int, steps: Sequence[Step]) -> Trace:
    tree = planted(shape, window)
    tables: Mapping[str, StateTable] = {
        f"{name}.{side}": table for name, join in tree.joins for side, table in join.tables().items()
    }
    made = Trace()
    gc.collect()
    for step in steps:
        start = time.process_time()
        out = tree.process(step)
        made.cpu_s.append(time.process_time() - start)
        note(made, out, tables, sized=True)
    return made


def written(shape: Shape) -> str:
    """
    >>> written(((0, 1), (2, 3)))
    '(0 ⋈ 1) ⋈ (2 ⋈ 3)'
    """
    if isinstance(shape, int):
        return str(shape)
    return " ⋈ ".join(written(part) if isinstance(part, int) else f"({written(part)})" for part in shape)
