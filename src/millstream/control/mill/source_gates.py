"""Gates of sources: a source whose tests for unwanted rows do not pay stops testing for a while.

It is the rule of guards in a query graph (`runtime/engine/gate`). Behind a source are hashing, packing, the exchange
and the decoding of a row, so few unwanted rows pay for the test. The shards report the rows that were tested and left
out; the driver decides, and writes it to the control log with the patterns.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from millstream.algebra.punctuation.pattern import Pattern
from millstream.physical.shard.batch import Status
from millstream.runtime.engine.gate import Gate

BEHIND = 4
"""The cost of a row behind its source, if an operator without state costs 1."""
Patterns = tuple[Pattern, ...]


@dataclass(slots=True)
class _SourceGate:
    patterns: Patterns = ()
    gate: Gate = field(default_factory=Gate)
    tested: int = 0
    dropped: int = 0
    rows: int = 0
    """Rows read when it was last considered."""


class SourceGates:
    """The gates of the streams of a job."""

    def __init__(self) -> None:
        self._of: dict[str, _SourceGate] = {}

    def asleep(self, unwanted: Mapping[str, Patterns], heard: Iterable[Status], rows: Mapping[str, int]) -> set[str]:
        """Return the streams whose sources do not test rows for a while. `rows`: the rows read of each so far."""
        counts = [status.skipped for status in heard if status.skipped]
        self._of = {stream: self._of.get(stream, _SourceGate(rows=rows.get(stream, 0))) for stream in unwanted}
        for stream, held in self._of.items():
            if held.patterns != unwanted[stream]:
                held.patterns = unwanted[stream]
                held.gate.wake()
            read, held.rows = rows.get(stream, 0) - held.rows, rows.get(stream, 0)
            found = max((count[stream] for count in counts if stream in count), default=None, key=lambda c: c.tested)
            if held.gate.passes(read) or found is None:
                continue
            columns = len({name for pattern in held.patterns for name in pattern.attributes})
            tested, dropped = max(0, found.tested - held.tested), max(0, found.rows - held.dropped)
            held.tested, held.dropped = found.tested, found.rows
            held.gate.count(tested, dropped, columns, lambda: BEHIND)
        return {stream for stream, held in self._of.items() if held.gate.asleep}
