"""The counts of late and bad rows since a connection was opened, and warnings of streams that have many.

A warning is given once per stream and kind, when more than one per cent of its rows are late or bad (`WARNED`). Of rows
that a table refuses it is given at the first one, and each time that their number has doubled. Warnings are logged by
the logger `millstream`. Rows from before a restart do not count.
"""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING

from millstream.control.observe.loss_reports import bad_report, late_report
from millstream.errors import InputError
from millstream.ingest.losses import Losses
from millstream.logical.catalog import StreamDefinition

if TYPE_CHECKING:
    from millstream.control.mill.base import Mill

LOG = logging.getLogger("millstream")
WARNED = 0.01
"""Share of a stream's rows that may be late, or bad, without a warning."""


def losses(mill: Mill) -> dict[str, Losses]:
    """The rows of each stream since the mill was opened; of several readings, those of the one that has read most."""
    found: dict[str, Losses] = dict(mill.feeds.losses)
    for job in mill.jobs.all():
        for stream, held in job.ledger.readings(mill.name):
            if held.rows > found.get(stream, Losses()).rows:
                found[stream] = held
    return found


class LossWatch:
    """Warns of streams with many late or bad rows."""

    def __init__(self, mill: Mill) -> None:
        self._mill = mill
        self._warned: dict[tuple[str, str], StreamDefinition] = {}
        """The streams warned of, by name and kind of loss; one of the same name may be created later."""
        self._refused: dict[str, int] = {}
        """The rows that each table had refused when it was last warned of."""
        self._checking = threading.Lock()

    def check(self) -> None:
        """Warn of the streams that have passed the limit since the last call."""
        with self._checking:
            for name, held in losses(self._mill).items():
                if name in self._mill.catalog and (held.late or held.bad):
                    self._check(self._mill.catalog.stream(name), held)
            for table, (number, reason) in refused(self._mill).items():
                if number >= max(1, 2 * self._refused.get(table, 0)):
                    self._refused[table] = number
                    rows = "1 row that does" if number == 1 else f"{number:,} rows that do"
                    message = f"table '{table}' has refused {rows} not fit"
                    LOG.warning("%s", InputError("M5070", message, detail=f"The last one: {reason}."))

    def _check(self, stream: StreamDefinition, held: Losses) -> None:
        for kind, number, report in (("late", held.late, late_report), ("bad", held.bad, bad_report)):
            key = stream.name, kind
            if number > WARNED * held.rows and self._warned.get(key) is not stream:
                self._warned[key] = stream
                LOG.warning("%s", report(stream, held))


def refused(mill: Mill) -> dict[str, tuple[int, str]]:
    """The rows that tables have refused: their number, and why one of them was."""
    found = {table.name: mill.written.refused(table.name) for table in mill.catalog.tables}
    return {table: held for table, held in found.items() if held[0]}
