"""Loops over the rows of tables, as Python source.

A condition is tested in the outermost loop that has its columns. An equality of columns with values that are known
before the loop becomes a lookup in an index of the table, unless they are DOUBLEs, where NaN equals NaN; so does
`column IN (SELECT …)`, a lookup for each row of the query. `ORDER BY column LIMIT n` over a whole table takes the first
rows of a sorted index. A table with a fixed number of rows needs no loop: what is done with a row is repeated for each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from millstream.algebra.expression import Binary, Column, Expression, conjuncts
from millstream.algebra.program.expression import Exists, InQuery, subqueries, walk
from millstream.algebra.program.query import Query, Source
from millstream.algebra.types import Type
from millstream.runtime.program.expressions import COMPARISONS, Expressions, QueryCompiler
from millstream.runtime.program.index import Order
from millstream.runtime.program.source import Frame, LocalStorage

INDENT = "    "
_TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
"""Comparisons with a bound, and the same with their sides exchanged."""
_WHOLE = (Type.INT, Type.BIGINT)
Body = Callable[[], list[str]]
"""Generates the lines of a loop for the rows that are bound."""
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
    beyond: tuple[Order, str, Expression] | None = None
    """A sorted index and a bound of its values."""

    @property
    def fixed(self) -> int:
        """The number of rows, if they need no loop."""
        return 0 if self.storage is None or self.source.outer else self.storage.fixed


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
        self.expressions.repeated = not all(level.fixed == 1 for level in self.levels)
        parts = [part for part in conjuncts(condition) if not self._looks_up_members(part)]
        for part in sorted(parts, key=self._changes):
            self._place(part)

    def _level(self, source: Source) -> Level:
        frame, relation = self._frame, source.relation
        storage = frame.module.tables[relation] if isinstance(relation, str) else None
        level = Level(source, frame.module.name("r"), storage)
        if level.fixed:
            assert storage is not None
            frame.bind_cells(source.alias, storage)
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

    def _changes(self, part: Expression) -> bool:
        """True if a condition tests a column that an UPDATE changes: an index on others is better."""
        return any(self._assigned(level, node) for level in self.levels for node in walk(part))

    def _assigned(self, level: Level, node: Expression) -> bool:
        if level.storage is None or not isinstance(node, Column) or not self._owns(level, node):
            return False
        return level.source.columns.index(node.name.rpartition(".")[2]) in level.storage.assigned

    def _looks_up(self, level: Level, part: Expression, known: int) -> bool:
        """Take an equality as a lookup, if its other side is known before the loop."""
        if level.storage is None or level.storage.fixed or not (isinstance(part, Binary) and part.op == "="):
            return False
        if level.members is not None:
            return False
        later = {level.source.alias, *(other.source.alias for other in self.levels[known:])}
        for column, value in ((part.left, part.right), (part.right, part.left)):
            own = isinstance(column, Column) and self._owns(level, column)
            if own and level.keys and self._assigned(level, column):
                continue
            if own and isinstance(column, Column) and not aliases(value) & later and column.type is not Type.DOUBLE:
                position = level.source.columns.index(column.name.rpartition(".")[2])
                if position not in level.keys and value.type is column.type:
                    level.keys[position] = value
                    return True
        return False

    def _looks_up_members(self, part: Expression) -> bool:
        """Take `column IN (SELECT …)` as lookups, if the query is known before the loop."""
        part = self._membership(part)
        if not (isinstance(part, InQuery) and isinstance(part.operand, Column)):
            return False
        alias, _, name = part.operand.name.rpartition(".")
        at = next((at for at, level in enumerate(self.levels) if level.source.alias == alias), None)
        if at is None or part.operand.type is Type.DOUBLE or part.query.items[0].type is not part.operand.type:
            return False
        level, later = self.levels[at], {each.source.alias for each in self.levels[at:]}
        taken = level.storage is None or level.fixed or level.source.outer or level.members is not None
        if taken or query_aliases(part.query) & later:
            return False
        level.members = level.source.columns.index(name), part.query
        return True

    def _membership(self, part: Expression) -> Expression:
        """`EXISTS (SELECT … FROM other WHERE other.a = table.b)` as `table.b IN (SELECT other.a FROM other)`, where
        rows are in no order and `b` does not change."""
        if self._ordered or not isinstance(part, Exists) or len(part.query.sources) != 1:
            return part
        query, (source,) = part.query, part.query.sources
        plain = query == Query(query.sources, query.items, query.condition) and not source.outer
        equality = query.condition
        if not plain or not (isinstance(equality, Binary) and equality.op == "="):
            return part
        for inner, outer in ((equality.left, equality.right), (equality.right, equality.left)):
            if not (isinstance(inner, Column) and isinstance(outer, Column)):
                continue
            level = next((each for each in self.levels if self._owns(each, outer)), None)
            changes = level is None or level.source.relation == source.relation or self._assigned(level, outer)
            if not changes and inner.name.rpartition(".")[0] == source.alias:
                return InQuery(Type.BOOLEAN, outer, Query(query.sources, (inner,)))
        return part

    # --- source ---------------------------------------------------------------------------------------------------

    def around(self, body: Body, numbered: str | None = None) -> list[str]:
        """The loops around these lines; `numbered` is a variable for the number of the row of the only table."""
        guarded = self._bounds(self.levels[0]) if self.levels else False
        with self.expressions.in_loop() as before:
            self.expressions.always = self._always()
            lines = self._loop(0, body, numbered)
        lines = [*before, *lines]
        if guarded or (before and self.expressions.always):
            assert self.levels[0].storage is not None
            lines = [f"if s.{self.levels[0].storage.attribute}.rows:", *indented(lines)]
        if used := [f"s.{table.attribute}.rows" for table in self._joined()]:
            lines = [f"if {' and '.join(used)}:", *indented(lines)]
        if self._before:
            lines = [f"if {self.expressions.all_hold(self._before)}:", *indented(lines)]
        return [*self._hoisted(), *lines]

    def _always(self) -> tuple[Expression, ...]:
        """The operands of the only condition, where it is tested for each row of a table."""
        if not self.levels:
            return ()
        level = self.levels[0]
        looked_up = level.keys or level.members or level.fixed or level.source.outer or level.storage is None
        if len(self.levels) > 1 or looked_up or len(level.conditions) != 1:
            return ()
        (test,) = level.conditions
        return (test.left, test.right) if isinstance(test, Binary) and test.op in COMPARISONS else ()

    def _joined(self) -> Iterator[LocalStorage]:
        """The tables after the first: without rows in one of them, there is nothing to do."""
        for level in self.levels[1:]:
            storage = level.storage
            if storage is not None and storage.own and not (storage.fixed or storage.keyed or level.source.outer):
                yield storage

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

    def _loop(self, at: int, innermost: Body, numbered: str | None) -> list[str]:
        """The loop over the rows of a source, and those inside it."""
        if at == len(self.levels):
            return innermost()
        level = self.levels[at]
        if level.fixed:
            return self._unrolled(at, innermost, numbered)
        body = self._loop(at + 1, innermost, numbered)
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
        if level.beyond is not None:
            each = f"{numbered or '_'}, {level.variable}"
            return [f"for {each} in {self._beyond(level)}:", *indented(body)]
        if numbered is None:
            return [f"for {level.variable} in {self._rows(level)}:", *indented(body)]
        assert level.storage is not None
        level.storage.scanned = True
        return [f"for {numbered}, {level.variable} in s.{level.storage.attribute}.rows.items():", *indented(body)]

    def _unrolled(self, at: int, innermost: Body, numbered: str | None) -> list[str]:
        """The body for each row of a fixed table."""
        level, lines = self.levels[at], []
        assert level.storage is not None
        for row in range(level.fixed):
            self._frame.bind_cells(level.source.alias, level.storage, row)
            body = self._loop(at + 1, innermost, numbered)
            if level.conditions:
                body = [f"if {self.expressions.all_hold(level.conditions)}:", *indented(body)]
            lines += body
        return lines

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
        found = f"{several}[{name}]"
        if not level.storage.keyed:
            found += ".values()" if numbered is None else ".items()"
        loop = [f"for {each} in {found}:", *indented(body)]
        return [*lines, *indented(body), f"elif {several} and {name} in {several}:", *indented(loop)]

    @staticmethod
    def _looked_columns(level: Level) -> tuple[int, ...]:
        return tuple(sorted(level.keys)) if level.members is None else (level.members[0],)

    def comprehension(self, item: Callable[[], str]) -> list[str] | None:
        """The list of an item for all rows, after the lines that it needs before it; None if it takes loops."""
        looks_up = any(level.keys or (level.members and not self._ordered) for level in self.levels)
        if looks_up or self._before or any(level.source.outer or level.storage is None for level in self.levels):
            return None
        if any(level.fixed > 1 for level in self.levels):
            return None
        clauses: list[str] = []
        with self.expressions.in_loop() as before:
            for level in self.levels:
                if not level.fixed:
                    clauses.append(f"for {level.variable} in {self._rows(level)}")
                if ":=" in "".join(clauses):  # not allowed in the sources of a comprehension
                    return None
                if level.conditions:
                    clauses.append(f"if {self.expressions.all_hold(level.conditions)}")
            if not clauses or not clauses[0].startswith("for"):
                return None
            return [*before, f"[{item()} {' '.join(clauses)}]"]

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
        if storage.fixed:
            return f"[{', '.join(self._frame.cells(storage, row) for row in range(storage.fixed))}]"
        if level.members is not None:
            position, query = level.members
            if self._ordered:
                rows, column = self._member_rows(query)
                storage.scanned = True
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

    def _beyond(self, level: Level) -> str:
        """The rows of a sorted index up to a bound, or from it on."""
        assert level.storage is not None and level.beyond is not None
        order, op, bound = level.beyond
        at = level.storage.index(order)
        return f"s.{level.storage.attribute}.indexes[{at}].beyond({op!r}, {self.expressions.value(bound).text})"

    def _bounds(self, level: Level) -> bool:
        """Take the only condition as a bound, if the table has a sorted index of its column anyway."""
        storage = level.storage
        if self._ordered or storage is None or not self._always():
            return False
        (test,) = level.conditions
        assert isinstance(test, Binary)
        for column, op, bound in ((test.left, test.op, test.right), (test.right, _TURNED.get(test.op), test.left)):
            if not isinstance(column, Column) or not self._owns(level, column) or op not in _TURNED:
                continue
            position = level.source.columns.index(column.name.rpartition(".")[2])
            order = next(
                (each for each in storage.indexes if isinstance(each, Order) and each.column == position), None
            )
            known = level.source.alias not in aliases(bound) and column.type in _WHOLE and bound.type in _WHOLE
            if order is not None and known and not (storage.assigned & {position}):
                level.beyond = order, op, bound
                level.conditions.clear()
                return True
        return False

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
        if whole is not None and whole[0].fixed:
            cells = [self._frame.cell(whole[0], row, whole[1]) for row in range(whole[0].fixed)]
            keys = f"{{{', '.join(f'{cell}: None' for cell in cells)}}}"
        else:
            rows, position = self._member_rows(query)
            keys = f"{{row[{position}]: None for row in {rows}}}"
        if column is None or self._before or level is not self.levels[0]:
            return [], keys
        name = self._frame.keep_keys(column)
        return [f"{name} = {keys}"], name

    def _member_rows(self, query: Query) -> tuple[str, int]:
        """The rows of a query whose values are looked up, and their column."""
        if (whole := self._whole_column(query)) is not None and not whole[0].fixed:
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
        return (storage, source.columns.index(column)) if owner == source.alias else None

    def first_rows(self, query: Query) -> str | None:
        """The rows of a whole table in the order of a column and up to a limit, from a sorted index; with `rows` or
        `values` of that column in the braces."""
        if len(self.levels) != 1 or self._before or len(query.order) != 1 or query.limit is None:
            return None
        (level,), ((key, descending),), storage = self.levels, query.order, self.levels[0].storage
        used = level.keys or level.members or level.conditions or level.source.outer
        if used or storage is None or storage.fixed or not isinstance(key, Column) or not self._owns(level, key):
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
