"""Loops over the rows of tables, as Python source.

A condition is tested in the outermost loop that has its columns. An equality of columns with values that are known
before the loop becomes a lookup in an index of the table, unless they are DOUBLEs, where NaN equals NaN; so does
`column IN (SELECT …)`, a lookup for each row of the query. `ORDER BY column LIMIT n` over a whole table takes the first
rows of a sorted index. A table that always has one row needs no loop.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from millstream.algebra.expression import Binary, Column, Expression, conjuncts
from millstream.algebra.program.expression import InQuery, subqueries, walk
from millstream.algebra.program.query import Query, Source
from millstream.algebra.types import Type
from millstream.runtime.program.expressions import Expressions, QueryCompiler
from millstream.runtime.program.index import Order
from millstream.runtime.program.source import Frame, LocalStorage

INDENT = "    "
_SHORT = 6
"""Number of lines of a body that may appear twice."""


def indented(lines: Sequence[str]) -> list[str]:
    return [INDENT + line for line in lines]


@dataclass(slots=True)
class Level:
    """The rows of one source: the table, or the source of a list of rows; the values to look up, by column, or a column
    and the query whose rows are looked up in it; and the conditions that are tested for each row."""

    source: Source
    variable: str
    storage: LocalStorage | None
    keys: dict[int, Expression] = field(default_factory=dict)
    members: tuple[int, Query] | None = None
    conditions: list[Expression] = field(default_factory=list)

    @property
    def is_single(self) -> bool:
        return self.storage is not None and self.storage.one_row and not self.source.outer


class Loops:
    """Binds the sources of a query, or the table of a statement, and generates the loops around what uses them."""

    def __init__(
        self,
        frame: Frame,
        sources: Sequence[Source],
        condition: Expression | None,
        call_query: QueryCompiler,
        *,
        ordered: bool = True,
    ) -> None:
        """`ordered`: the rows of the first table have to come in its order."""
        self._frame, self._call_query = frame, call_query
        self.expressions = Expressions(frame, call_query)
        self.levels: list[Level] = []
        self._before: list[Expression] = []
        self._ordered = ordered
        self._after: dict[int, list[Expression]] = {}
        """Conditions on the rows of an outer join, after it has added rows of NULLs."""
        for source in sources:
            self.levels.append(self._level(source))
        self.expressions.repeated = not all(level.is_single for level in self.levels)
        for part in [part for part in conjuncts(condition) if not self._looks_up_members(part)]:
            self._place(part)

    def _level(self, source: Source) -> Level:
        frame, relation = self._frame, source.relation
        storage = frame.module.tables[relation] if isinstance(relation, str) else None
        level = Level(source, frame.module.name("r"), storage)
        if level.is_single:
            assert storage is not None
            frame.bind_single(source.alias, storage)
        else:
            frame.bind_row(source.alias, level.variable, source.columns)
        if source.outer:
            for part in conjuncts(source.on):
                if not self._looks_up(level, part, known=len(self.levels)):
                    level.conditions.append(part)
        return level

    def _place(self, part: Expression) -> None:
        used = aliases(part)
        at = max((n for n, level in enumerate(self.levels) if level.source.alias in used), default=None)
        if at is None:
            self._before.append(part)
            return
        level = self.levels[at]
        if level.source.outer:
            self._after.setdefault(at, []).append(part)
        elif not self._looks_up(level, part, known=at):
            level.conditions.append(part)

    def _looks_up(self, level: Level, part: Expression, known: int) -> bool:
        """Take an equality as a lookup, if its other side is known before the loop."""
        if level.storage is None or level.is_single or not (isinstance(part, Binary) and part.op == "="):
            return False
        if level.members is not None:
            return False
        later = {level.source.alias, *(other.source.alias for other in self.levels[known:])}
        for column, value in ((part.left, part.right), (part.right, part.left)):
            own = isinstance(column, Column) and self._owns(level, column)
            if own and isinstance(column, Column) and not aliases(value) & later and column.type is not Type.DOUBLE:
                position = level.source.columns.index(column.name.rpartition(".")[2])
                if position not in level.keys and value.type is column.type:
                    level.keys[position] = value
                    return True
        return False

    def _looks_up_members(self, part: Expression) -> bool:
        """Take `column IN (SELECT …)` as lookups, if the query is known before the loop."""
        if not (isinstance(part, InQuery) and isinstance(part.operand, Column)):
            return False
        alias, _, name = part.operand.name.rpartition(".")
        at = next((at for at, level in enumerate(self.levels) if level.source.alias == alias), None)
        if at is None or part.operand.type is Type.DOUBLE or part.query.items[0].type is not part.operand.type:
            return False
        level, later = self.levels[at], {each.source.alias for each in self.levels[at:]}
        taken = level.storage is None or level.is_single or level.source.outer or level.members is not None
        if taken or query_aliases(part.query) & later:
            return False
        level.members = level.source.columns.index(name), part.query
        return True

    # --- source ---------------------------------------------------------------------------------------------------

    def around(self, body: list[str], numbered: str | None = None) -> list[str]:
        """The loops around these lines; `numbered` is a variable for the number of the row of the only table."""
        lines = body
        for at in range(len(self.levels) - 1, -1, -1):
            lines = self._loop(at, lines, numbered)
        if self._before:
            lines = [f"if {self.expressions.all_hold(self._before)}:", *indented(lines)]
        return [*self._hoisted(), *lines]

    def _hoisted(self) -> Iterator[str]:
        """The subqueries of FROM that use no source before them, computed once."""
        for at, level in enumerate(self.levels):
            if isinstance(level.source.relation, Query) and not self._uses_earlier(at):
                name = self._frame.own(f"w{level.variable}")
                yield f"{name} = {self._call_query(level.source.relation, self._frame, 'rows')}"

    def _uses_earlier(self, at: int) -> bool:
        """True if the query of a source uses rows of those before it, as a table function may."""
        relation, earlier = self.levels[at].source.relation, {each.source.alias for each in self.levels[:at]}
        return isinstance(relation, Query) and bool(query_aliases(relation) & earlier)

    def _loop(self, at: int, body: list[str], numbered: str | None) -> list[str]:
        level = self.levels[at]
        if level.is_single:
            return [f"if {self.expressions.all_hold(level.conditions)}:", *indented(body)] if level.conditions else body
        if level.source.outer:
            return self._outer_loop(at, body)
        if level.conditions:
            body = [f"if {self.expressions.all_hold(level.conditions)}:", *indented(body)]
        if level.members is not None and not self._ordered:
            before, keys = self._member_keys(level)
            key = self._key_of(level)
            return [*before, f"for {key} in {keys}:", *indented(self._looked_up(level, key, body, numbered))]
        if level.keys:
            return self._looked_up(level, self.lookup(level)[1], body, numbered)
        if numbered is None:
            return [f"for {level.variable} in {self._rows(level)}:", *indented(body)]
        assert level.storage is not None
        return [f"for {numbered}, {level.variable} in s.{level.storage.attribute}.rows.items():", *indented(body)]

    def _looked_up(self, level: Level, key: str, body: list[str], numbered: str | None) -> list[str]:
        """The loop over the rows of a key. Most keys have one row: where the body is short, that needs no loop."""
        assert level.storage is not None
        row, columns, name = level.variable, self._looked_columns(level), self._key_of(level)
        each = row if numbered is None else f"{numbered}, {row}"
        if len(body) > _SHORT:
            found = f"{self._frame.index(level.storage, columns)}.{'all' if numbered is None else 'numbered'}({key})"
            return [f"for {each} in {found}:", *indented(body)]
        rows, several = (self._frame.index(level.storage, columns, part) for part in ("rows", "several"))
        lines = [] if key == name else [f"{name} = {key}"]
        lines.append(f"if ({row} := {rows}.get({name})) is not None:")
        if numbered is not None:
            lines += indented([f"{numbered} = {self._frame.index(level.storage, columns, 'numbers')}[{name}]"])
        found = f"{several}[{name}].{'values' if numbered is None else 'items'}()"
        loop = [f"for {each} in {found}:", *indented(body)]
        return [*lines, *indented(body), f"elif {several} and {name} in {several}:", *indented(loop)]

    @staticmethod
    def _looked_columns(level: Level) -> tuple[int, ...]:
        return tuple(sorted(level.keys)) if level.members is None else (level.members[0],)

    def comprehension(self, item: str) -> str | None:
        """The list of an item for all rows, if the loops need nothing before them."""
        looks_up = any(level.keys or (level.members and not self._ordered) for level in self.levels)
        if looks_up or self._before or any(level.source.outer or level.storage is None for level in self.levels):
            return None
        clauses: list[str] = []
        for level in self.levels:
            if not level.is_single:
                clauses.append(f"for {level.variable} in {self._rows(level)}")
            if ":=" in "".join(clauses):  # not allowed in the sources of a comprehension
                return None
            if level.conditions:
                clauses.append(f"if {self.expressions.all_hold(level.conditions)}")
        return f"[{item} {' '.join(clauses)}]" if clauses and clauses[0].startswith("for") else None

    def _outer_loop(self, at: int, body: list[str]) -> list[str]:
        level = self.levels[at]
        test = f" if {self.expressions.all_hold(level.conditions)}" if level.conditions else ""
        found = self._frame.temporary()  # the rows may be those of a computed value, which a comprehension cannot hold
        matches = f"[{level.variable} for {level.variable} in {found}{test}]"
        nulls = f"({'None, ' * len(level.source.columns)})"
        if at in self._after:
            body = [f"if {self.expressions.all_hold(self._after[at])}:", *indented(body)]
        return [f"{found} = {self._rows(level)}", f"for {level.variable} in {matches} or [{nulls}]:", *indented(body)]

    def _rows(self, level: Level) -> str:
        storage = level.storage
        if isinstance(level.source.relation, Query) and self._uses_earlier(self.levels.index(level)):
            return self._call_query(level.source.relation, self._frame, "rows")
        if storage is None:
            return f"w{level.variable}"
        if storage.one_row:
            return f"[({', '.join(storage.cell(at) for at in range(len(storage.columns)))},)]"
        if level.members is not None:
            position, query = level.members
            if self._ordered:
                rows, column = self._member_rows(query)
                return f"s.{storage.attribute}.matching_among({storage.index((position,))}, {rows}, {column})"
            return f"{self._frame.index(storage, (position,))}.all({self._key_of(level)})"
        if level.keys:
            return "{}.all({})".format(*self.lookup(level))
        return self._frame.rows(storage)

    def lookup(self, level: Level) -> tuple[str, str]:
        """The index on the columns that are looked up, and the key."""
        assert level.storage is not None
        columns = tuple(sorted(level.keys))
        values = [self.expressions.value(level.keys[position]).text for position in columns]
        key = values[0] if len(values) == 1 else f"({', '.join(values)})"
        return self._frame.index(level.storage, columns), key

    def _key_of(self, level: Level) -> str:
        return self._frame.own(f"k{level.variable}")

    def _member_keys(self, level: Level) -> tuple[list[str], str]:
        """The different keys that are looked up, and lines before. Those of a column are kept while it does not
        change."""
        assert level.members is not None
        _, query = level.members
        whole = self._whole_column(query)
        column = None if whole is None else (whole[0].attribute, whole[1])
        if column is not None and (known := self._frame.known_keys(column)) is not None:
            return [], known
        rows, position = self._member_rows(query)
        keys = f"{{row[{position}]: None for row in {rows}}}"
        if column is None or self._before or level is not self.levels[0]:
            return [], keys
        name = self._frame.keep_keys(column)
        return [f"{name} = {keys}"], name

    def _member_rows(self, query: Query) -> tuple[str, int]:
        """The rows of a query whose values are looked up, and their column."""
        if (whole := self._whole_column(query)) is not None:
            return self._frame.rows(whole[0]), whole[1]
        return self._call_query(query, self._frame, "rows"), 0

    def _whole_column(self, query: Query) -> tuple[LocalStorage, int] | None:
        """The table and the column that a query reads as they are: its rows need no copy."""
        if query != Query(query.sources, query.items) or len(query.sources) != 1:
            return None
        (source,), (item,) = query.sources, query.items
        if not isinstance(source.relation, str) or not isinstance(item, Column):
            return None
        storage, (owner, _, column) = self._frame.module.tables[source.relation], item.name.rpartition(".")
        return None if storage.one_row or owner != source.alias else (storage, source.columns.index(column))

    def first_rows(self, query: Query) -> str | None:
        """The rows of a whole table in the order of a column and up to a limit, from a sorted index; with `rows` or
        `values` of that column in the braces."""
        if len(self.levels) != 1 or self._before or len(query.order) != 1 or query.limit is None:
            return None
        (level,), ((key, descending),), storage = self.levels, query.order, self.levels[0].storage
        used = level.keys or level.members or level.conditions or level.source.outer
        if used or storage is None or storage.one_row or not isinstance(key, Column) or not self._owns(level, key):
            return None
        order = Order(level.source.columns.index(key.name.rpartition(".")[2]), descending)
        counts = ["None" if each is None else self.expressions.value(each).text for each in (query.limit, query.offset)]
        return f"s.{storage.attribute}.indexes[{storage.index(order)}].first_{{}}({', '.join(counts)})"

    @staticmethod
    def _owns(level: Level, column: Column) -> bool:
        return column.name.rpartition(".")[0] == level.source.alias

    @property
    def is_lookup(self) -> bool:
        """True if a row exists exactly if the index of the only table has the key."""
        if len(self.levels) != 1 or self._before:
            return False
        (level,) = self.levels
        return bool(level.keys) and not level.conditions and not level.source.outer


def aliases(expression: Expression) -> set[str]:
    """The aliases whose columns an expression uses, also inside subqueries."""
    found = {node.name.rpartition(".")[0] for node in walk(expression) if isinstance(node, Column)}
    return found.union(*map(query_aliases, subqueries(expression)))


def query_aliases(query: Query) -> set[str]:
    """The aliases whose columns a query uses, its own and those of the queries around it."""
    parts = (part for inner in query.walk() for part in inner.expressions())
    return {node.name.rpartition(".")[0] for part in parts for node in walk(part) if isinstance(node, Column)}
