"""Run a split plan: partial results of arbitrary pieces of the input, hashed to shards that merge them."""

from __future__ import annotations

import pickle
from collections import Counter
from functools import partial
from random import Random
from typing import Any

import polars as pl

from millstream.algebra.clock import VirtualClock
from millstream.algebra.element import Element, Page
from millstream.algebra.punctuation.punctuations import Punctuations
from millstream.algebra.schema import NEVER, TS
from millstream.control.mill import LocalMill
from millstream.control.mill.outputs import QueryOutput
from millstream.ingest.source import StreamSource
from millstream.logical.nodes.scan import Scan
from millstream.logical.nodes.window_aggregate import window_starts
from millstream.physical.plan.compile import Compiler
from millstream.physical.plan.partial import PartialSplit, split_aggregate
from millstream.physical.plan.partitioning import partition_keys
from millstream.runtime.engine import Graph


class SplitRun:
    """The query `q` of a mill that reads one stream, on a source, pieces and shards of its own."""

    def __init__(self, mill: LocalMill, shards: int, random: Random) -> None:
        plan = mill.query("q").plan
        made = split_aggregate(plan)
        assert made is not None and made.plan.schema == plan.schema and split_aggregate(made.plan) is None
        self.split: PartialSplit = pickle.loads(pickle.dumps(made))
        definition = mill.catalog.stream(made.stream)
        self.clock, self.random, self.promised = VirtualClock(), random, NEVER
        self.source = StreamSource(definition, self.clock)
        (self.stream,) = (part.stream for part in made.plan.walk() if isinstance(part, Scan))
        keys = partition_keys(made.plan)
        self.keys = None if keys is None else keys[self.stream]
        assert self.keys is None or self.keys == self.split.partial.group
        self.graphs = [Graph() for _ in range(shards if self.keys else 1)]
        self.output = QueryOutput(plan.schema, len(self.graphs), window_starts(plan))
        self.compilers = [Compiler(graph, lambda _: lambda _: self.source.ets(), {}) for graph in self.graphs]
        for number, compiler in enumerate(self.compilers):
            compiler.add("q", made.plan, partial(self.output.deliver, number))

    def feed(self, lines: list[str]) -> None:
        """One batch: the output of the source, in order, or all tuples before all punctuations."""
        elements: list[Element] = list(self.source.take(lines).elements)
        pages = [element.frame for element in elements if isinstance(element, Page)]
        if pages and self.random.random() < 0.5:
            elements = [Page(pl.concat(pages)), *(e for e in elements if isinstance(e, Punctuations))]
        if (order := self.source.order()) is not None:
            elements.append(order)
        for element in elements:
            if isinstance(element, Page):
                self._push_rows(element.frame)
            else:
                assert isinstance(element, Punctuations)
                passed = self.split.partial.pass_on(element)
                assert passed.progress == element.progress
                self.promised = max(self.promised, passed.progress)
                for compiler in self.compilers:
                    compiler.push(self.stream, passed)
        self._run()

    def advance(self, micros: int) -> None:
        self.clock.advance(micros)
        self._run()

    def _run(self) -> None:
        for graph in self.graphs:
            graph.run()

    def _push_rows(self, page: pl.DataFrame) -> None:
        page = page.select(*self.split.partial.columns, TS)
        while page.height:
            size = self.random.randint(1, page.height)
            piece, page = page.head(size), page.slice(size)
            rows = self.split.partial.rows(piece)
            assert dict(rows.schema) == self.split.partial.schema.polars
            assert rows.height <= piece.height and (rows.get_column(TS) >= self.promised).all()
            assert rows.get_column(TS).is_sorted() or not self.split.partial.schema.ordered
            for shard, compiler in enumerate(self.compilers):
                part = rows if self.keys is None else rows.filter(self._shard(rows) == shard)
                compiler.push(self.stream, Page(part))

    def _shard(self, rows: pl.DataFrame) -> pl.Series:
        hashed = rows.select(pl.struct(self.keys).hash(seed=0).alias("shard")).to_series()
        return hashed % len(self.graphs)

    def outcome(self) -> tuple[Counter[Any], Counter[str], int]:
        """Rows and punctuations as bags, and the number of groups held."""
        held = sum(operator.state_rows() for compiler in self.compilers for operator in compiler.operators("q"))
        return Counter(self.output.take_rows().rows()), Counter(map(str, self.output.take_punctuations())), held
