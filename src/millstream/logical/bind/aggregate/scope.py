"""Names inside a body: columns of the tables in FROM, then those of the queries around it, then the arguments."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from millstream.algebra.expression import Column, Expression
from millstream.algebra.program.expression import Argument
from millstream.algebra.schema import Attribute
from millstream.errors import BindError, MillstreamError, did_you_mean
from millstream.lang import ast


@dataclass(frozen=True, slots=True)
class Entry:
    """A table or subquery of FROM: its written alias, and the alias that is unique in the program."""

    name: str
    alias: str
    columns: tuple[Attribute, ...]

    def column(self, name: str) -> Column | None:
        found = next((column for column in self.columns if column.name == name), None)
        return None if found is None else Column(found.type, f"{self.alias}.{name}")

    def all(self, star: ast.Star) -> Iterator[ast.Name]:
        return (ast.Name((self.name, column.name), **star.place) for column in self.columns)


@dataclass(slots=True)
class LocalScope:
    """The names that an expression may use; `outer` are those of the query around it."""

    arguments: tuple[Attribute, ...]
    entries: list[Entry] = field(default_factory=list)
    outer: LocalScope | None = None

    def inside(self) -> LocalScope:
        """A scope of a subquery, still without entries."""
        return LocalScope(self.arguments, outer=self)

    def resolve(self, name: ast.Name) -> Expression:
        if len(name.parts) > 2:
            raise BindError("M2001", f"unknown column '{name}'", hint="write table.column")
        found = self._find(*reversed(name.parts))
        if found is None:
            raise BindError("M2001", f"unknown column '{name}'", hint=did_you_mean(name.parts[-1], self._known()))
        return found

    def _find(self, name: str, qualifier: str | None = None) -> Expression | None:
        entries = [entry for entry in self.entries if qualifier in (None, entry.name)]
        owners = [(entry, column) for entry in entries if (column := entry.column(name)) is not None]
        if len(owners) > 1:
            written = " or ".join(f"{entry.name}.{name}" for entry, _ in owners)
            raise BindError("M2012", f"column '{name}' is ambiguous", hint=f"write {written}")
        if owners:
            return owners[0][1]
        if self.outer is not None:
            return self.outer._find(name, qualifier)
        if qualifier is None:
            return next((Argument(each.type, each.name) for each in self.arguments if each.name == name), None)
        return None

    def _known(self) -> Iterator[str]:
        yield from (column.name for entry in self.entries for column in entry.columns)
        yield from (each.name for each in self.arguments) if self.outer is None else self.outer._known()

    def owns(self, column: Column) -> bool:
        """True if the column is of a table in this FROM, not of a query around it."""
        alias = column.name.rpartition(".")[0]
        return any(entry.alias == alias for entry in self.entries)

    def expand(self, star: ast.Star) -> list[ast.Name]:
        """The columns of `*` or `table.*`, with their tables."""
        found = [entry for entry in self.entries if star.qualifier in (None, entry.name)]
        if not found:
            hint = did_you_mean(star.qualifier or "", (entry.name for entry in self.entries))
            raise BindError("M2011", f"unknown alias '{star.qualifier}'", hint=hint)
        return [name for entry in found for name in entry.all(star)]


@dataclass(slots=True)
class FunctionScope(LocalScope):
    """The names of the query of a table function: its arguments, with the values of a call."""

    given: Mapping[str, Expression] = field(default_factory=dict)

    def _find(self, name: str, qualifier: str | None = None) -> Expression | None:
        return self.given.get(name) if qualifier is None else None

    def _known(self) -> Iterator[str]:
        return iter(self.given)


@contextmanager
def as_written() -> Iterator[None]:
    """Let the texts of errors name tables as they are written, without the number of `Body.alias`."""
    try:
        yield
    except MillstreamError as error:
        error.message, error.detail, error.hint = (
            re.sub(r"(?<=\w)#\d+\b", "", text) for text in (error.message, error.detail, error.hint)
        )
        raise
