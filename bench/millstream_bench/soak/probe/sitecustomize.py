"""In a folder of `PYTHONPATH`: every Python process below writes the number of memory blocks that its objects take.

The file is named by the process, in the folder `MILLSTREAM_BLOCKS`. The blocks of an interpreter say what RSS does not:
objects that are kept, whether the collector knows them or not, without what the allocators keep of freed memory.
"""

import os
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

EVERY = 2.0


def _write() -> None:
    file = Path(os.environ["MILLSTREAM_BLOCKS"], str(os.getpid()))
    with suppress(OSError):
        while True:
            file.write_text(str(sys.getallocatedblocks()))
            time.sleep(EVERY)


def _start() -> None:
    threading.Thread(target=_write, name="blocks", daemon=True).start()


if "MILLSTREAM_BLOCKS" in os.environ:
    os.register_at_fork(after_in_child=_start)
    _start()
