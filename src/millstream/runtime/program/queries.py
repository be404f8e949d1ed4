"""Queries over local tables as Python source: a function that loops over the rows of FROM.

A query over one-row tables alone needs no function.

| kind | the function returns |
|---|---|
| rows | a list of tuples |
| value | the first column of the only row, None without rows; an error if there are several |
| exists | True if there is a row |
"""

from __future__ import annotations

import re

from millstream.algebra.expression import Column, Expression, Literal, conjuncts
from millstream.algebra.program.expression import walk
from millstream.algebra.program.program import Program
from millstream.algebra.program.query import Call, Query
from millstream.algebra.python.definition import Declaration
from millstream.algebra.types import Type
from millstream.runtime.program.accumulate import DISCRETE, EXTREMES, Accumulator
from millstream.runtime.program.expressions import Expressions
from millstream.runtime.program.forms import has_nan
from millstream.runtime.program.loops import Loops, indented
from millstream.runtime.program.source import Frame, Module


def call_query(query: Query, frame: Frame, kind: str) -> str:
    """Source that calls a query from a function."""
    if query.members:
        return f"[{', '.join(f'*{call_query(member, frame, kind)}' for member in query.members)}]"
    if is_single(query, frame.module):
        return _inline(query, frame, kind)
    inner = Frame(frame.module, frame)
    made = _Function(query, inner, kind)
    if kind == "exists" and (lookup := made.lookup(frame)) is not None:
        for variable in inner.free:
            frame.use(variable)
        return lookup
    name = frame.module.name("q")
    lines = made.lines()
    parameters = ", ".join(["s", *inner.free])
    frame.module.add([f"def {name}({parameters}):", *indented([*inner.prelude, *lines])])
    call = f"{name}({', '.join(['s', *map(frame.use, inner.free)])})"
    return made.only_value(frame, call) if kind == "value" else call


def query_lines(query: Query, frame: Frame) -> list[str]:
    """The lines that return the rows of a query, at the end of a function."""
    return _Function(query, frame, "rows").lines()


# --- queries without a loop -------------------------------------------------------------------------------------------


def is_single(query: Query, module: Module) -> bool:
    """True if the query has one row at most, of constants, arguments and one-row tables."""
    tables = [module.tables.get(s.relation) for s in query.sources if isinstance(s.relation, str) and not s.outer]
    single = len(tables) == len(query.sources) and all(table is not None and table.fixed == 1 for table in tables)
    return single and not (query.aggregated or query.limit is not None or query.offset is not None)


def is_plain(query: Query) -> bool:
    """True if the query has a row for each of its sources, in their order."""
    cut = query.limit is not None or query.offset is not None
    return bool(query.sources) and not (query.members or query.aggregated or query.distinct or query.order or cut)


def reads(query: Query, table: str) -> bool:
    """True if the query, or one inside it, reads a table."""
    return any(source.relation == table for inner in query.walk() for source in inner.sources)


def bind_single(query: Query, frame: Frame) -> Expressions:
    """The expressions of a query that has one row at most."""
    for source in query.sources:
        assert isinstance(source.relation, str)
        frame.bind_cells(source.alias, frame.module.tables[source.relation])
    return Expressions(frame, call_query)


def _inline(query: Query, frame: Frame, kind: str) -> str:
    made = bind_single(query, frame)
    test = None if query.condition is None else made.all_hold(conjuncts(query.condition))
    if kind == "exists":
        return test or "True"
    items = [made.value(item).text for item in query.items]
    text, empty = (items[0], "None") if kind == "value" else (f"[({', '.join(items)},)]", "[]")
    return text if test is None else f"({text} if {test} else {empty})"


# --- functions --------------------------------------------------------------------------------------------------------


