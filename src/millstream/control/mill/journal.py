"""The journal of a mill, from which it is recovered: its statements, and facts that follow from no statement.

| note | content |
|---|---|
| statement | a statement that has run |
| drop | a query, relation or aggregate that was dropped |
| option, table | a new value, and the statement that wrote the table |
| once | a statement that has run and is not run again |
| failed, started | a query has failed, with its error; it was started again |
| finished | a query with LIMIT has emitted all its rows |
| feedback | feedback that a query has received |
| python | the declaration of Python code that later statements call; or the digest of code that was accepted instead |
| sources | the state of the clock and of the streams fed from the driver; only the last note counts |
| diverted | rows of derived streams that queries counted which have stopped; only the last note counts |
| stands | where the streams with a connector stand; only the last note counts |
| file | the number of statements of a file that have run; only the last note counts |
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import polars as pl

from millstream.algebra.stream_id import StreamId
from millstream.control.job.jobs import LATEST, Jobs
from millstream.physical.wire.records import Remember

Key = tuple[str, str]
"""'query', 'relation', 'aggregate' or 'window aggregate', and the name."""


def aggregate_name(name: str) -> str:
    """An aggregate among the relations that a query reads; no relation has this name."""
    return f"#{name}"


class Journal:
    def __init__(self, jobs: Jobs, mill: str) -> None:
        self._jobs, self._mill = jobs, mill
        self._reads: dict[Key, frozenset[str]] = {}
        """The relations that each query and each derived relation reads."""
        self.texts: dict[Key, str] = {}
        """The statement of each relation and each query, in the order in which they were made."""
        self.options: dict[str, object] = {}
        """The options that were set, with their last values."""
        self.once: Counter[str] = Counter()
        """How often statements that no stream drives have run."""
        self._numbers: set[int] = set()
        """Those of the statements that the jobs have run."""
        self.recovering = False
        self.noted = 0
        """Number of notes, without those of which only the last counts."""
        self.file_progress: tuple[int | None, int] | None = None
        """Number of statements of a file that have run (None: all), and the value of `noted` at that moment."""

    def note(self, kind: str, value: object) -> None:
        self.noted += kind not in LATEST
        if not self.recovering:
            self._jobs.remember(Remember(self._mill, kind, value))

    def statement(self, kind: str, name: str, text: str, reads: Iterable[str]) -> None:
        """Note a statement, with the relations that it reads."""
        bases = {StreamId.of(name.lower()).source for name in reads}
        self._reads[kind, name], self.texts[kind, name] = frozenset(bases), text
        self.note("statement", text)

    def ran(self, text: str, number: int = 0) -> None:
        """Note a statement that has run once; it is not run again. `number`: that of the record which had a job run it;
        a record counts once."""
        if number not in self._numbers:
            self.once[text] += 1
            self._numbers |= {number} - {0}
            self.note("once", (text, number))

    def wrote(self, text: str, table: str, rows: pl.DataFrame) -> None:
        """Note a statement that has run once, and the rows that the static table has after it."""
        self.once[text] += 1
        self.note("table", (table, rows, text))

    def option(self, name: str, value: object) -> None:
        self.options[name.lower()] = value
        self.note("option", (name, value))

    def drop(self, kind: str, name: str) -> None:
        kinds = (kind, "window aggregate") if kind == "aggregate" else (kind,)  # both versions are dropped
        for held in (self._reads, self.texts):
            for each in kinds:
                held.pop((each, name), None)
        self.note("drop", (kind, name))

    def readers(self, relation: str) -> list[Key]:
        """The queries and derived streams that read a relation."""
        return [key for key, reads in self._reads.items() if relation in reads]

    def note_file(self, done: int | None) -> None:
        """Note the number of statements of the file that have run; None: all."""
        self.file_progress = done, self.noted
        self.note("file", self.file_progress)

    def statements_done(self, count: int) -> int:
        """Number of statements, of `count` in a file, that an earlier run has completed. That run may have ended after
        a statement and before its `note_file`."""
        done, noted = self.file_progress or (None if self.noted else 0, self.noted)
        if done is None:
            return count
        return done if self.noted == noted else done + 1
