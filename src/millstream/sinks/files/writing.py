"""What is the user's to mend when a sink writes files."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import polars as pl

from millstream.errors import OptionError


@contextmanager
def clear_errors(path: Path) -> Iterator[None]:
    """A full disk or a missing permission is the user's to mend, so say it in a line."""
    try:
        yield
    except OSError as error:
        raise OptionError("M6042", f"cannot write '{path}': {error.strerror or error}") from error
    except pl.exceptions.PolarsError as error:
        raise OptionError("M6042", f"cannot write '{path}'", detail=str(error)) from error
