"""The intake of a shard: the sources of the streams that the job reads, and the partial streams made of them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence, Set
from functools import partial

import polars as pl

from millstream.algebra.element import Element, Page
from millstream.algebra.punctuation.punctuations import Punctuations
from millstream.algebra.stream_id import StreamId
from millstream.errors import MillstreamError, PlanError
from millstream.ingest.paged.wanted import Skipped
from millstream.ingest.source import StreamSource
from millstream.physical.failure.description import FAULTS, failure_on_row
from millstream.physical.failure.transport import read_error
from millstream.physical.plan.partial import Partial
from millstream.physical.shard.prodding import Mark, placed
from millstream.physical.wire.own_rows import take_own_rows
from millstream.physical.wire.shard_split import ShardSplit
from millstream.physical.wire.stretches import Passed


class Intake:
    """`push` hands an element of a stream to the operators that read it. `marks` returns the marks of a stream at which
    queries prod themselves, and `prod` prods one; `feed` takes a prod of a stream."""

    def __init__(
        self,
        push: Callable[[str, Element], None],
        marks: Callable[[str, Passed, StreamSource], deque[Mark]],
        prod: Callable[[Mark], None],
        feed: Callable[[Sequence[tuple[str, Element]]], None],
    ) -> None:
        self._push_to, self._marks, self._prod, self._feed = push, marks, prod, feed
        self.sources: dict[str, StreamSource] = {}
        self.partials: dict[str, dict[str, Partial]] = {}
        """Stream → partial streams made of it."""
        self.skipped: dict[str, Skipped] = {}
        """What the sources of streams have left out because no reader wants it."""
        self.faults: dict[str, MillstreamError] = {}
        """Streams, and partial streams, whose rows could not be read or aggregated, since the last `take_faults`."""

    def keep_partials(self, kept: Set[str]) -> None:
        """Forget all partial streams but these."""
        self.partials = {s: {n: p for n, p in made.items() if n in kept} for s, made in self.partials.items()}

    def take(self, split: ShardSplit) -> None:
        """Pass a shard's share of a split through its source, to the operators that read it."""
        source = self.sources.get(split.stream)
        if source is None:
            return
        self.faults |= {stream: read_error(text) for stream, text in split.failed.items()}
        if split.stream in split.failed:
            return
        if split.skipped.tested:
            self.note_skipped({split.stream: split.skipped})
        for prod in split.prods:
            self._feed([(split.stream, prod)])
        passed = self._marks(split.stream, split.passed, source)
        for mark in () if split.unordered else passed:
            self._prod(mark)
        split = split.judged_by(source)
        taken = take_own_rows(source, split)
        for name, groups in split.partials.items():
            self._push_to(name, Page(groups))
        for element in placed(taken.elements, passed) if passed and split.unordered else taken.elements:
            if isinstance(element, Mark):
                self._prod(element)
            elif split.own.partials and isinstance(element, Page):
                for made in split.own.partials:
                    self._push_groups(split.stream, made.name, partial(split.own.groups, made), element.frame)
            else:
                self._push(split.stream, element)
        if (order := source.order()) is not None:
            self._push(split.stream, order)
        if taken.late.height:
            self._push_to(StreamId.of(split.stream).late, Page(taken.late))
        if taken.bad.height:
            self._push_to(StreamId.of(split.stream).bad, Page(taken.bad))

    def note_skipped(self, counts: Mapping[str, Skipped]) -> None:
        for stream, count in counts.items():
            self.skipped[stream] = self.skipped.get(stream, Skipped()) + count

    def _push(self, stream: str, element: Element) -> None:
        """Push an element to a stream, and its derived element to each partial stream made of it."""
        self._push_to(stream, element)
        for name, partial_stream in self.partials.get(stream, {}).items():
            match element:
                case Page():
                    self._push_groups(stream, name, partial_stream.rows, element.frame)
                case Punctuations():
                    self._push_to(name, partial_stream.pass_on(element))
                case _:
                    raise PlanError("M3091", f"a partial aggregate does not take a {type(element).__name__}")

    def _push_groups(
        self, stream: str, name: str, groups: Callable[[pl.DataFrame], pl.DataFrame], rows: pl.DataFrame
    ) -> None:
        """Push the partial groups of some rows. Where they cannot be made, only the readers of the groups fail."""
        try:
            self._push_to(name, Page(groups(rows)))
        except FAULTS as error:
            self.faults[name] = failure_on_row("partial aggregate", StreamId.of(stream).base, rows, groups, error)

    def take_faults(self) -> dict[str, MillstreamError]:
        """Return the streams that have failed since the last call, with their errors."""
        taken, self.faults = self.faults, {}
        return taken