class _Function:
    """The body of the function of one query."""

    def __init__(self, query: Query, frame: Frame, kind: str) -> None:
        self._query, self._frame, self._kind = query, frame, kind
        if query.aggregated:
            ordered = bool(query.groups) or not all(map(_in_any_order, query.calls))
        else:
            ordered = kind == "rows" or not self._is_one_row()
        self._loops = Loops(frame, query.sources, query.condition, call_query, ordered=ordered)
        self._expressions = self._loops.expressions

    def _is_one_row(self) -> bool:
        """True if the order of rows does not matter: one is returned at most, and no condition fails."""
        query, parts = self._query, conjuncts(self._query.condition)
        plain = query == Query(query.sources, query.items, query.condition)
        columns = all(isinstance(item, Column | Literal) for item in query.items)
        return plain and columns and all(map(self._frame.module.facts.is_safe, parts))

    def lines(self) -> list[str]:
        with self._frame.module.facts.within(self._query):
            return self._lines()

    def _lines(self) -> list[str]:
        query, kind = self._query, self._kind
        plain = not (query.order or query.distinct or query.limit is not None or query.offset is not None)
        if query.aggregated and plain and self._has_one_row():
            return self._grouped(kind)
        if query.aggregated:
            found = self._grouped()
        elif not query.distinct and (first := self._loops.first_rows(query)) is not None:
            (level,), ((key, _),) = self._loops.levels, query.order
            if kind == "value" and query.offset is None and query.limit == Literal(Type.BIGINT, 1):
                name = level.variable
                return [f"{name} = {first[: first.rindex('.')]}.first()", self._of_row(name)]
            if query.items == (key,):
                listed = f"[*zip({first.format('values')})]"
            else:
                listed = f"[({', '.join(self._items())},) for {level.variable} in {first.format('rows')}]"
            return [f"return {listed}"] if kind == "rows" else [f"out = {listed}", self._returned(kind)]
        elif plain and kind != "rows":
            return self._only() if kind == "value" else self._first()
        else:
            found = ["out = []", *self._loops.around(self._appended)]
        return [*found, *self._delivered(kind)]

    def _of_row(self, name: str) -> str:
        """Return the value of a row, NULL if there is none."""
        return f"return None if {name} is None else {self._items()[0]}"

    def lookup(self, caller: Frame) -> str | None:
        """Source that tells the caller whether there is a row, if the index of a table knows it."""
        query, levels = self._query, self._loops.levels
        if query.aggregated or query.limit is not None or query.offset is not None:
            return None
        if query.condition is None and len(levels) == 1 and levels[0].is_own:
            assert levels[0].storage is not None
            table = f"s.{levels[0].storage.attribute}"
            return f"bool({table}.rows or {table}.several)" if levels[0].storage.keyed else f"bool({table}.rows)"
        if not self._loops.is_lookup:
            return None
        (level,) = levels
        assert level.storage is not None
        self._expressions.repeated = False  # the key is computed by the caller
        columns, key = level.columns, self._loops.key(level)
        rows, several = (caller.index(level.storage, columns, part) for part in ("rows", "several"))
        if key.isidentifier():
            return f"({key} in {rows} or {key} in {several})"
        name = caller.temporary()
        return f"(({name} := {key}) in {rows} or {name} in {several})"

    def only_value(self, caller: Frame, call: str) -> str:
        """Source of the value of the only row: the caller finds it itself where the index of a table has one row for
        the key, and calls the function where it may have several."""
        query = self._query
        if query != Query(query.sources, query.items, query.condition) or not self._loops.is_lookup:
            return call
        (level,) = self._loops.levels
        if level.storage is None or not level.storage.own or not level.owns(query.items[0]):
            return call
        rows, several = (caller.index(level.storage, level.columns, part) for part in ("rows", "several"))
        self._expressions.repeated = False  # the key is computed by the caller
        found = f"({caller.own(level.variable)} := {rows}.get({self._loops.key(level)})) is not None"
        return f"({self._items()[0]} if {found} else {call} if {several} else None)"

    def _first(self) -> list[str]:
        """Return at the first row."""
        return [*self._loops.around(lambda: ["return True"]), "return False"]

    def _only(self) -> list[str]:
        """The value of the only row; a second row is an error."""
        said = self._said

        def kept() -> list[str]:
            return ["if found:", *indented([f"several_rows({said})"]), f"found, value = True, {self._items()[0]}"]

        return ["found, value = False, None", *self._loops.around(kept), "return value"]

    @property
    def _said(self) -> str:
        """The text of the query, with tables as they are written."""
        text = re.sub(r"\b(\w+) \1#\d+", r"\1", f"({self._query})")
        return self._frame.module.constant(re.sub(r"(?<=\w)#\d+\b", "", text))

    def _returned(self, kind: str) -> str:
        if kind == "value":
            return f"return only(out, {self._said})"
        return "return out" if kind == "rows" else "return bool(out)"

    def _items(self) -> list[str]:
        return self._values(self._query.items)

    def _values(self, expressions: tuple[Expression, ...]) -> list[str]:
        return [self._expressions.value(each).text for each in expressions]

    def _appended(self) -> list[str]:
        row = f"({', '.join(self._items())},)"
        if not self._query.order:
            return [f"out.append({row})"]
        keys = self._values(tuple(key for key, _ in self._query.order))
        return [f"out.append((({', '.join(keys)},), {row}))"]

    def _delivered(self, kind: str) -> list[str]:
        """Sort and limit the rows, and return what was asked for."""
        query, lines = self._query, []
        if query.distinct:
            every = [item for each in (query, *query.members) for item in each.items]
            lines.append(
                "out = distinct(out)" if any(has_nan(i.type) for i in every) else "out = list(dict.fromkeys(out))"
            )
        if query.order:
            lines.append(f"out = ordered(out, {tuple(down for _, down in query.order)!r})")
        if query.limit is not None or query.offset is not None:
            counts = ["None" if each is None else self._values((each,))[0] for each in (query.limit, query.offset)]
            lines.append(f"out = limited(out, {', '.join(counts)})")
        return [*lines, self._returned(kind)]

    # --- groups and aggregates ------------------------------------------------------------------------------------

    def _has_one_row(self) -> bool:
        """True if a query with aggregates always has exactly one row."""
        several = any(isinstance(call.by, Program | Declaration) for call in self._query.calls)
        return not self._query.groups and self._query.having is None and not several

    def _grouped(self, only: str | None = None) -> list[str]:
        """Collect what each aggregate keeps, by group; then compute the aggregates. `only`: return what is asked for of
        the only row."""
        query, frame, keys = self._query, self._frame, len(self._query.groups)
        held = "held[{}]" if keys else "held{}"
        kept = [
            Accumulator(call, held.format(n), frame, self._argument, begun=bool(keys))
            for n, call in enumerate(query.calls)
        ]

        def collected() -> list[str]:
            lines = [line for each in kept for line in each.add()]
            return _by_group(list(map(self._key, query.groups)), kept, lines) if keys else lines or ["pass"]

        listed = None
        if not keys and len(kept) == 1:
            self._ends_early(query.calls[0])
        if keys:
            found = ["groups = {}", *self._loops.around(collected)]
        elif len(kept) == 1 and (listed := self._loops.comprehension(lambda: self._argument(query.calls[0]))):
            found = [*listed[:-1], f"held0 = {listed[-1]}"]
        else:
            found = [*(f"{each.place} = {each.initial}" for each in kept), *self._loops.around(collected)]
        frame.groups = [frame.own(f"g{n}") for n in range(keys)]
        frame.calls = [frame.own(f"c{n}") for n in range(len(query.calls))]
        if only is not None:
            return [*found, *self._results([self._returned_row(only)], kept, listed is not None)]
        unpacked = [f"{', '.join(frame.groups)} = key"] if keys else []
        results = [*unpacked, *self._results(self._appended(), kept, listed is not None)]
        over = ["for key, held in groups.items():", *indented(results)] if keys else results
        return [*found, "out = []", *over]

    def _ends_early(self, call: Call) -> None:
        """The first row in the order of a column has its MIN or MAX."""
        if call.by is None and call.function in EXTREMES and self._loops.levels:
            self._loops.access.takes_first(call.arguments[0], last=call.function == "MAX")

    def _argument(self, call: Call) -> str:
        values = self._values(call.arguments)
        if call.by is not None:
            return f"({', '.join(values)},)"
        return values[0] if values else "True"

    def _key(self, group: Expression) -> str:
        text = self._values((group,))[0]
        return f"normal({text})" if has_nan(group.type) else text

    def _returned_row(self, kind: str) -> str:
        items = self._items()
        row = f"[({', '.join(items)},)]"
        return f"return {'True' if kind == 'exists' else items[0] if kind == 'value' else row}"

    def _results(self, lines: list[str], kept: list[Accumulator], listed: bool) -> list[str]:
        """Compute the aggregates of one group, then do what these lines do; a program may return no row, or several.
        `listed`: there are lists of arguments, whatever the aggregates keep else."""
        query = self._query
        if query.having is not None:
            lines = [f"if {self._expressions.all_hold(conjuncts(query.having))}:", *indented(lines)]
        plain: list[str] = []
        for position, (call, each) in enumerate(zip(query.calls, kept, strict=True)):
            if isinstance(call.by, Program | Declaration):
                factory = self._frame.module.inner(call.by)
                held = f"distinct({each.place})" if call.distinct else each.place
                run = f"run({factory}, {held}, {call.by.ignore_nulls})"
                lines = [f"for c{position} in {run}:", *indented(lines)]
            else:
                plain.append(f"c{position} = {each.of_list() if listed else each.result()}")
        return [*plain, *lines]


def _in_any_order(call: Call) -> bool:
    """True if the result is the same in whatever order the arguments come."""
    plain = not any(node for argument in call.arguments for node in walk(argument) if not isinstance(node, Column))
    discrete = all(argument.type in DISCRETE for argument in call.arguments)
    return call.by is None and plain and discrete and call.function in (*EXTREMES, "COUNT", "SUM")


def _by_group(keys: list[str], kept: list[Accumulator], lines: list[str]) -> list[str]:
    """Begin the group of a row, or do what these lines do with what is kept of it. A single key is its value."""
    key = keys[0] if len(keys) == 1 else f"({', '.join(keys)})"
    return [
        f"key = {key}",
        "held = groups.get(key)",
        "if held is None:",
        *indented([f"groups[key] = [{', '.join(each.first() for each in kept)}]"]),
        "else:",
        *indented(lines or ["pass"]),
    ]
