"""Which columns a name can mean: the relations of one FROM, under their aliases.

With one relation a column has the stream's own name in the plan; with several, each carries its alias (`b.price`), as
joins put them out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from millstream.algebra.expression import Column
from millstream.algebra.schema import TS, Schema, TimeKind
from millstream.algebra.types import Type
from millstream.algebra.window import WINDOW_END, WINDOW_START
from millstream.errors import BindError, PlanError, did_you_mean
from millstream.lang import ast

CURRENT_TIME = "current_time"
PSEUDO_COLUMNS = (WINDOW_START, WINDOW_END)


@dataclass(frozen=True, slots=True)
class Relation:
    """One entry of FROM under its alias; `static` for a table."""

    alias: str
    schema: Schema
    static: bool = False

    @property
    def visible(self) -> Iterator[str]:
        return (name for name in self.schema.names if not name.startswith("__"))


@dataclass(frozen=True, slots=True)
class Scope:
    """`merged` are the columns of USING, which are one column and not ambiguous.

    `same` maps columns of the plan to the one that a join puts out punctuation on: of two keys, the left one.
    """

    relations: tuple[Relation, ...]
    merged: frozenset[str] = frozenset()
    same: Mapping[str, str] = field(default_factory=dict)

    @property
    def prefixed(self) -> bool:
        return len(self.relations) > 1

    def column(self, relation: Relation, name: str) -> Column:
        """The plan's column for a relation's column."""
        full = f"{relation.alias}.{name}" if self.prefixed else name
        return Column(relation.schema.type_of(name), self.same.get(full, full))

    def relation(self, alias: str) -> Relation:
        for relation in self.relations:
            if relation.alias == alias:
                return relation
        known = [relation.alias for relation in self.relations]
        raise BindError("M2011", f"unknown alias '{alias}'", hint=did_you_mean(alias, known))

    def resolve(self, name: ast.Name) -> Column:
        """The column that a written name means."""
        if len(name.parts) > 2:
            raise BindError("M2001", f"unknown column '{name}'", hint="write alias.column")
        if len(name.parts) == 2:
            return self._qualified(*name.parts)
        return self._unqualified(name.parts[0])

    def _qualified(self, alias: str, name: str) -> Column:
        relation = self.relation(alias)
        if name in relation.schema:
            return self.column(relation, name)
        if name == CURRENT_TIME and relation.schema.kind is TimeKind.INTERNAL:
            if self.prefixed:
                hint = f"select it in a subquery: (SELECT *, current_time AS entered FROM …) {alias}"
                raise PlanError("M3010", "current_time of one side of a join is not available", hint=hint)
            return Column(Type.TIMESTAMP, TS)
        hint = did_you_mean(name, relation.visible)
        raise BindError("M2001", f"unknown column '{alias}.{name}'", hint=hint)

    def _unqualified(self, name: str) -> Column:
        owners = [relation for relation in self.relations if name in relation.schema]
        if len(owners) > 1 and name not in self.merged:
            written = " or ".join(f"{relation.alias}.{name}" for relation in owners)
            raise BindError("M2012", f"column '{name}' is ambiguous", hint=f"write {written}")
        if owners:
            return self.column(owners[0], name)
        if name == CURRENT_TIME:
            return self._current_time()
        if name in PSEUDO_COLUMNS:
            hint = "It belongs to a grouped window aggregate: s [RANGE 60 SECONDS], with an aggregate in SELECT."
            raise PlanError("M3011", f"{name} needs a window and an aggregate", hint=hint)
        known = [visible for relation in self.relations for visible in relation.visible]
        raise BindError("M2001", f"unknown column '{name}'", hint=did_you_mean(name, known))

    def _current_time(self) -> Column:
        """The hidden timestamp of streams that are stamped on entry; of a join, the newer one."""
        streams = [relation for relation in self.relations if not relation.static]
        if all(relation.schema.kind is TimeKind.INTERNAL for relation in streams):
            return Column(Type.TIMESTAMP, TS)
        hint = "Only a stream with ORDER BY current_time has it."
        raise BindError("M2013", "current_time is not a column of this stream", hint=hint)

    def expand(self, star: ast.Star) -> list[tuple[str, Column]]:
        """The columns of `*` or `alias.*`, in the order of FROM, under their own names."""
        relations = self.relations if star.qualifier is None else (self.relation(star.qualifier),)
        found: list[tuple[str, Column]] = []
        merged: set[str] = set()
        for relation in relations:
            for name in relation.visible:
                if star.qualifier is None and name in self.merged:
                    if name in merged:
                        continue
                    merged.add(name)
                found.append((name, self.column(relation, name)))
        return found
