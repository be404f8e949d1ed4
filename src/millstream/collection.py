"""Work without garbage collection.

Importing makes many objects that stay, and next to no garbage: collections meanwhile only take time, about a quarter of
that of all imports. Operators that take one tuple at a time make many objects too, but no cycles: a collection in the
middle of a page visits the whole state for nothing, up to a third of their time. After every task PySpark collects,
which visits every object of every imported library: some 60 ms of CPU time a task, unless they are frozen.

What is frozen is never examined again, garbage with cycles included: a process freezes once, not once a task.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
    """Inside, nothing is collected."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


@contextmanager
def importing() -> Iterator[None]:
    """Inside, nothing is collected; what was made is not examined by later collections. Once in the life of a process:
    see `freeze_once` for its tasks."""
    with uncollected():
        yield
        gc.freeze()


_frozen = False


def freeze_once() -> None:
    """Freeze what this process holds now, the first time only; call it at the end of each task."""
    global _frozen
    if not _frozen:
        _frozen = True
        gc.collect()
        gc.freeze()
