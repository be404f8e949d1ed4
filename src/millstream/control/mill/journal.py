"""What a mill writes down so that it can be recovered: its statements, and what follows from none of them.

| note | says |
|---|---|
| statement | a statement that was carried out |
| drop | a query or relation that is gone |
| option, table | a new value |
| sources | how far the streams are that are fed from the driver; the last one counts |
| file | how many statements of a file were carried out; the last one counts |
"""

from __future__ import annotations

from collections.abc import Iterable

from millstream.control.job.jobs import LATEST, Jobs
from millstream.physical.wire.records import Remember


class Journal:
    def __init__(self, jobs: Jobs, mill: str) -> None:
        self._jobs, self._mill = jobs, mill
        self._statements: dict[tuple[str, str], frozenset[str]] = {}
        """The relations that each query and each derived relation reads."""
        self.recovering = False
        self.noted = 0
        """How many things have been noted that statements do."""
        self.carried_out: tuple[int | None, int] | None = None
        """How many statements of a file have been carried out (None: all), and how much was noted then."""

    def note(self, kind: str, value: object) -> None:
        self.noted += kind not in LATEST
        if not self.recovering:
            self._jobs.remember(Remember(self._mill, kind, value))

    def statement(self, kind: str, name: str, text: str, reads: Iterable[str]) -> None:
        """Keep a statement, with the relations that it reads."""
        bases = {base.lower().removesuffix("__late").removesuffix("__bad") for base in reads}
        self._statements[kind, name] = frozenset(bases)
        self.note("statement", text)

    def drop(self, kind: str, name: str) -> None:
        self._statements.pop((kind, name), None)
        self.note("drop", (kind, name))

    def readers(self, relation: str) -> list[tuple[str, str]]:
        """The queries and derived streams that read a relation."""
        return [key for key, reads in self._statements.items() if relation in reads]

    def carry_on(self, done: int | None) -> None:
        """Note how many statements of the file that is run have been carried out; None: all of them."""
        self.carried_out = done, self.noted
        self.note("file", self.carried_out)

    def left_off(self, count: int) -> int:
        """How many of so many statements of a file an earlier run has carried out, which may have ended at any
        moment."""
        done, noted = self.carried_out or (None if self.noted else 0, self.noted)
        if done is None:
            return count
        return done if self.noted == noted else done + 1
