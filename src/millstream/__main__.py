"""`millstream` and `python -m millstream`: the command line. Ctrl-C and SIGTERM while it is imported end it at once,
without a trace; there is nothing to close yet."""

import os
import signal
import sys

from millstream.collection import importing


def main() -> None:
    signal.signal(signal.SIGTERM, lambda number, _: os._exit(128 + number))
    try:
        with importing():
            from millstream.cli import main as run

        run()
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
