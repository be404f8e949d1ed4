"""The rows of DataFrames that no reader wants, and where queries prod themselves, for the tasks that pack them.

The Spark plan of a job is fixed, and its packing tasks are sent nothing with a batch. But the number of the batch is
known to a task, Spark has written the offsets of the batch before it runs, and the control log has the rest. So a batch
that is repeated leaves out the same rows. Where the folder of the job cannot be read, all rows are packed, and guards
in the shards drop them.
"""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path

from millstream.algebra.punctuation.pattern import Pattern
from millstream.algebra.schedule import Grid
from millstream.errors import MillstreamError
from millstream.physical.shard.topology import Topology
from millstream.physical.wire.control_log import ControlLog

BATCH = "streaming.sql.batchId"
"""The property of a task with the number of its batch."""

Told = tuple[tuple[Pattern, ...], tuple[Grid, ...]]


class _Folded:
    """The control log of a job, as far as it has been read."""

    def __init__(self, folder: Path) -> None:
        self._log, self._topology, self._position = ControlLog(folder / "control.log"), Topology(), 0

    def told(self, stream: str, position: int) -> Told:
        if position < self._position:
            self._topology, self._position = Topology(), 0
        for record in self._log.read(self._position, position):
            self._topology.note(record)
        self._position = position
        found = [patterns for (_, name), patterns in self._topology.unwanted.items() if name == stream]
        grids = [route.grids for (_, name), route in self._topology.routes().items() if name == stream]
        return found[0] if len(found) == 1 else (), grids[0] if len(grids) == 1 else ()


@lru_cache(maxsize=8)
def _folded(folder: str) -> _Folded:
    return _Folded(Path(folder))


def told_in(folder: str, stream: str, batch: str | None) -> Told | None:
    """The patterns of the rows of a stream that no reader wants in a batch, and the marks of its queries; None if the
    folder cannot be read."""
    try:
        # a line for each source; the first one is the job's own
        _version, _metadata, offset, *_ = (Path(folder) / "spark" / "offsets" / str(batch)).read_text().splitlines()
        return _folded(folder).told(stream, int(json.loads(offset)["log"]))
    except (OSError, ValueError, KeyError, MillstreamError):
        return None
