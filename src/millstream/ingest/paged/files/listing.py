"""The files of a path: a folder with everything below it, one file, or a pattern with `*`, `?`, `[…]` and `**`.

Names that start with `_` or `.`, or end in `.tmp` or `.inprogress`, are unfinished or not data, and are ignored. Names
are relative to the folder at the start of the path, so that the data can be moved together with it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from glob import has_magic
from pathlib import Path

from millstream.errors import InputError

_HIDDEN = ("_", ".")
_UNFINISHED = (".tmp", ".inprogress")


class Listing:
    def __init__(self, path: str) -> None:
        self._pattern: str | None = None
        self._only: str | None = None
        full = Path(path).expanduser().absolute()
        folder = full
        if full.is_file():
            folder, self._only = full.parent, full.name
        elif has_magic(str(full)) and not full.is_dir():
            magic = next(at for at, part in enumerate(full.parts) if has_magic(part))
            folder, self._pattern = Path(*full.parts[:magic]), str(Path(*full.parts[magic:]))
        self.folder = str(folder)
        if not folder.is_dir():
            hint = "A relative path starts at the working directory of Millstream."
            raise InputError("M5040", f"there is no file or folder '{path}'", hint=hint)

    @property
    def absent(self) -> str:
        """That there is no file, with where it was looked for; empty if there is one."""
        if self.find():
            return ""
        if self._pattern is None:
            return f"there is no file in '{self.folder}'"
        return f"no file in '{self.folder}' matches '{self._pattern}'"

    def path(self, name: str) -> str:
        return str(Path(self.folder, name))

    def find(self) -> dict[str, int]:
        """Return the names of the files, in order, with their sizes in bytes."""
        try:
            return dict(sorted(self._found()))
        except OSError as error:
            raise InputError("M5040", f"cannot list '{self.folder}'", detail=f"{error.strerror}.") from error

    def _found(self) -> Iterator[tuple[str, int]]:
        os.scandir(self.folder).close()  # a removed folder is an error, unlike an empty one
        if self._only is not None:
            yield from _sized(Path(self.folder, self._only), self._only)
        elif self._pattern is not None:
            for found in Path(self.folder).glob(self._pattern):
                name = found.relative_to(self.folder)
                if not any(map(_ignored, name.parts)):
                    yield from _sized(found, name.as_posix())
        else:
            yield from _below(self.folder, "")


def _below(folder: str, prefix: str) -> Iterator[tuple[str, int]]:
    with suppress(FileNotFoundError), os.scandir(folder) as entries:
        for entry in entries:
            if _ignored(entry.name):
                continue
            if entry.is_dir():
                yield from _below(entry.path, f"{prefix}{entry.name}/")
            else:
                yield from _sized(entry, prefix + entry.name)


def _sized(path: Path | os.DirEntry[str], name: str) -> Iterator[tuple[str, int]]:
    """Yield the name and size, if it is a file and still exists."""
    with suppress(FileNotFoundError):
        if path.is_file():
            yield name, path.stat().st_size


def _ignored(name: str) -> bool:
    return name.startswith(_HIDDEN) or name.endswith(_UNFINISHED)
