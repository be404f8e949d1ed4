"""Results that wait for a sink, in order of their batches: in a folder of the job, or in memory.

A batch is a file, which names the batch, on disk before the batch is committed. A repeated batch replaces its own file.
`batches.log` names the files; one of an earlier batch that it does not name was delivered before the process ended.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Sequence
from contextlib import suppress
from itertools import groupby
from typing import TYPE_CHECKING

import polars as pl

from millstream.algebra.punctuation.pattern import Pattern
from millstream.atomic_file import write_whole
from millstream.control.job.parts import content, placed
from millstream.errors import OptionError

if TYPE_CHECKING:
    from millstream.control.job.base import Job

Results = tuple[pl.DataFrame, list[Pattern]]
"""The rows and punctuations of a batch."""


class Spool:
    def __init__(self, job: Job, query: str) -> None:
        name = hashlib.sha1(query.encode()).hexdigest()[:16]
        self._place, self._query, self._noted = f"spool/{name}", query, job.noted
        self._folder, self._mark = None if job.folder is None else job.folder / self._place, job.mark
        self._held: dict[tuple[str, int], Results] = job.spooled
        """Results in memory."""
        held = [(batch, rows) for (name, batch), (rows, _) in self._held.items() if name == query]
        self._sizes = {batch: (rows.height, int(rows.estimated_size())) for batch, rows in held}
        """Rows and bytes of each batch."""
        if self._folder is not None and self._noted is not None and self._folder.exists():
            named = self._noted.names(self._place)
            for path in sorted(self._folder.glob("[0-9]*"), key=lambda path: int(path.name)):
                if path.name not in named and int(path.name) < self._noted.number:
                    path.unlink()
                    continue
                rows = self._read(int(path.name))[0]
                self._sizes[int(path.name)] = rows.height, path.stat().st_size

    def __bool__(self) -> bool:
        return bool(self._sizes)

    @property
    def volatile(self) -> bool:
        """True if results that wait end with the process."""
        return self._folder is None

    @property
    def rows(self) -> int:
        return sum(rows for rows, _ in [*self._sizes.values()])

    @property
    def bytes(self) -> int:
        return sum(size for _, size in [*self._sizes.values()])

    def batches(self) -> list[int]:
        return sorted(self._sizes)

    def put(self, batch: int, rows: pl.DataFrame, punctuations: Sequence[Pattern]) -> None:
        if self._folder is None:
            self._held[self._query, batch] = rows, [*punctuations]
            self._sizes[batch] = rows.height, int(rows.estimated_size())
            return
        self._folder.mkdir(parents=True, exist_ok=True)
        path = self._folder / str(batch)
        data = placed((rows, [*punctuations]), path, self._mark)
        write_whole(path, data, durable=True, private=True)
        self._sizes[batch] = rows.height, len(data)
        self._name(synced=False)

    def _name(self, *, synced: bool = True) -> None:
        """Name the files that there are in `batches.log`."""
        if self._noted is not None:
            runs = [[*run] for _, run in groupby(enumerate(self.batches()), key=lambda each: each[1] - each[0])]
            self._noted.name(self._place, self._query, tuple((run[0][1], run[-1][1]) for run in runs), synced=synced)

    def get(self, batch: int) -> Results:
        return self._held[self._query, batch] if self._folder is None else self._read(batch)

    def _read(self, batch: int) -> Results:
        assert self._folder is not None
        rows, punctuations = content(self._folder / str(batch), self._mark, self._query)
        return rows, punctuations

    def remove(self, batch: int) -> None:
        del self._sizes[batch]
        if self._folder is None:
            del self._held[self._query, batch]
            return
        with suppress(OptionError):  # a full disk: the file is removed at the next start
            self._name()
            (self._folder / str(batch)).unlink(missing_ok=True)

    def clear(self) -> None:
        """Discard all that waits."""
        for batch in self._sizes:
            self._held.pop((self._query, batch), None)
        self._sizes.clear()
        if self._folder is not None:
            self._name()
            shutil.rmtree(self._folder, ignore_errors=True)
