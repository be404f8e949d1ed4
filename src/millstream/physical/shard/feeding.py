"""Elements on their way into the graph of a shard; a prod keeps its place among them."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from itertools import groupby

from millstream.algebra.early import Prod
from millstream.algebra.element import Element
from millstream.algebra.schema import NEVER
from millstream.ingest.source import StreamSource
from millstream.physical.plan.compile import Compiler
from millstream.physical.shard.prodding import Mark, by_time, marks
from millstream.physical.shard.setup import Setup
from millstream.physical.shard.topology import scans
from millstream.physical.wire.stretches import Passed
from millstream.runtime.engine import Graph


class Feeding:
    """`epoch`: the number of prods in the batch so far. All shards of the first stage count the same ones, those of a
    later stage have the number from what is sent to them."""

    def __init__(self, graph: Graph, compiler: Compiler, setup: Setup) -> None:
        self._graph, self._compiler, self._setup = graph, compiler, setup
        self.sources: Mapping[str, StreamSource] = {}
        self.epoch = 0

    def take(self, elements: Sequence[tuple[str, Element]], epoch: int = -1) -> None:
        """Push elements to their streams, a prod with all of its copies. `epoch`: that of the elements; -1: the current
        one."""
        self.epoch = epoch if epoch >= 0 else self.epoch
        for number, run in groupby(elements, lambda each: each[1].number if isinstance(each[1], Prod) else ""):
            if not number:
                for stream, element in run:
                    self._compiler.push(stream, element)
                continue
            copies = [(stream, element) for stream, element in run if isinstance(element, Prod)]
            self._graph.run()
            self.epoch += epoch < 0
            known = [self.sources[stream].known for stream, _ in copies if stream in self.sources]
            time = max(known, default=NEVER)
            self._compiler.prod([(stream, prod.at(time)) for stream, prod in copies], self._parts(copies[0][1].reader))

    def _parts(self, reader: str) -> list[str] | None:
        """The parts of the query that a prod is of; None: the prod is of a stream, for all queries."""
        return [query.name for query in self._setup.running.values() if query.whole == reader] if reader else None

    def marks(self, stream: str, passed: Passed, source: StreamSource) -> deque[Mark]:
        """The marks at which queries prod themselves, and that the time of a stream passes."""
        if not passed:
            return deque()
        own = by_time(self._setup.running.values(), self._setup.schedules, stream)
        return marks(own, passed, source.known, source.known if source.newest is None else source.newest)

    def prod(self, mark: Mark) -> None:
        """Prod a query that has come to a mark."""
        read = dict.fromkeys(scan.stream for scan in scans(self._setup.queries[mark.query].plan))
        self.take([(stream, mark.prod) for stream in read])
