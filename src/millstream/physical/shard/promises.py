"""What the streams of a shard have promised, and what its operators ask of them.

The feeder of a stream promises time, to all shards alike: a shard that promised time by itself would treat a tuple as
late that another shard accepts. A source in the shard promises only what those of all other shards promise too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from millstream.algebra.feedback import Feedback, Intent, Withdrawal
from millstream.algebra.schema import NEVER
from millstream.algebra.stream_id import StreamId
from millstream.algebra.upstream import TimeRequest, Upstream
from millstream.ingest.source import StreamSource
from millstream.runtime.engine.nodes import Hear


class Promises:
    def __init__(self, sources: Mapping[str, StreamSource]) -> None:
        self._sources = sources
        self.promised: dict[str, int] = {}
        """The time that each stream has promised."""
        self.answered: dict[str, int] = {}
        """The last promise that each stream has returned to a request for time."""
        self.wanted: set[str] = set()
        """Streams read by the job whose time was once requested; they promise it in every batch from then on."""
        self.messages: dict[tuple[str, Upstream], None] = {}
        """Messages of operators to streams since the last `take_messages`."""

    def hear(self, source: StreamId) -> Hear:
        """Return the receiver of messages to a stream. It notes them for the driver, and answers a request for time
        with the stream's promise. It does not note a request that a new promise answers: an operator that still waits
        asks again."""

        stream, base = str(source), source.whole

        def hear(message: Upstream) -> int | None:
            if isinstance(message, Withdrawal) or (isinstance(message, Feedback) and message.intent is Intent.ASSUMED):
                return None  # what all readers disclaim is reported as a whole: `disclaimed`
            promised = self.promised.get(base) if isinstance(message, TimeRequest) else None
            if promised is None or promised <= self.answered.get(stream, NEVER):
                self.messages[base, message] = None
            else:
                self.answered[stream] = promised
            return promised

        return hear

    def accept(self, times: Mapping[str, int], read: Callable[[str], bool]) -> bool:
        """Take the times that feeders promise for the streams that are read; return whether one is new."""
        new = any(time > self.promised.get(stream, NEVER) for stream, time in times.items())
        self.promised |= {stream: time for stream, time in times.items() if read(stream)}
        return new

    def give(self, streams: Iterable[str]) -> int:
        """Let the sources of this shard promise the time they can, as those of all other shards do; return how many
        promise a new time."""
        given = 0
        for stream in streams:
            value = self._sources[stream].ets() if stream in self._sources else None
            if value is not None and value > self.promised.get(stream, NEVER):
                self.promised[stream] = value
                given += 1
        return given

    def want(self, streams: Iterable[str]) -> None:
        """Note requests for the time of streams that the job reads, where they promise the clock, which makes no tuple
        late."""
        self.wanted.update(stream for stream in streams if stream in self._sources and self._sources[stream].stamped)

    def keep(self, read: Callable[[str], bool]) -> None:
        """Keep the promises of streams that are read. A stream may be dropped and created again: the driver repeats a
        promise that still holds to a new query."""
        self.promised = {stream: time for stream, time in self.promised.items() if read(stream)}
        self.answered = {stream: time for stream, time in self.answered.items() if read(stream)}

    def forget(self, stream: str) -> None:
        """Forget the promises of a dropped stream and its companions."""
        self.wanted.discard(stream)
        for promises in (self.promised, self.answered):
            for name in [name for name in promises if StreamId.of(name).source == stream]:
                del promises[name]

    def take_messages(self) -> tuple[tuple[str, Upstream], ...]:
        """Return the distinct messages of operators to streams since the last call: stream and message."""
        taken, self.messages = self.messages, {}
        return tuple(taken)

    def snapshot(self) -> dict[str, Any]:
        return {"promised": self.promised, "told": self.answered, "wanted": self.wanted}

    def restore(self, values: Mapping[str, Any]) -> None:
        self.promised, self.answered = dict(values["promised"]), dict(values["told"])
        self.wanted, self.messages = set(values["wanted"]), {}
