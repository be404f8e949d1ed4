"""Lets time pass for operators that wait: on demand as long as one waits, or by heartbeat.

A thread looks, a few times a second, whether the last batch has left an operator waiting for the time of a stream that
could promise some; if so it writes the promise to the control log, and the job has a batch in which it is heard.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from millstream.control.mill.base import Mill

INTERVAL = 0.1
"""Seconds between two looks."""


class Pacer:
    def __init__(self, mill: Mill) -> None:
        self._mill = mill
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None
        self._looked = 0.0

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
        return self._mill.options.heartbeat if self._mill.options.ets == "heartbeat" else INTERVAL

    def look(self) -> None:
        """For jobs that have no thread of their own: tell the time, if that is due."""
        if time.monotonic() >= self._looked + self._interval():
            self._looked = time.monotonic()
            self._pace()

    def _pace(self) -> None:
        mode = self._mill.options.ets
        if mode != "none":
            self._mill.time.pace(beat=mode == "heartbeat")
