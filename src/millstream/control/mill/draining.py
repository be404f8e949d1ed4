"""Draining: reading the streams with a connector up to their newest rows, or to their end.

Jobs in this process read when they are told to. A job on Spark reads by itself; if the mill holds its streams, it is
released until it has read all that is there.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from millstream.algebra.stream_id import PlaceId, StreamId
from millstream.control.job.jobs import LocalJobs
from millstream.errors import OptionError
from millstream.physical.wire.records import Hold

if TYPE_CHECKING:
    from millstream.control.job.base import Job
    from millstream.control.mill.base import Mill

MOST_SECONDS = 120.0
POLL_SECONDS = 0.02


def drain(mill: Mill) -> None:
    """Read all there is, give waiting operators the time that the streams can promise, and let operators finish the
    work that they limit per batch."""
    _read(mill)
    if mill.placements.pending():
        finish(mill)
        mill.time.pace()
        mill.sync()


def finish(mill: Mill) -> None:
    """Let operators finish the work that they limit per batch."""
    deadline = time.monotonic() + MOST_SECONDS
    while mill.time.go_on():
        mill.sync()
        if time.monotonic() > deadline:
            raise OptionError("M6050", f"the work of operators with a budget took more than {MOST_SECONDS:.0f} s")


def _read(mill: Mill) -> None:
    if isinstance(mill.jobs, LocalJobs):
        while mill.jobs.step():
            mill.sync()
    elif unread := [job for job in mill.placements.jobs() if not _drained(mill, job)]:
        _release(mill, unread)
    mill.time.pace()
    mill.sync()


def _release(mill: Mill, jobs: list[Job]) -> None:
    for job in jobs:
        mill.placements.append(Hold(mill.name, False), job)
        job.start()
    deadline = time.monotonic() + MOST_SECONDS
    while not all(_drained(mill, job) for job in jobs):
        for job in jobs:
            job.check()
        if time.monotonic() > deadline:
            raise OptionError("M6050", f"the streams were not read within {MOST_SECONDS:.0f} s")
        time.sleep(POLL_SECONDS)
    if not mill.readings.released:
        for job in jobs:
            mill.placements.append(Hold(mill.name, True), job)
    mill.sync()


def _drained(mill: Mill, job: Job) -> bool:
    """Return whether a job has read all there is of the streams that it reads for the mill."""
    read = (stream for stream in mill.placements.read() if StreamId.of(stream).base in mill.connectors.names())
    live = [stream for stream in read if job in mill.readings.live(stream)]
    if not live:
        return True
    places, now = job.places(), mill.clock.now()
    return all(
        mill.connectors.drained(
            StreamId.of(stream).base, places.get(str(PlaceId(mill.name, stream, reading.number))), now
        )
        for stream in live
        for reading, _ in [mill.readings.last[job, stream]]
    )
