"""Ctrl-C and SIGTERM end a program in order, and within ten seconds.

The first signal raises `Stopped` in the main thread, wherever that is; what the program then closes is not interrupted
by another. If it has not ended after `SECONDS` (a sink does not return, a call outside Python takes long), the process
is ended at once: a batch that was not committed is run again from the checkpoint.

A thread counts the seconds. It is woken by the signal itself, also while the main thread cannot run Python code, and
repeats a signal whose exception was lost (Python drops those raised in a finalizer).
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import Any

from millstream import scratch

SECONDS = 8.0
"""Longest time between a signal and the end of the process."""
AGAIN = 1.0
"""Seconds after which an exception that nothing has caught is raised again."""
SIGNALS = (signal.SIGINT, signal.SIGTERM)
LOG = logging.getLogger("millstream")


class Stopped(BaseException):
    """A signal has ended the program. `status`: its exit status by the convention of shells."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.name, self.status = signal.Signals(number).name, 128 + number
        self.told = False
        """True once the program says what it did until then: it is not raised again."""


class Stop:
    """The state of a program that signals can stop."""

    def __init__(self) -> None:
        self._stopped: Stopped | None = None
        """By the first signal."""
        self._raising = True
        self.started = False
        """True once the program has started what it is for."""
        self._ended = threading.Event()

    def install(self) -> None:
        """Handle the signals; again after Spark has replaced the handler of Ctrl-C."""
        for number in SIGNALS:
            signal.signal(number, self._handle)

    def close(self, close: Callable[[], None], *, aside: bool) -> None:
        """Call a function that signals do not interrupt. `aside`: in a thread of its own, because the connection of the
        main thread to the JVM may be in the middle of a call. After a signal its errors are only logged: the signal may
        have ended the JVM too."""
        self._raising = False
        try:
            if aside:
                with ThreadPoolExecutor(1) as pool:
                    pool.submit(close).result()
            else:
                close()
        except Exception as error:
            if self._stopped is None:
                raise
            LOG.info("while stopping: %s: %s", type(error).__name__, error)

    def _handle(self, number: int, _: Any) -> None:
        self._stopped = self._stopped or Stopped(number)
        if self._raising and not self._stopped.told:
            raise self._stopped

    def end(self) -> None:
        self._raising = False
        self._ended.set()

    def watch(self, read: int) -> None:
        """Wait for a signal, then for the end, which is forced if it takes too long."""
        try:
            number = next((one for one in iter(lambda: _byte(read), 0) if one in SIGNALS), 0)
            deadline = time.monotonic() + SECONDS
            while number and not self._ended.wait(AGAIN):
                if time.monotonic() > deadline:
                    abandon(number)
                if self._raising:
                    signal.pthread_kill(threading.main_thread().ident or 0, number)
        finally:
            os.close(read)


def _byte(read: int) -> int:
    """The next byte of a pipe; 0 at its end."""
    return next(iter(os.read(read, 1)), 0)


def abandon(number: int) -> None:
    """End this process and its JVM at once, as after a signal of this number."""
    LOG.warning("not stopped after %.0f s: the running batch is abandoned; the next start runs it again", SECONDS)
    if sys.stdout.isatty():
        os.write(1, b"\x1b[?25h\n")  # show the cursor
    end_jvm(in_use=True)
    scratch.remove_own()
    scratch.sweep()  # what the JVM has shared
    os._exit(128 + number)


@contextmanager
def stopping() -> Iterator[Stop]:
    """Let signals stop what runs inside. In a thread other than the main one signals are left alone."""
    stop = Stop()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    before = [signal.getsignal(number) for number in SIGNALS]
    read, write = os.pipe()
    os.set_blocking(write, False)
    woken = signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    threading.Thread(target=stop.watch, args=(read,), name="millstream-stop", daemon=True).start()
    stop.install()
    report, sys.unraisablehook = sys.unraisablehook, _unless_stopped(sys.unraisablehook)
    try:
        yield stop
    finally:
        sys.unraisablehook = report
        signal.set_wakeup_fd(woken)
        stop.end()
        os.close(write)
        for number, handler in zip(SIGNALS, before, strict=True):
            signal.signal(number, handler)


def _unless_stopped(report: Callable[[Any], None]) -> Callable[[Any], None]:
    """Report exceptions that Python drops, except `Stopped`: its signal is repeated."""
    return lambda dropped: None if dropped.exc_type is Stopped else report(dropped)


def end_jvm(*, in_use: bool = False) -> None:
    """Kill the JVM that this process has started, and what that has started: Python workers, or the scripts and the JVM
    that find the command of a JVM which is only starting. `in_use`: even if a session uses it."""
    pyspark = sys.modules.get("pyspark")
    if not in_use and pyspark is not None and pyspark.SparkContext._active_spark_context is not None:
        return
    for pid in scratch.children(os.getpid()):
        with suppress(OSError):
            if b"pyspark-shell" in (scratch.PROCESSES / str(pid) / "cmdline").read_bytes().split(b"\0"):
                kill_tree(pid)
                os.waitpid(pid, 0)


def kill_tree(pid: int) -> None:
    """Kill a process and its descendants, each before it can start another."""
    with suppress(OSError):
        os.kill(pid, signal.SIGSTOP)
    for child in scratch.children(pid):
        kill_tree(child)
    with suppress(OSError):
        os.kill(pid, signal.SIGKILL)
