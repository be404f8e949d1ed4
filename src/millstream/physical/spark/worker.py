"""Garbage collection in Spark's Python workers.

After every task PySpark collects garbage, which visits every object of every imported library: some 60 ms of CPU time a
task. Objects that exist after the first task live as long as the worker, so they are frozen: the collector skips them.
"""

from __future__ import annotations

import gc

_frozen = False


def freeze_once() -> None:
    """Freeze the objects of this process; call it at the end of each task."""
    global _frozen
    if not _frozen:
        _frozen = True
        gc.collect()
        gc.freeze()
