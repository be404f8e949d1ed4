"""Ownership of a result folder: it belongs to one query of one run, which `_millstream.json` in it names.

| the folder holds | then |
|---|---|
| nothing, or hidden files only | the query takes it |
| results of the same query, columns and run | the run continues |
| results of later batches than the checkpoint, an older copy, has begun | refused: they would be there twice |
| the same, but the query is new: it replaces one that was dropped | refused, or replaced with `overwrite` |
| results of another run, or with other columns | refused, or replaced with `overwrite` |
| results of another query of the same run | refused: that query is writing them |
| anything else | refused: Millstream removes only files that it wrote |

`_millstream.parts` has the number of each batch with a file, a line each: a start tells which files are gone.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pydantic import BaseModel

from millstream.amounts import amount
from millstream.atomic_file import TEMPORARY, force_to_disk, write_whole
from millstream.errors import OptionError, reason_of

MARKER, PARTS = "_millstream.json", "_millstream.parts"
_PART = re.compile(r"part-(\d{10,})\.parquet")
AHEAD = "M6078"


class RefusedFolder(OptionError):
    """A folder with other results, or damaged ones, or later ones than the checkpoint."""

    lasting = True

    def __init__(self, message: str, *, detail: str = "", hint: str, code: str = "M6041") -> None:
        super().__init__(code, message, detail=detail, hint=hint)


class Owner(BaseModel, frozen=True):
    """A query of a run, with the names and types of its columns."""

    query: str
    run: str
    columns: tuple[tuple[str, str], ...]

    @property
    def schema_text(self) -> str:
        return f"({', '.join(f'{name} {type_}' for name, type_ in self.columns)})"


@contextmanager
def clear_errors(path: Path) -> Iterator[None]:
    """Turn a failure to write, such as a full disk or a missing permission, into an OptionError."""
    try:
        yield
    except OSError as error:
        raise OptionError("M6042", f"cannot write '{path}': {error.strerror or reason_of(error)}") from error


def part_name(batch: int) -> str:
    return f"part-{batch:010d}.parquet"


def claim(folder: Path, owner: Owner, *, overwrite: bool, anew: bool = False) -> bool:
    """Take the folder for this owner, or raise OptionError. Remove the files that a crash left half written. `anew`:
    the query is new, so results that are there are not its own. Return whether the folder was this owner's before."""
    with clear_errors(folder):
        is_new = not folder.exists()
        folder.mkdir(parents=True, exist_ok=True)
        if is_new:
            force_to_disk(folder.parent)
        holder = check(folder, owner, overwrite=overwrite, anew=anew)
        same = holder == owner and not anew
        names = [entry.name for entry in folder.iterdir()]
        for name in names:
            if name.startswith(TEMPORARY) or (not same and (name == PARTS or _PART.fullmatch(name))):
                (folder / name).unlink()
        force_to_disk(folder)
        if not same:
            # Last, so that a crash before this line leaves the old owner and the next start replaces again.
            write_whole(folder / MARKER, f"{owner.model_dump_json(indent=2)}\n".encode(), durable=True)
        return same


def check_not_ahead(folder: Path, query: str, begun: int) -> None:
    """Raise OptionError if there are files of batches after the last one that the checkpoint has begun: it is an older
    copy, and its next batches are others."""
    ahead = sorted(int(found[1]) for path in folder.iterdir() if (found := _PART.fullmatch(path.name)))
    ahead = ahead[bisect_right(ahead, begun) :]
    if ahead:
        what = amount(len(ahead), "file")
        batches = f"batch {ahead[0]}" if len(ahead) == 1 else f"batches {ahead[0]} to {ahead[-1]}"
        message = f"'{folder}' is ahead of the checkpoint: it has {what} of query '{query}' of {batches}"
        last = f"The last batch of the checkpoint is {begun}" if begun >= 0 else "The checkpoint has no batch"
        detail = f"{last}; it is an older copy. Its next batches may have other rows, so rows would be there twice."
        move = "move this file" if len(ahead) == 1 else "move these files"
        hint = f"{move} away, the rows are written again; or restore a newer copy of the checkpoint"
        raise RefusedFolder(message, detail=detail, hint=hint, code=AHEAD)


