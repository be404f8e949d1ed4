"""What a Python worker of Spark does once in its life.

After every task PySpark collects garbage, which looks at every object of every imported library: some 60 ms of CPU time
a task. Objects that are there after the first task stay for good, so they are taken out of the collector's sight.
"""

from __future__ import annotations

import gc

_done = False


def settle() -> None:
    """To be called at the end of a task."""
    global _done
    if not _done:
        _done = True
        gc.collect()
        gc.freeze()
