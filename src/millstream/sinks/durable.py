"""Files that are there whole, or not at all, whenever the process or the machine stops."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import polars as pl

from millstream.errors import OptionError

TEMPORARY = ".millstream-"
"""How the names of files begin that are not whole yet."""


def write_durably(path: Path, write: Callable[[IO[bytes]], object]) -> None:
    """Make or replace a file: written beside it under a hidden name, forced to disk, then renamed."""
    temporary = path.with_name(f"{TEMPORARY}{path.name}.tmp")
    with clear_errors(path):
        try:
            with temporary.open("wb") as file:
                write(file)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        force_to_disk(path.parent)


def force_to_disk(folder: Path) -> None:
    """Make the names in a folder last, those just given and those just removed."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def clear_errors(path: Path) -> Iterator[None]:
    """A full disk or a missing permission is the user's to mend, so say it in a line."""
    try:
        yield
    except OSError as error:
        raise OptionError("M6042", f"cannot write '{path}': {error.strerror or error}") from error
    except pl.exceptions.PolarsError as error:
        raise OptionError("M6042", f"cannot write '{path}'", detail=str(error)) from error
