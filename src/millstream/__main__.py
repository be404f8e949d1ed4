"""`millstream` and `python -m millstream`: the command line. Ctrl-C while it is imported ends it without a trace."""

import sys


def main() -> None:
    try:
        from millstream.cli import main as run

        run()
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
