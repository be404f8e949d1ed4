"""The pacer advances time for waiting operators: on demand while one waits, or by heartbeat.

A thread checks several times a second whether the last batch left an operator waiting for the time of a stream that can
promise it. If so, it writes the promise to the control log, and the job runs a batch with it. It also causes batches
while an operator has work left that it limits per batch.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from millstream.control.mill.base import Mill

INTERVAL = 0.1
"""Seconds between two checks."""
WORKING = 0.02
"""Seconds between two checks while an operator has work left that it limits per batch."""


class Pacer:
    def __init__(self, mill: Mill, watch: Callable[[], None] = lambda: None) -> None:
        """`watch` is called at every check."""
        self._mill, self._watch = mill, watch
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None
        self._polled = 0.0

    def start(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="millstream-pacer", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        if self._thread is not None:
            self._thread.join(timeout=5)

    def _run(self) -> None:
        while not self._stopped.wait(self._interval()):
            self._pace()

    def _interval(self) -> float:
        if self._mill.placements.pending():
            return WORKING
        return self._mill.options.heartbeat if self._mill.options.ets == "heartbeat" else INTERVAL

    def poll(self) -> None:
        """Check if a check is due; for jobs in this process, which need no thread."""
        if time.monotonic() >= self._polled + self._interval():
            self._polled = time.monotonic()
            self._pace()

    def _pace(self) -> None:
        self._mill.deliveries.retry()
        self._mill.time.go_on()
        self._mill.prodders.tick()
        self._watch()
        mode = self._mill.options.ets
        if mode != "none":
            self._mill.time.pace(beat=mode == "heartbeat")
