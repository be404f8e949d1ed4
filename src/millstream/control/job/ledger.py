"""The rows that a job has taken from each stream since it was opened: accepted, late and bad, with what is known of the
late and bad ones. Each group of shards that reads a stream judges all of its rows, so groups are counted apart."""

from __future__ import annotations

from collections.abc import Iterator

from millstream.algebra.stream_id import StreamId
from millstream.ingest.losses import Losses
from millstream.physical.shard.batch import Status


class Ledger:
    def __init__(self) -> None:
        self._of: dict[tuple[str, int, StreamId], Losses] = {}
        """By mill, group of shards, and reading of a stream."""

    def note(self, mill: str, status: Status) -> None:
        """Add the rows of a shard's batch."""
        for stream, losses in status.losses.items():
            key = mill, status.group, StreamId.of(stream)
            self._of[key] = self._of.get(key, Losses()) + losses

    def readings(self, mill: str) -> Iterator[tuple[str, Losses]]:
        """The declared stream and the rows of each reading in each group."""
        for (owner, _, stream), losses in [*self._of.items()]:
            if owner == mill:
                yield stream.base, losses

    def forget(self, mill: str, stream: str) -> None:
        """Forget a dropped stream."""
        self._of = {key: held for key, held in self._of.items() if (key[0], key[2].base) != (mill, stream)}
