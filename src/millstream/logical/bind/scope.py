"""Name resolution: the columns of the entries of one FROM, under their aliases.

With one entry a column has the stream's own name in the plan; with several, each carries its alias (`b.price`), as
joins emit them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from millstream.algebra.aggregate import functions as aggregates
from millstream.algebra.early import FINALITY
from millstream.algebra.expression import Column
from millstream.algebra.schema import TS, Schema, TimeKind
from millstream.algebra.types import Type
from millstream.algebra.window import WINDOW_END, WINDOW_START, WINDOW_TIME
from millstream.errors import BindError, PlanError, did_you_mean
from millstream.lang import ast
from millstream.logical.bind.foreign_functions import INSTEAD, WITHOUT_CALL
from millstream.logical.nodes.written_table import WrittenTable
from millstream.logical.plan import Plan

CURRENT_TIME = "current_time"
PSEUDO_COLUMNS = (WINDOW_START, WINDOW_END, WINDOW_TIME)


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of FROM under its alias: a stream with its plan, or a table (`plan` is None) with its name."""

    alias: str
    schema: Schema
    written: ast.JoinedSource
    plan: Plan | None = None
    table: str = ""
    changes: WrittenTable | None = None
    """The table that streams write."""

    @property
    def visible(self) -> Iterator[str]:
        return (name for name in self.schema.names if not name.startswith("__"))

    @property
    def window(self) -> ast.WindowClause | None:
        return self.written.source.window

    def fail(self, code: str, message: str, hint: str = "") -> PlanError:
        return PlanError(code, message, hint=hint, **self.written.place)


@dataclass(frozen=True, slots=True)
class Scope:
    """`merged` are the columns of USING, which are one column and not ambiguous.

    `same` maps columns of the plan to the equal one on which a join emits punctuation: of two keys, the left one. Of
    floats it may be another value (-0.0 equals 0.0), which rows that are `joined` must not show.
    `aliases` are those of the select list, which no clause but HAVING may use.
    """

    entries: tuple[Entry, ...]
    merged: frozenset[str] = frozenset()
    same: Mapping[str, str] = field(default_factory=dict)
    aliases: frozenset[str] = frozenset()
    aggregates: frozenset[str] = frozenset()
    """Those of `aliases` that name an aggregate, in WHERE and ON."""
    joined: bool = False

    @property
    def prefixed(self) -> bool:
        return len(self.entries) > 1

    def column(self, entry: Entry, name: str) -> Column:
        """Return the plan's column for a column of an entry."""
        full = f"{entry.alias}.{name}" if self.prefixed else name
        type_ = entry.schema.type_of(name)
        return Column(type_, full if self.joined and type_.is_float else self.same.get(full, full))

    def entry(self, alias: str) -> Entry:
        known = {entry.alias: entry for entry in self.entries}
        if alias in known:
            return known[alias]
        renamed = [entry.alias for entry in self.entries if entry.written.source.relation == alias]
        hint = f"{alias} has the alias {renamed[0]} here" if renamed else did_you_mean(alias, known)
        raise BindError("M2011", f"unknown alias '{alias}'", hint=hint)

    def resolve(self, name: ast.Name) -> Column:
        """Return the column that a written name refers to."""
        if len(name.parts) > 2:
            raise BindError("M2001", f"unknown column '{name}'", hint="write alias.column")
        if len(name.parts) == 2:
            return self._qualified(*name.parts)
        try:
            return self._unqualified(name.parts[0])
        except BindError as error:
            if error.code == "M2001" and name.quoted:
                error.hint = f"text is written in single quotes: '{name.parts[0]}'; {error.hint}"
            raise

    def _qualified(self, alias: str, name: str) -> Column:
        entry = self.entry(alias)
        if name in entry.schema:
            return self.column(entry, name)
        if name == CURRENT_TIME and entry.schema.kind is TimeKind.INTERNAL:
            if self.prefixed:
                hint = f"select it in a subquery: (SELECT *, current_time AS entered FROM …) {alias}"
                raise PlanError("M3010", "current_time of one side of a join is not available", hint=hint)
            return Column(Type.TIMESTAMP, TS)
        raise BindError("M2001", f"unknown column '{alias}.{name}'", hint=self._instead(name, entry.visible))

    def _unqualified(self, name: str) -> Column:
        owners = [entry for entry in self.entries if name in entry.schema]
        if len(owners) > 1 and name not in self.merged:
            written = " or ".join(f"{entry.alias}.{name}" for entry in owners)
            raise BindError("M2012", f"column '{name}' is ambiguous", hint=f"write {written}")
        if owners:
            return self.column(owners[0], name)
        if name == CURRENT_TIME:
            return self._current_time()
        if name in PSEUDO_COLUMNS:
            hint = "It belongs to a grouped window aggregate: s [RANGE 60 SECONDS], with an aggregate in SELECT."
            raise PlanError("M3011", f"{name} needs a window and an aggregate", hint=hint)
        if name == FINALITY:
            hint = (
                "It tells early results of an aggregate from final ones: SELECT k, COUNT(*) AS n, finality … GROUP BY k"
            )
            raise PlanError("M3011", "finality needs an aggregate", hint=hint)
        known = [visible for entry in self.entries for visible in entry.visible]
        if name in self.aggregates:
            hint = f"{name} is an aggregate: HAVING selects groups by it, WHERE selects tuples"
        elif name in self.aliases:
            hint = f"the select list computes {name} last: repeat its expression here, or select from a subquery"
        else:
            hint = self._instead(name, known)
        raise BindError("M2001", f"unknown column '{name}'", hint=hint)

    def _instead(self, name: str, known: Iterable[str]) -> str:
        """A hint for a name that is no column."""
        if name in WITHOUT_CALL:
            return INSTEAD[name]
        return f"{name.upper()}(…) is a function" if name in aggregates.known() else did_you_mean(name, known)

    def _current_time(self) -> Column:
        """Return the hidden timestamp of streams that are stamped on entry; for a join, the newer one."""
        if all(entry.plan is None or entry.schema.kind is TimeKind.INTERNAL for entry in self.entries):
            return Column(Type.TIMESTAMP, TS)
        hint = "Only a stream with ORDER BY current_time has it."
        raise BindError("M2013", "current_time is not a column of this stream", hint=hint)

    def expand(self, star: ast.Star) -> list[tuple[str, Column]]:
        """Return the columns of `*` or `alias.*`, in the order of FROM, under their own names."""
        if star.qualifier is not None:
            entry = self.entry(star.qualifier)
            return [(name, self.column(entry, name)) for name in entry.visible]
        found: list[tuple[str, Column]] = []
        merged: set[str] = set()
        for entry in self.entries:
            names = [name for name in entry.visible if name not in merged]
            found += [(name, self.column(entry, name)) for name in names]
            merged |= self.merged & {*names}
        return found
