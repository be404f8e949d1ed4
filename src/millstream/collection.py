"""Work without garbage collection.

Importing makes many objects that stay, and next to no garbage: collections meanwhile only take time, about a quarter of
that of all imports. Operators that take one tuple at a time make many objects too, but no cycles: a collection in the
middle of a page visits the whole state for nothing, up to a third of their time.
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
    """Inside, nothing is collected; what was made is not examined by later collections."""
    with uncollected():
        yield
        gc.freeze()
