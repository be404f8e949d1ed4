"""Whose results a folder holds: one query of one run, as `_millstream.json` in it says.

| in the folder | then |
|---|---|
| nothing, or hidden files only | it is taken |
| results of the same query, columns and run | the run goes on |
| results of another run, or with other columns | refused, or replaced with `overwrite` |
| results of another query of the same run | refused: that query is writing them |
| anything else | refused: only what Millstream wrote is ever removed |
"""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass
from pathlib import Path

from millstream.errors import OptionError
from millstream.sinks.files.writing import clear_errors
from millstream.whole_file import TEMPORARY, force_to_disk, write_whole

MARKER = "_millstream.json"
_PART = re.compile(r"part-\d{10,}\.parquet")


@dataclass(frozen=True, slots=True)
class Owner:
    """A query of a run, with the names and types of its columns."""

    query: str
    run: str
    columns: tuple[tuple[str, str], ...]

    def write(self) -> bytes:
        return json.dumps(asdict(self), indent=2, ensure_ascii=False).encode() + b"\n"

    @classmethod
    def read(cls, text: bytes) -> Owner:
        """ValueError if the text is not an owner's."""
        fields = json.loads(text)
        try:
            columns = tuple((str(name), str(type_)) for name, type_ in fields["columns"])
            return cls(str(fields["query"]), str(fields["run"]), columns)
        except (KeyError, TypeError) as error:
            raise ValueError("not an owner") from error

    @property
    def schema(self) -> str:
        return f"({', '.join(f'{name} {type_}' for name, type_ in self.columns)})"


def claim(folder: Path, owner: Owner, *, overwrite: bool) -> None:
    """Take the folder for this owner, or raise. What a crash left half written is removed."""
    with clear_errors(folder):
        made = not folder.exists()
        folder.mkdir(parents=True, exist_ok=True)
        if made:
            force_to_disk(folder.parent)
        held = _held(folder)
        if held is not None and held != owner:
            _check_replaceable(folder, held, owner, overwrite=overwrite)
        names = [entry.name for entry in folder.iterdir()]
        for name in names:
            if name.startswith(TEMPORARY) or (held != owner and _PART.fullmatch(name)):
                (folder / name).unlink()
        force_to_disk(folder)
        if held != owner:
            # Last, so that a crash before leaves the old owner and the next start replaces again.
            write_whole(folder / MARKER, owner.write(), durable=True)


def _held(folder: Path) -> Owner | None:
    try:
        return Owner.read((folder / MARKER).read_bytes())
    except FileNotFoundError:
        other = sorted(entry.name for entry in folder.iterdir() if not entry.name.startswith("."))
        if other:
            detail = f"'{other[0]}' is in it and no {MARKER}."
            hint = "choose another path, or empty the folder"
            message = f"'{folder}' holds files that no query wrote"
            raise OptionError("M6041", message, detail=detail, hint=hint) from None
        return None
    except ValueError:
        message = f"'{folder}' cannot be resumed: {MARKER} in it is damaged"
        raise OptionError("M6041", message, hint="choose another path, or empty the folder") from None


def _check_replaceable(folder: Path, held: Owner, owner: Owner, *, overwrite: bool) -> None:
    if held.run == owner.run and held.query != owner.query:
        message = f"'{folder}' holds the results of query '{held.query}' of the same run"
        raise OptionError("M6041", message, hint="give every query a path of its own")
    if overwrite:
        return
    hint = "choose another path, or replace the results by overwrite = true"
    if held.query != owner.query:
        raise OptionError("M6041", f"'{folder}' holds the results of query '{held.query}'", hint=hint)
    if held.columns != owner.columns:
        message = f"'{folder}' holds results of query '{held.query}' with other columns"
        detail = f"It has {held.schema}, the query {owner.schema}."
        raise OptionError("M6041", message, detail=detail, hint=hint)
    raise OptionError("M6041", f"'{folder}' holds the results of another run of query '{held.query}'", hint=hint)
