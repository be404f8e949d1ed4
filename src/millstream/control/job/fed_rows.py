"""The rows that were fed to the streams of a job, until their batch is delivered."""

from __future__ import annotations

from collections import Counter, deque

from millstream.algebra.element import Page
from millstream.algebra.stream_id import StreamId
from millstream.physical.wire.records import Feed


class FedRows:
    def __init__(self) -> None:
        self._waiting: deque[tuple[int, str, Counter[str]]] = deque()
        """Of each record: the position behind it, the mill, and the number of rows by stream. Late and bad rows are
        those of the streams that have them."""

    def add(self, position: int, feed: Feed) -> None:
        found: Counter[str] = Counter()
        for stream, element in feed.elements:
            if isinstance(element, Page):
                found[stream] += element.tuples
        self._waiting.append((position, feed.mill, found))

    def deliver(self, position: int) -> list[tuple[int, Counter[tuple[str, str]]]]:
        """Remove the records up to a position; return the position behind each, and its numbers of rows, by mill and
        stream. Late and bad rows count."""
        found: list[tuple[int, Counter[tuple[str, str]]]] = []
        while self._waiting and self._waiting[0][0] <= position:
            end, mill, fed = self._waiting.popleft()
            rows: Counter[tuple[str, str]] = Counter()
            for stream, count in fed.items():
                rows[mill, StreamId.of(stream).source] += count
            found.append((end, rows))
        return found

    def undelivered(self, mill: str, stream: str) -> int:
        """Number of rows of a stream, without late and bad ones, whose batch has not been delivered."""
        return sum(fed[stream] for _, owner, fed in [*self._waiting] if owner == mill)
