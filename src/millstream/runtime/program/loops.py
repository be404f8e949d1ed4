"""Loops over the rows of tables, as Python source.

`Access` tells how the rows are found. `ORDER BY column LIMIT n` over a whole table takes the first rows of a sorted
index. A table with a fixed number of rows needs no loop: what is done with a row is repeated for each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from millstream.algebra.expression import Binary, Column, Expression
from millstream.algebra.program.query import Query, Source
from millstream.runtime.program.access import Access, Level, query_aliases
from millstream.runtime.program.expressions import Expressions, QueryCompiler
from millstream.runtime.program.operators import COMPARISONS
from millstream.runtime.program.ordered import Order, Range
from millstream.runtime.program.source import Frame, LocalStorage

INDENT = "    "
Body = Callable[[], list[str]]
"""Generates the lines of a loop for the rows that are bound."""
_SHORT = 6
"""Number of lines of a body that may appear twice."""


def indented(lines: Sequence[str]) -> list[str]:
    return [INDENT + line for line in lines]


class Loops:
    """Generates the loops around what uses the rows of the sources of a query, or of the table of a statement."""

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
        self.access = Access(frame, sources, condition, ordered=ordered)
        self.levels, self._before, self._ordered = self.access.levels, self.access.before, ordered
        self.expressions.repeated = not all(level.fixed == 1 for level in self.levels)

    def around(self, body: Body, numbered: str | None = None) -> list[str]:
        """The loops around these lines; `numbered` is a variable for the number of the row of the only table."""
        guarded = bool(self._always()) and self.access.takes_bound(self.levels[0], self.levels[0].conditions[0])
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
        looked_up = level.keys or level.members or level.first or level.fixed or level.source.outer
        looked_up = looked_up or level.storage is None
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
        if level.first is not None:
            body = [*body, "break"]
        if level.conditions:
            body = [f"if {self.expressions.all_hold(level.conditions)}:", *indented(body)]
        if level.probe is not None:
            return self._probed(level, level.probe, body, numbered)
        if (sorted_rows := self._sorted(level, numbered)) is not None:
            return [f"for {sorted_rows}:", *indented(body)]
        if level.members is not None and not self._ordered:
            before, keys = self._member_keys(level)
            key = self._key_of(level)
            return [*before, f"for {key} in {keys}:", *indented(self._looked_up(level, key, body, numbered))]
        if level.keys:
            return self._looked_up(level, self.key(level), body, numbered)
        if numbered is None:
            return [f"for {level.variable} in {self._rows(level)}:", *indented(body)]
        assert level.storage is not None
        level.storage.scanned = True
        return [f"for {numbered}, {level.variable} in s.{level.storage.attribute}.rows.items():", *indented(body)]

    def _sorted(self, level: Level, numbered: str | None) -> str | None:
        """Variables and the rows of a sorted index that they take: those beyond a bound, or up to the first that is
        used, or those of a key, in any order; None if there is no such index."""
        storage, bound, index = level.storage, level.beyond, None
        if storage is None or level.fixed:
            return None
        if bound is not None or level.first is not None:
            index = bound[0] if bound is not None else level.first[0] if level.first is not None else None
        elif level.keys and storage.own and not self._ordered and level.members is None:
            index = storage.ranges_of(level.columns)
            if index is None or self._may_be_null(level, index.column):  # the index has no NULLs
                return None
        if index is None:
            return None
        name = self._frame.index(storage, index)
        values = [] if bound is None else [repr(bound[1]), self.expressions.value(bound[2]).text]
        if isinstance(index, Range):
            each = f"_, {numbered or '_'}, {level.variable}"
            rows = f"{name}.{'all' if bound is None else 'beyond'}({', '.join([self.key(level), *values])})"
        elif bound is None:
            each, rows = level.variable, f"{name}.listed"
        elif numbered is None:
            each, rows = level.variable, f"{name}.rows_beyond({', '.join(values)})"
        else:
            each, rows = f"{numbered}, {level.variable}", f"{name}.beyond({', '.join(values)})"
        reverse = level.first is not None and level.first[1]
        return f"{each} in {f'reversed({rows})' if reverse else rows}"

    def _may_be_null(self, level: Level, column: int) -> bool:
        return self._frame.module.facts.of_column(str(level.source.relation), column).nullable

    def _probed(self, level: Level, probe: Level, body: list[str], numbered: str | None) -> list[str]:
        """The loop over the rows that those of another table find, each once."""
        assert probe.storage is not None
        number, found = numbered or self._frame.own(f"n{level.variable}"), self._frame.temporary()
        find = [f"for {self._sorted(level, number)}:", *indented([f"{found}[{number}] = {level.variable}"])]
        if probe.conditions:
            find = [f"if {self.expressions.all_hold(probe.conditions)}:", *indented(find)]
        rows = f"for {probe.variable} in {self._frame.rows(probe.storage)}:"
        over = f"for {number}, {level.variable} in {found}.items():"
        return [f"{found} = {{}}", rows, *indented(find), over, *indented(body)]

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
        row, columns, name = level.variable, level.columns, self._key_of(level)
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

    def comprehension(self, item: Callable[[], str]) -> list[str] | None:
        """The list of an item for all rows, after the lines that it needs before it; None if it takes loops."""
        looks_up = any(
            level.keys or level.first or (level.members and not self._ordered) or level.probe for level in self.levels
        )
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
        if at in self.access.after:
            body = [f"if {self.expressions.all_hold(self.access.after[at])}:", *indented(body)]
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
            return f"{self._frame.index(storage, level.columns)}.all({self.key(level)})"
        return self._frame.rows(storage)

    def key(self, level: Level) -> str:
        """The key that is looked up."""
        values = [self.expressions.value(level.keys[position]).text for position in level.columns]
        return values[0] if len(values) == 1 else f"({', '.join(values)})"

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
            if whole is not None and whole[0].own:
                keys += f" if s.{whole[0].attribute}.rows else ()"
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
        used = level.keys or level.members or level.conditions or level.source.outer or level.beyond
        if used or storage is None or storage.fixed or not level.owns(key):
            return None
        order = Order(level.position(key), descending)
        counts = ["None" if each is None else self.expressions.value(each).text for each in (query.limit, query.offset)]
        return f"s.{storage.attribute}.indexes[{storage.index(order)}].first_{{}}({', '.join(counts)})"

    @property
    def is_lookup(self) -> bool:
        """True if a row exists exactly if the index of the only table has the key."""
        if len(self.levels) != 1 or self._before:
            return False
        (level,) = self.levels
        return bool(level.keys) and not (level.conditions or level.beyond or level.source.outer)
