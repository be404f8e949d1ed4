"""A program compiled to a Python class, once per program in a process.

The class has the methods of `RowAggregate`. Local tables are `Table`s, or `KeyedTable`s where rows are found by one key
alone, or plain attributes where the number of rows is fixed. The source is in `SOURCE` of the class, the indexes of its
tables by attribute in `INDEXES`, the names of the keyed ones in `KEYED`, the columns of the indexes of inwindow in
`WINDOW_INDEXES`, and `EXPIRES` is False if nothing happens when a tuple leaves.

The arguments that TERMINATE uses are attributes, which INITIALIZE and ITERATE assign.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any
from warnings import catch_warnings, simplefilter

from millstream.algebra.expression import conjuncts
from millstream.algebra.program.program import Program
from millstream.algebra.program.query import Source
from millstream.algebra.program.statement import INWINDOW, RETURN, Delete, Insert, Statement, Update, runs_code
from millstream.algebra.program.statement import queries as inner_queries
from millstream.algebra.python.definition import Declaration
from millstream.errors import OutOfRange
from millstream.runtime.program.code import python_aggregate
from millstream.runtime.program.keyed import KeyedTable
from millstream.runtime.program.loops import Loops, indented
from millstream.runtime.program.queries import bind_single, call_query, is_plain, is_single, query_lines, reads
from millstream.runtime.program.source import Frame, LocalStorage, Module
from millstream.runtime.program.table import Table

_METHODS = {
    "initialize": "initialize",
    "iterate": "iterate",
    "terminate": "terminate",
    "expire": "expire",
    "leave": "expire",
}
"""The statements of each method. `leave` does what `expire` does, where its rows are not used."""

_LAST = ""
"""The name of the last arguments among what is saved; no table has it."""


@lru_cache(maxsize=256)
def compiled(program: Program) -> type[Any]:
    """The class of a program. It is generated three times: the first time finds how its tables are used, the second
    which of their indexes are needed if all are there."""
    module = _Compiler(program)
    module.methods()
    for _ in range(2):
        module = _Compiler(program, module.tables)
        methods = module.methods()
    text = "\n\n".join([*module.functions, *methods])
    with catch_warnings():
        simplefilter("ignore", SyntaxWarning)  # `5 is None`, where a body tests a constant
        exec(compile(text, f"<aggregate {program.name}>", "exec"), module.globals)
    return _class(module, text)


def _class(module: _Compiler, text: str) -> type[Any]:
    program, tables = module.program, module.tables
    held = {name: storage for name, storage in tables.items() if name != INWINDOW}
    tabled = {name: storage for name, storage in held.items() if not storage.fixed}
    indexes = {storage.attribute: tuple(storage.indexes) for storage in tabled.values()}
    keyed = {storage.attribute: storage.key for storage in held.values() if storage.keyed}
    fixed = {name: _cells(storage) for name, storage in held.items() if storage.fixed}
    if module.last:
        fixed[_LAST] = [list(module.last.values())]
    cells = [cell for rows in fixed.values() for row in rows for cell in row if isinstance(cell, str)]

    def __init__(self: Any) -> None:
        for attribute, columns in indexes.items():
            setattr(self, attribute, KeyedTable(keyed[attribute]) if attribute in keyed else Table(columns))
        for cell in cells:
            setattr(self, cell, None)

    def save(self: Any) -> dict[str, list[tuple[Any, ...]]]:
        return {
            name: [tuple(getattr(self, cell) if isinstance(cell, str) else cell for cell in row) for row in rows]
            for name, rows in fixed.items()
        } | {name: list(map(tuple, getattr(self, storage.attribute))) for name, storage in tabled.items()}

    def load(self: Any, saved: dict[str, list[tuple[Any, ...]]]) -> None:
        for name, rows in fixed.items():
            for places, values in zip(rows, saved[name], strict=False):
                for place, value in zip(places, values, strict=True):
                    if isinstance(place, str):
                        setattr(self, place, value)
        for name, storage in tabled.items():
            table = getattr(self, storage.attribute)
            for row in saved[name]:
                table.insert(list(row) if storage.own else tuple(row))

    slots = [INWINDOW, *indexes, *cells]
    window_indexes = tuple(tables[INWINDOW].indexes) if INWINDOW in tables else ()
    members: dict[str, Any] = {
        "__slots__": tuple(slots),
        "__init__": __init__,
        "save": save,
        "load": load,
        "SOURCE": text,
        "INDEXES": indexes,
        "KEYED": frozenset(name for name, storage in held.items() if storage.keyed),
        "WINDOW_INDEXES": window_indexes,
        "EXPIRES": bool(program.expire),
        **{name: module.globals[name] for name in _METHODS},
    }
    return type(program.name, (), members)


def _cells(storage: LocalStorage) -> list[list[str | int]]:
    """The attributes of a fixed table by row, and the values of those that never change."""
    return [
        [storage.constants.get((row, at), storage.cell(row, at)) for at in range(len(storage.columns))]
        for row in range(storage.fixed)
    ]


def _returns(statement: Statement) -> bool:
    """Return whether a statement returns rows."""
    if isinstance(statement, Update):
        return statement.refusing is not None
    return isinstance(statement, Insert) and statement.table == RETURN


def _row(values: Sequence[str], storage: LocalStorage | None) -> str:
    """The source of a row for a table, or of one that is returned."""
    return f"[{', '.join(values)}]" if storage is not None and storage.own else f"({', '.join(values)},)"


def _reads_own_table(statement: Update) -> bool:
    """True if the new values or the condition depend on other rows of the table, which may have been changed."""
    return any(source.relation == statement.table for query in inner_queries(statement) for source in query.sources)


class _Compiler(Module):
    """Generates the methods of a program."""

    def inner(self, aggregate: Program | Declaration) -> str:
        """The name of the class of an aggregate that this program calls."""
        made = compiled(aggregate) if isinstance(aggregate, Program) else python_aggregate(aggregate)
        return self.constant(made, "f")

    @property
    def last(self) -> dict[str, str]:
        """The arguments that TERMINATE uses, and the attributes that hold them."""
        return {f"a{at}": f"last_{at}" for at in self.program.last_arguments}

    def methods(self) -> list[str]:
        """The source of all methods."""
        return [self._method(name, getattr(self.program, of)) for name, of in _METHODS.items()]

    def _method(self, name: str, statements: Sequence[Statement]) -> str:
        if name == "leave":
            statements = [each for each in statements if not _returns(each) or runs_code(each)]
        frame = Frame(self)
        arguments = [f"a{n}" for n in range(len(self.program.arguments))]
        parameters = [frame.own(each) for each in (self.last if name == "terminate" else arguments)]
        head = [f"def {name}({', '.join(['s', *parameters])}):"]
        if name == "terminate":
            head = [f"def {name}(s):", *indented([f"{each} = s.{of}" for each, of in self.last.items()])]
        elif name in ("initialize", "iterate"):
            head += indented([f"s.{of} = {each}" for each, of in self.last.items()])
        returns = [each for each in statements if _returns(each)]
        lines: list[str] = []
        for statement in statements:
            if returns == [statement] and statement is statements[-1] and isinstance(statement, Insert):
                lines += self._return(statement, frame)
                break
            lines += self._statement(statement, frame)
            self._forget_keys(statement, frame)
        else:
            lines = ["out = []", *lines, "return out"] if returns else [*lines, "return ()"]
        return "\n".join([*head, *indented([*frame.prelude, *lines])])

    def _forget_keys(self, statement: Statement, frame: Frame) -> None:
        if statement.table != RETURN:
            storage = self.tables[statement.table]
            whole = range(len(storage.columns))
            changed = [at for at, _ in statement.assignments] if isinstance(statement, Update) else whole
            frame.drop_keys(storage.attribute, changed)

    def _statement(self, statement: Statement, frame: Frame) -> list[str]:
        match statement:
            case Insert():
                return self._insert(statement, frame)
            case Update():
                return self._update(statement, frame)
            case Delete():
                return self._delete(statement, frame)

    def _return(self, statement: Insert, frame: Frame) -> list[str]:
        """The only rows that a method returns, at its end."""
        queries = statement.queries
        if len(queries) == 1 and not queries[0].members and not is_single(queries[0], self):
            return query_lines(queries[0], frame)
        return [f"return {' + '.join(call_query(query, frame, 'rows') for query in queries)}"]

    # --- INSERT ---------------------------------------------------------------------------------------------------

    def _insert(self, statement: Insert, frame: Frame) -> list[str]:
        storage = None if statement.table == RETURN else self.tables[statement.table]
        if storage is not None and storage.fixed:
            return self._fixed_rows(statement, frame)
        queries = statement.queries
        if len(queries) == 1 and is_single(queries[0], self):
            (query,) = queries
            made = bind_single(query, frame)
            row = _row([made.value(item).text for item in query.items], storage)
            lines = self._added(row, storage, frame)
            return (
                lines
                if query.condition is None
                else [f"if {made.all_hold(conjuncts(query.condition))}:", *indented(lines)]
            )
        if len(queries) == 1 and is_plain(queries[0]) and (storage is None or storage.own):
            (query,) = queries
            loops = Loops(frame, query.sources, query.condition, call_query)

            def made_row() -> str:
                return _row([loops.expressions.value(item).text for item in query.items], storage)

            if not reads(query, statement.table):
                return loops.around(lambda: self._added(made_row(), storage, frame))
            found = loops.around(lambda: [f"fresh.append({made_row()})"])
            return ["fresh = []", *found, "for row in fresh:", *indented(self._added("row", storage, frame))]
        rows = " + ".join(call_query(query, frame, "rows") for query in queries)
        if storage is None:
            return [f"out += {rows}"]
        added = self._added("[*row]" if storage.own else "row", storage, frame)
        return [f"for row in {rows}:", *indented(added)]

    def _added(self, row: str, storage: LocalStorage | None, frame: Frame) -> list[str]:
        """Insert a row into a table, or return it."""
        if storage is None:
            return [f"out.append({row})"]
        if not storage.keyed:
            return [f"s.{storage.attribute}.insert({row})"]
        rows, several = (frame.index(storage, storage.key, part) for part in ("rows", "several"))
        taken = f"{rows}.setdefault({storage.key_of('row')}, row) is not row"
        lines = [] if row == "row" else [f"row = {row}"]
        return [*lines, f"if {several} or {taken}:", *indented([f"s.{storage.attribute}.insert(row)"])]

    def _fixed_rows(self, statement: Insert, frame: Frame) -> list[str]:
        """The rows of a fixed table."""
        storage, lines = self.tables[statement.table], []
        for row, query in enumerate(statement.queries):
            made = bind_single(query, frame)
            values = {at: made.value(item).text for at, item in enumerate(query.items)}
            changing = {at: text for at, text in values.items() if (row, at) not in storage.constants}
            if changing:
                lines.append(frame.assigned(storage, row, changing, always=True))
        return lines

    # --- UPDATE and DELETE ----------------------------------------------------------------------------------------

    def _loops(self, statement: Update | Delete, frame: Frame) -> Loops:
        storage = self.tables[statement.table]
        columns = tuple(column.name for column in storage.columns)
        source = Source(statement.table, statement.table, columns)
        return Loops(frame, [source], statement.condition, call_query, ordered=False)

    def _update(self, statement: Update, frame: Frame) -> list[str]:
        storage, loops = self.tables[statement.table], self._loops(statement, frame)
        made, variable = loops.expressions, loops.levels[0].variable

        def values() -> dict[int, str]:
            return {position: made.value(value).text for position, value in statement.assignments}

        if storage.fixed:
            always = statement.condition is None
            return loops.around(
                lambda: [frame.assigned(storage, frame.row_of(statement.table), values(), always=always)]
            )
        assigned = [position for position, _ in statement.assignments]
        if storage.own and not any(map(storage.is_indexed, assigned)) and not _reads_own_table(statement):
            cells = ", ".join(f"{variable}[{position}]" for position in assigned)
            return loops.around(lambda: [f"{cells} = {', '.join(values().values())}"])

        def changed() -> list[str]:
            new = values()
            row = _row([new.get(n, f"{variable}[{n}]") for n in range(len(storage.columns))], storage)
            if statement.refusing is not None:
                return self._refusing(row, statement.refusing)
            return [f"changed.append((number, {row}))"]

        storage.scanned = True
        found = loops.around(changed, "number")
        return ["changed = []", *found, f"s.{storage.attribute}.change(changed)"]

    def _refusing(self, row: str, required: tuple[tuple[int, str], ...]) -> list[str]:
        """Take a changed row, or return the reason why it is refused."""
        self.globals["OutOfRange"] = OutOfRange
        null = [(f"row[{position}] is None", f"column '{name}' is NULL") for position, name in required]
        taken = ["changed.append((number, row))"]
        for test, reason in reversed(null):
            taken = [f"if {test}:", *indented([f"out.append(({reason!r},))"]), "else:", *indented(taken)]
        lines = ["try:", *indented([f"row = {row}"])]
        lines += ["except OutOfRange as error:", *indented(["out.append((str(error),))"])]
        return [*lines, "else:", *indented(taken)]

    def _delete(self, statement: Delete, frame: Frame) -> list[str]:
        storage = self.tables[statement.table]
        if statement.condition is None:
            clear = f"s.{storage.attribute}.clear()"
            return (
                [f"if s.{storage.attribute}.rows:", *indented([clear])]
                if storage.own and not storage.keyed
                else [clear]
            )
        loops = self._loops(statement, frame)
        if storage.keyed:
            found = loops.around(lambda: [f"gone.append({loops.levels[0].variable})"])
            return ["gone = []", *found, *self._removed(storage, frame)]
        if loops.levels[0].probe is not None:  # the rows are collected anyway
            return loops.around(lambda: [f"s.{storage.attribute}.remove(number)"], "number")
        found = loops.around(lambda: ["gone.append(number)"], "number")
        apply = [f"s.{storage.attribute}.remove(number)"]
        return ["gone = []", *found, "for number in gone:", *indented(apply)]

    def _removed(self, storage: LocalStorage, frame: Frame) -> list[str]:
        """Remove rows of a keyed table."""
        rows, several = (frame.index(storage, storage.key, part) for part in ("rows", "several"))
        lines = [f"if {several}:", *indented([f"s.{storage.attribute}.remove(row)"])]
        lines += ["else:", *indented([f"del {rows}[{storage.key_of('row')}]"])]
        return ["for row in gone:", *indented(lines)]
