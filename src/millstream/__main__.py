"""`python -m millstream` is the command line."""

from millstream.cli import main

main()
