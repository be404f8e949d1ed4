"""Folders and files that a connection is given: checked before anything starts, with a message instead of a trace."""

from __future__ import annotations

import os
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

from millstream.errors import OptionError


def checkpoint_folder(given: Any) -> Path | None:
    """Return the absolute folder of a checkpoint, created if it does not exist; None if none is given. Raise
    OptionError if it is not a folder that can be written to."""
    if given is None:
        return None
    path = _path(given, "checkpoint")
    try:
        path.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=path):
            pass
    except FileExistsError:
        hint = "a checkpoint is a folder; name another one"
        raise OptionError("M6062", f"the checkpoint '{path}' is a file", hint=hint) from None
    except OSError as error:
        hint = "name a folder that this process can write to"
        message = f"cannot write to the checkpoint '{path}': {error.strerror or error}"
        raise OptionError("M6062", message, hint=hint) from None
    return path


def log_file(given: Any) -> Path | None:
    """Return the path of a log; None if none is given. Raise OptionError if it cannot be written."""
    if given is None:
        return None
    path = _path(given, "log")
    try:
        with path.open("ab"):
            pass
    except OSError as error:
        missing = not path.parent.is_dir()
        hint = f"make the folder '{path.parent}' first" if missing else "name a file that this process can write"
        message = f"cannot write the log '{path}': {error.strerror or error}"
        raise OptionError("M6063", message, hint=hint) from None
    return path


def _path(given: Any, name: str) -> Path:
    if not isinstance(given, str | os.PathLike) or not str(given) or "\0" in str(given):
        raise OptionError("M6002", f"{name} cannot be {given!r}", hint=f"{name}='a path'")
    if "://" in str(given) and not str(given).startswith("file://"):
        hint = "a path of a file system that is mounted on the driver and all workers"
        raise OptionError("M6002", f"{name} cannot be '{given}': it is not a path", hint=hint)
    return Path(str(given).removeprefix("file://")).expanduser().absolute()
