"""A group of shards: the same operators once per part of the key space.

All queries that hash their streams on the same columns share one group, and inside it common prefixes. Rows go to the
shard of their key; punctuations, and the progress of time, concern every shard and are copied to all.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import polars as pl

from millstream.algebra.punctuation import Punctuations
from millstream.algebra.schema import Schema
from millstream.config import Options
from millstream.control.join_settings import join_settings
from millstream.logical.plan import EVERYWHERE, Plan
from millstream.physical.compile import Compiler, TableFrames
from millstream.physical.hashing import shard_of
from millstream.physical.partitioning import Keys
from millstream.runtime.engine import Graph
from millstream.runtime.join_settings import configure_joins
from millstream.runtime.operator import Operator

Deliver = Callable[[int, pl.DataFrame | Punctuations], None]
Ets = Callable[[str], Callable[[], int | None]]


class ShardGroup:
    """`keys` says which columns each stream is hashed on; None: everything in one place."""

    def __init__(self, keys: Keys | None, options: Options, ets: Ets, tables: TableFrames) -> None:
        self.keys = keys
        count = options.shards if keys is not None else 1
        self.graphs = [Graph() for _ in range(count)]
        for graph in self.graphs:
            graph.page_rows = options.page_rows
        self.compilers = [
            Compiler(graph, ets, tables, place=(number, count)) for number, graph in enumerate(self.graphs)
        ]
        self._schemas: dict[str, Schema] = {}
        self.configure(options)

    def configure(self, options: Options) -> None:
        """Re-map the running graphs to the options' strategy and way of promising time."""
        name, _, size = options.strategy.partition(":")
        self._in_paths = name == "rr"
        for graph in self.graphs:
            graph.set_strategy(name, k=int(size or 1))
            graph.set_ets(options.ets)
        self._joins = join_settings(options)
        self._configure_joins()
        self._cut()

    def _configure_joins(self) -> None:
        for graph in self.graphs:
            configure_joins((node.operator for node in graph.operators.values()), self._joins)

    def _cut(self) -> None:
        """Round robin works on paths: cut the graphs into such, or heal the cuts when it is left."""
        for graph in self.graphs:
            if self._in_paths:
                graph.cut_into_paths()
            else:
                for node in graph.operators.values():
                    graph.unset_break(node)

    def add(self, name: str, plan: Plan, deliver: Deliver) -> None:
        for number, compiler in enumerate(self.compilers):
            compiler.add(name, plan, partial(deliver, number))
        for scanned, schema in self.compilers[0].streams().items():
            self._schemas[scanned] = schema
        self._configure_joins()
        self._cut()

    def remove(self, name: str) -> None:
        for compiler in self.compilers:
            compiler.remove(name)
        self._schemas = self.compilers[0].streams()

    def reads(self, stream: str) -> bool:
        return stream in self._schemas

    def push(self, stream: str, element: pl.DataFrame | Punctuations) -> None:
        """Send an element of a stream to the shards it concerns."""
        if not self.reads(stream):
            return
        if len(self.graphs) == 1 or isinstance(element, Punctuations) or (self.keys or {})[stream] == EVERYWHERE:
            for compiler in self.compilers:
                compiler.push(stream, element)
            return
        shard = pl.Series(shard_of(element, (self.keys or {})[stream], len(self.graphs)))
        for number, compiler in enumerate(self.compilers):
            part = element.filter(shard == number)
            if part.height:
                compiler.push(stream, part)

    def run(self) -> None:
        for graph in self.graphs:
            graph.run()

    def heartbeat(self) -> None:
        for graph in self.graphs:
            graph.heartbeat()

    def operators(self, name: str) -> list[Operator]:
        """The operators of one query, on all shards."""
        return [operator for compiler in self.compilers for operator in compiler.operators(name)]

    def request_punctuation(self, name: str) -> None:
        for compiler in self.compilers:
            compiler.request_punctuation(name)

    def snapshot(self) -> list[Any]:
        return [graph.snapshot() for graph in self.graphs]

    def restore(self, values: list[Any]) -> None:
        for graph, value in zip(self.graphs, values, strict=True):
            graph.restore(value)