def note_part(folder: Path, batch: int) -> None:
    """Note that a batch has a file. A line that a crash has cut stays no number."""
    with (folder / PARTS).open("ab+") as parts:
        parts.seek(max(0, parts.tell() - 1))
        torn = parts.read() not in (b"", b"\n")
        parts.write((b"?\n" if torn else b"") + f"{batch}\n".encode())


def list_again(folder: Path) -> bool:
    """Note the files that are there if what was noted is gone; return whether it was."""
    held = sorted(int(found[1]) for path in folder.iterdir() if (found := _PART.fullmatch(path.name)))
    if gone := bool(held) and not (folder / PARTS).exists():
        write_whole(folder / PARTS, "".join(f"{batch}\n" for batch in held).encode(), durable=True)
    return gone


def missing_parts(folder: Path) -> list[int]:
    """The batches whose files are gone, each told once."""
    if not (parts := folder / PARTS).exists():
        return []
    lines = parts.read_text(encoding="ascii", errors="replace").splitlines(keepends=True)
    listed = [int(line) for line in dict.fromkeys(lines) if re.fullmatch(r"\d+\n", line)]  # a crash may cut the last
    present = {path.name for path in folder.iterdir()}
    kept = [batch for batch in listed if part_name(batch) in present]
    if len(kept) < len(listed):
        write_whole(parts, "".join(f"{batch}\n" for batch in kept).encode(), durable=True)
    return sorted({*listed} - {*kept})


def check(folder: Path, owner: Owner, *, overwrite: bool, anew: bool) -> Owner | None:
    """Return the present owner of the folder, None if it is free; raise OptionError if this owner may not take it."""
    with clear_errors(folder):
        holder = holder_of(folder) if folder.exists() else None
        own = holder is not None and (holder.run, holder.query) == (owner.run, owner.query)
        free = holder is None or (own and not _has_results(folder) if anew else holder == owner)
        if holder is not None and not free:
            _check_replaceable(folder, holder, owner, overwrite=overwrite, anew=anew)
        return holder


def _has_results(folder: Path) -> bool:
    return any(_PART.fullmatch(entry.name) for entry in folder.iterdir())


def holder_of(folder: Path) -> Owner | None:
    """Return the present owner; None if the folder is free."""
    try:
        return Owner.model_validate_json((folder / MARKER).read_bytes())
    except FileNotFoundError:
        other = sorted(entry.name for entry in folder.iterdir() if not entry.name.startswith("."))
        if parts := [name for name in other if name == PARTS or _PART.fullmatch(name)]:
            detail = f"It contains '{parts[0]}'. {MARKER} says whose results they are."
            hint = "restore it from a copy of the folder; if there is none, choose another path"
            raise RefusedFolder(f"'{folder}' holds results, but {MARKER} is gone", detail=detail, hint=hint) from None
        if other:
            detail = f"It contains '{other[0]}', but no {MARKER}."
            hint = "choose another path, or empty the folder"
            message = f"'{folder}' holds files that no query wrote"
            raise RefusedFolder(message, detail=detail, hint=hint) from None
        return None
    except ValueError:
        message = f"'{folder}' cannot be resumed: {MARKER} in it is damaged"
        raise RefusedFolder(message, hint="restore it, empty the folder, or choose another path") from None


def _check_replaceable(folder: Path, holder: Owner, owner: Owner, *, overwrite: bool, anew: bool) -> None:
    if holder.run == owner.run and holder.query != owner.query:
        message = f"'{folder}' holds the results of query '{holder.query}' of the same run"
        raise RefusedFolder(message, hint="give every query a path of its own")
    if overwrite:
        return
    hint = "choose another path, or replace the results by overwrite = true"
    if holder.query != owner.query:
        raise RefusedFolder(f"'{folder}' holds the results of query '{holder.query}'", hint=hint)
    if anew and holder.run == owner.run:
        message = f"'{folder}' holds the results of query '{holder.query}' from before it was dropped or replaced"
        raise RefusedFolder(message, detail="Those of the new query would be mixed with them.", hint=hint)
    if holder.columns != owner.columns:
        message = f"'{folder}' holds results of query '{holder.query}' with other columns"
        detail = f"It has {holder.schema_text}, the query {owner.schema_text}."
        raise RefusedFolder(message, detail=detail, hint=hint)
    raise RefusedFolder(f"'{folder}' holds the results of another run of query '{holder.query}'", hint=hint)
