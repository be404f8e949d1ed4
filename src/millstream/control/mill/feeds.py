"""Streams fed from the driver: their arrivals, their sources, and the times they have promised."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby, takewhile
from typing import Any

from millstream.algebra.clock import Clock
from millstream.algebra.early import Prod, parse_prod, stream_prod
from millstream.algebra.element import Element, Page
from millstream.algebra.punctuation.pattern import Pattern, parse_pattern
from millstream.algebra.punctuation.punctuations import Punctuations
from millstream.algebra.schema import NEVER
from millstream.algebra.stream_id import StreamId
from millstream.errors import InputError, PatternError
from millstream.ingest.arrivals import CheckedRows, RejectedLine, check_pattern, check_punctuations, read_element
from millstream.ingest.losses import Losses
from millstream.ingest.rows import check_rows
from millstream.ingest.source import PunctuatedRows, StreamSource
from millstream.logical.catalog import StreamDefinition

Cut = Callable[[StreamSource, str, Iterable[Any]], Iterator[tuple[list[Any], list[tuple[str, Element]]]]]


class Feeds:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.sources: dict[str, StreamSource] = {}
        self._arrived: list[tuple[str, Any]] = []
        self._promised: dict[str, int] = {}
        """The last promise of each stream."""
        self.cut: Cut = lambda _, __, arrived: iter([([*arrived], [])])
        """Cuts arrivals of a stream where its queries prod themselves; it returns pieces and the prods behind them."""
        self.losses: dict[str, Losses] = {}
        """The rows of each stream since the mill was opened."""

    def open(self, definition: StreamDefinition, page_rows: int) -> None:
        self.sources[definition.name] = StreamSource(definition, self._clock, page_rows)

    def forget(self, name: str) -> None:
        """Forget a dropped stream."""
        self.sources.pop(name, None)
        self.losses.pop(name, None)
        self._promised = {stream: time for stream, time in self._promised.items() if StreamId.of(stream).source != name}

    # --- arrivals ---------------------------------------------------------------------------------------------------

    def insert(self, name: str, rows: Any) -> None:
        if isinstance(rows, PunctuatedRows):
            check_punctuations(rows.punctuations, self.sources[name].schema)
        elif not isinstance(rows, Pattern | CheckedRows):
            rows = check_rows(name, rows)
        self._arrived.append((name, rows))

    def punctuate(self, name: str, patterns: Sequence[Any]) -> None:
        schema = self.sources[name].schema
        for given in patterns:
            if not isinstance(given, str | Pattern):
                hint = f"mill.punctuate('{name}', '[ts < 10]', …)"
                message = f"expected a pattern as text, found {type(given).__name__}"
                raise PatternError("M4009", message, hint=hint)
        parsed = [parse_pattern(p, schema) if isinstance(p, str) else check_pattern(p, schema) for p in patterns]
        self._arrived += [(name, pattern) for pattern in parsed]

    def prod(self, name: str, text: str) -> None:
        """Queue a prod among the elements of a stream."""
        schema = self.sources[name].schema
        self._arrived.append((name, stream_prod(parse_prod(text, schema), schema)))

    def line(self, name: str, line: str) -> None:
        """Queue one line of text; a malformed line becomes a bad row."""
        try:
            element: Any = read_element(line, self.sources[name].schema) or line
        except (PatternError, InputError) as error:
            element = RejectedLine(line, error.message)
        self._arrived.append((name, element))

    def take(self) -> list[tuple[str, Element]]:
        """Take the first arrivals, up to those of another stream, through the source of their stream."""
        name = self._arrived[0][0]
        run = [element for _, element in takewhile(lambda arrival: arrival[0] == name, self._arrived)]
        source = self.sources[name]
        elements: list[tuple[str, Element]] = []
        for is_prod, part in groupby(run, lambda element: isinstance(element, Prod)):
            # A prod is behind the time that the tuples before it imply, on every shard.
            if is_prod:
                elements += [(name, prod.at(source.known)) for prod in part]
            else:
                elements += self._taken(name, part)
        self.losses[name] = self.losses.get(name, Losses()) + source.take_losses()
        del self._arrived[: len(run)]
        return elements

    def _taken(self, name: str, arrived: Iterable[Any]) -> Iterator[tuple[str, Element]]:
        """Take arrivals between two prods through the source of their stream."""
        source = self.sources[name]
        for piece, prods in self.cut(source, name, arrived):
            taken = source.take(piece)
            yield from ((name, element) for element in taken.elements)
            if (order := source.order()) is not None:
                yield name, order  # for readers without a tuple: behind a filter, on another shard
            if taken.late.height:
                yield StreamId.of(name).late, Page(taken.late)
            if taken.bad.height:
                yield StreamId.of(name).bad, Page(taken.bad)
            yield from prods

    def __bool__(self) -> bool:
        """True if there are arrivals."""
        return bool(self._arrived)

    # --- time -------------------------------------------------------------------------------------------------------

    def times(self, streams: Iterable[str]) -> dict[str, int]:
        """The times that these streams can promise now and have not promised before."""
        times: dict[str, int] = {}
        for stream in streams:
            value = self.sources[stream].ets() if stream in self.sources else self._clock.now()
            if value is not None and value > self._promised.get(stream, NEVER):
                times[stream] = self._promised[stream] = value
        return times

    def reached(self) -> dict[str, int]:
        """The time that each stream has reached by its order and its punctuation; FOREVER if it has ended."""
        return {name: source.reached for name, source in self.sources.items() if source.reached > NEVER}

    def closed(self, streams: Iterable[str]) -> dict[str, Punctuations]:
        """The punctuation that each of these streams has sent, but for bounds on its time."""
        sent = {name: self.sources[name].closed for name in streams if name in self.sources}
        return {name: punctuations for name, punctuations in sent.items() if len(punctuations)}

    def given(self, streams: Iterable[str]) -> dict[str, int]:
        """The promises that these streams have given."""
        return {stream: self._promised[stream] for stream in streams if stream in self._promised}

    # --- recovery ---------------------------------------------------------------------------------------------------

    def snapshot(self) -> tuple[dict[str, int], dict[str, Any]]:
        return dict(self._promised), {name: source.snapshot() for name, source in self.sources.items()}

    def restore(self, promised: Mapping[str, int], held: Mapping[str, Any]) -> None:
        """Resume from a snapshot."""
        self._promised = dict(promised)
        for name, values in held.items():
            if name in self.sources:
                self.sources[name].restore(values)
