"""A sink that writes one Parquet file for every batch with rows.

| | |
|---|---|
| exactly once | a repeated batch replaces its own file, which has the same rows |
| atomic | a file gets its name once it is complete and on disk; readers of `*.parquet` never see part of one |
| one owner | the folder belongs to one query of one run (`folder`); each write looks at its owner |
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import ClassVar
from uuid import uuid4

import polars as pl
from pydantic import Field, field_validator

from millstream.algebra.punctuation.pattern import Pattern
from millstream.algebra.schema import Schema
from millstream.amounts import amount
from millstream.atomic_file import drafted
from millstream.errors import OptionError
from millstream.sinks.files.folder import (
    PARTS,
    Owner,
    check,
    check_not_ahead,
    claim,
    clear_errors,
    holder_of,
    list_again,
    missing_parts,
    note_part,
    part_name,
)
from millstream.sinks.modes import ALL, FINAL
from millstream.sinks.options import SinkOptions

LOG = logging.getLogger("millstream")


class ParquetOptions(SinkOptions):
    path: str = Field(description="a folder on the driver's file system; created if it does not exist")
    overwrite: bool = Field(default=False, description="whether to replace the results of another run in the folder")

    @field_validator("path")
    @classmethod
    def _local(cls, value: str) -> str:
        if not value.strip() or "://" in value:
            raise ValueError("not a folder on the driver's file system")
        return value


class ParquetSink:
    modes: ClassVar = (FINAL, ALL)

    def __init__(self, options: ParquetOptions) -> None:
        self.folder = Path(options.path).expanduser().absolute()
        self._overwrite = options.overwrite
        # Without a run id, every start is a run of its own.
        self._run = options.run or uuid4().hex
        self._anew, self._resumes = options.anew, bool(options.run) and not options.anew
        self._begun = options.begun
        self._columns: tuple[str, ...] = ()
        self._owner = Owner(query="", run=self._run, columns=())

    def open(self, query: str, schema: Schema) -> None:
        columns = tuple((attribute.name, attribute.type.value) for attribute in schema)
        self._owner = Owner(query=query, run=self._run, columns=columns)
        kept = claim(self.folder, self._owner, overwrite=self._overwrite, anew=self._anew)
        self._columns = schema.names
        if kept:
            if self._begun is not None:
                with clear_errors(self.folder):
                    check_not_ahead(self.folder, query, self._begun)
            self._warn_missing()
        elif self._resumes:
            self._warn_removed()

    def check(self, query: str) -> None:
        """Raise OptionError if the folder has other results than those of this query, which is new."""
        check(self.folder, Owner(query=query, run=self._run, columns=()), overwrite=self._overwrite, anew=True)

    def write(self, batch: int, rows: pl.DataFrame, punctuations: Sequence[Pattern]) -> None:  # noqa: ARG002
        if rows.height:
            part = self.folder / part_name(batch)
            with clear_errors(part):
                self._keep_folder()
            made = BytesIO()  # Polars would not keep the system's reason if the disk is full
            rows.select(self._columns).write_parquet(made, compression="zstd")
            with clear_errors(part), drafted(part, durable=True) as draft:
                draft.write_bytes(made.getbuffer())
            with clear_errors(self.folder / PARTS):
                note_part(self.folder, batch)

    def _keep_folder(self) -> None:
        """Take the folder again if it was removed meanwhile, or emptied; raise OptionError if it is another's."""
        held = holder_of(self.folder) if self.folder.exists() else None
        if held != self._owner and not claim(self.folder, self._owner, overwrite=False):
            self._warn_removed()

    def _warn_missing(self) -> None:
        with clear_errors(self.folder):
            missing, again = missing_parts(self.folder), list_again(self.folder)
        if again:
            message = f"the list of the result files of query '{self._owner.query}' is gone from '{self.folder}'"
            detail = f"{PARTS} is made again from the files that are there: ones that are gone are not told."
            LOG.warning("%s", OptionError("M6076", message, detail=detail))
        if missing:
            files = amount(len(missing), "result file")
            shown = ", ".join(part_name(batch) for batch in missing[:3]) + (", …" if len(missing) > 3 else "")
            message = f"{files} of query '{self._owner.query}' {'is' if len(missing) == 1 else 'are'} gone"
            hint = "if they were compacted or moved, all is well; no batch is written a second time"
            if self._begun is not None and missing[-1] > self._begun:
                hint = f"results after batch {self._begun} are written again: do not use the earlier ones beside them"
            LOG.warning("%s", OptionError("M6076", f"{message} from '{self.folder}'", detail=f"{shown}.", hint=hint))

    def _warn_removed(self) -> None:
        LOG.warning(
            "the folder '%s' of query '%s' was removed: it is made again, without the results that it had",
            self.folder,
            self._owner.query,
        )

    def close(self) -> None:
        pass
