"""Folders and files that a connection is given: checked before anything starts, with a message instead of a trace."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

from millstream.control.job.ownership import FILE as OWNER
from millstream.errors import OptionError

LOG = logging.getLogger("millstream")
_WARNED: set[Path] = set()
"""Folders of which a warning was given: a run looks at its checkpoint twice."""


def checkpoint_folder(given: Any) -> Path | None:
    """Return the absolute folder of a checkpoint, created if it does not exist; None if none is given. Raise
    OptionError if it is not a folder that can be written to."""
    if given is None:
        return None
    path = _path(given, "checkpoint")
    try:
        path.mkdir(parents=True, exist_ok=True)
        _warn_of_other_files(path)
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


def _warn_of_other_files(folder: Path) -> None:
    """Warn, once, if the folder of a new checkpoint has files."""
    if (folder / OWNER).exists() or folder in _WARNED:
        return
    other = sorted(entry.name for entry in folder.iterdir() if not entry.name.startswith("."))
    if other:
        _WARNED.add(folder)
        message = f"the folder '{folder}' of the checkpoint has files that are not a checkpoint's, such as '{other[0]}'"
        LOG.warning("%s", OptionError("M6065", message, hint="a checkpoint has a folder of its own"))


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
