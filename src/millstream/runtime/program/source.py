"""The Python module that a program is compiled to: its functions, constants and tables, while they are generated.

Every function takes `s`, the instance of the aggregate, and the values that it uses of the functions that call it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import ceil, copysign, floor, isfinite, log
from typing import Any

from millstream.algebra.expression import Expression, Literal
from millstream.algebra.program.fixed import fixed_tables
from millstream.algebra.program.program import Program
from millstream.algebra.program.statement import INWINDOW, Update
from millstream.algebra.python.definition import Declaration
from millstream.algebra.schema import Attribute
from millstream.runtime.program import scalars
from millstream.runtime.program.facts import Facts
from millstream.runtime.program.index import NO_BUCKET
from millstream.runtime.program.ordered import Indexed, Order, Range

_HELPERS = (
    scalars.out_of_range, scalars.both, scalars.either, scalars.inverted, scalars.contained, scalars.truncated,
    scalars.narrow, scalars.shortened, scalars.narrow_real, scalars.shortened_real, scalars.moved, scalars.remainder,
    scalars.greatest, scalars.least, scalars.distinct, scalars.total_of_known, scalars.run, scalars.all_hold,
    scalars.both_used, scalars.either_used, scalars.ordered, scalars.limited, scalars.only, scalars.several_rows,
    scalars.normal,
)  # fmt: skip


@dataclass(slots=True)
class LocalStorage:
    """How a table is kept: `attribute` of the instance; one with a fixed number of rows as an attribute for each of its
    values that may change."""

    attribute: str
    columns: tuple[Attribute, ...]
    fixed: int = 0
    """The number of rows, if it is fixed."""
    own: bool = False
    """True if the program alone fills it: its rows are lists, which may be changed in place."""
    keyed: bool = False
    """True if it is a `KeyedTable`, the same as its only index."""
    indexes: list[Indexed] = field(default_factory=list)
    expected: list[Indexed] = field(default_factory=list)
    """The indexes that it had when the program was generated before."""
    constants: dict[tuple[int, int], int] = field(default_factory=dict)
    """The values of a fixed table that never change, by row and column."""
    assigned: set[int] = field(default_factory=set)
    """The columns that an UPDATE changes."""
    scanned: bool = False
    """True if rows are used in the order of the table, or by number."""

    def cell(self, row: int, position: int) -> str:
        """The attribute of a value of a fixed table."""
        return f"{self.attribute}_{position}" if self.fixed == 1 else f"{self.attribute}_{row}_{position}"

    @property
    def cells(self) -> list[list[str]]:
        """The attributes of a fixed table, by row."""
        return [[self.cell(row, at) for at in range(len(self.columns))] for row in range(self.fixed)]

    def is_indexed(self, position: int) -> bool:
        """True if an index has this column."""
        return any(position in columns_of(of) for of in (*self.expected, *self.indexes))

    def sorted_by(self, column: int) -> Order | None:
        """An order by this column that an index has."""
        orders = (of for of in (*self.expected, *self.indexes) if isinstance(of, Order))
        return next((of for of in orders if of.column == column), None)

    def ranges_of(self, key: tuple[int, ...]) -> Range | None:
        """A sorted index of the rows of a key."""
        ranges = (of for of in (*self.expected, *self.indexes) if isinstance(of, Range))
        return next((of for of in ranges if of.key == key), None)

    def index(self, of: Indexed) -> int:
        """The position of the index on these columns, or of the one in this order."""
        if of not in self.indexes:
            self.indexes.append(of)
        return self.indexes.index(of)

    @property
    def key(self) -> tuple[int, ...]:
        """The columns of the only index; none if there are others, or if it is a sorted one."""
        (columns,) = self.indexes if len(self.indexes) == 1 else ((),)
        return columns if isinstance(columns, tuple) else ()

    def key_of(self, row: str) -> str:
        """The source of the key of a row of a keyed table."""
        parts = [f"{row}[{position}]" for position in self.key]
        return parts[0] if len(parts) == 1 else f"({', '.join(parts)})"


def columns_of(index: Indexed) -> tuple[int, ...]:
    """The columns whose values an index has."""
    match index:
        case Order(column=column):
            return (column,)
        case Range(key=key, column=column):
            return (*key, column)
    return index


class Module(ABC):
    """The functions, constants and tables generated so far."""

    def __init__(self, program: Program, before: Mapping[str, LocalStorage] | None = None) -> None:
        """`before`: how the tables are used, if it is known."""
        self.program = program
        self.globals: dict[str, Any] = {helper.__name__: helper for helper in _HELPERS} | {
            "NAN": scalars.NAN,
            **{function.__name__: function for function in (log, ceil, copysign, floor, isfinite)},
            "NO_BUCKET": NO_BUCKET,
        }
        self.functions: list[str] = []
        self._numbers: dict[str, int] = {}
        self.facts = Facts(program)
        self.tables = {
            table.name: LocalStorage(f"t{position}", table.columns, own=bool(program.initialize))
            for position, table in enumerate(program.tables)
        }
        for update in (each for each in program.statements if isinstance(each, Update)):
            self.tables[update.table].assigned.update(position for position, _ in update.assignments)
        for name, insert in fixed_tables(program).items():
            storage, rows = self.tables[name], [query.items for query in insert.queries]
            storage.fixed = len(rows)
            storage.constants = {
                (row, at): item.value
                for row, items in enumerate(rows)
                for at, item in enumerate(items)
                if at not in storage.assigned and isinstance(item, Literal) and type(item.value) is int
            }
        if program.window:
            names = program.inwindow or tuple(argument.name for argument in program.arguments)
            columns = zip(names, program.arguments, strict=True)
            held = tuple(Attribute(name, argument.type) for name, argument in columns)
            self.tables[INWINDOW] = LocalStorage(INWINDOW, held)
        for name, known in (before or {}).items():
            self.tables[name].expected = known.indexes
            if self._is_keyed(name, known):
                self.tables[name].keyed, self.tables[name].indexes = True, [*known.indexes]

    def _is_keyed(self, name: str, used: LocalStorage) -> bool:
        """True if the rows are only found by one key, which is never NULL and does not change."""
        plain = used.own and not used.fixed and not used.scanned and bool(used.key)
        return plain and not any(at in used.assigned or self.facts.of_column(name, at).nullable for at in used.key)

    def name(self, prefix: str) -> str:
        """A name that no other variable or function has."""
        number = self._numbers[prefix] = self._numbers.get(prefix, 0) + 1
        return f"{prefix}{number}"

    def constant(self, value: Any, prefix: str = "k") -> str:
        name = self.name(prefix)
        self.globals[name] = value
        return name

    @abstractmethod
    def inner(self, aggregate: Program | Declaration) -> str:
        """The name of the class of an aggregate that this program calls."""

    def add(self, lines: Iterable[str]) -> None:
        self.functions.append("\n".join(lines))


@dataclass(frozen=True, slots=True)
class Code:
    """Source of a value. `nullable`: it may be None. `atom`: it may be repeated at no cost."""

    text: str
    nullable: bool = True
    atom: bool = False


class Frame:
    """One generated function: the rows that it has bound, and what it takes from the functions around it."""

    def __init__(self, module: Module, outer: Frame | None = None) -> None:
        self.module, self.outer = module, outer
        self.free: dict[str, None] = {}
        """The variables of outer functions that this one takes as parameters."""
        self._rows: dict[str, tuple[str, tuple[str, ...]]] = {}
        self._cells: dict[str, tuple[LocalStorage, int]] = {}
        self._values: dict[str, str] = {}
        self._own: set[str] = set()
        self.groups: list[str] = []
        self.calls: list[str] = []
        self._indexes: dict[str, str] = {}
        self._keys: dict[tuple[str, int], str] = {}
        self._invariants: dict[Expression, tuple[str, str]] = {}

    # --- variables ------------------------------------------------------------------------------------------------

    def own(self, name: str) -> str:
        """Declare a parameter or variable of this function."""
        self._own.add(name)
        return name

    def use(self, name: str) -> str:
        """Use a variable of this function, or of one around it, which then passes it."""
        if name not in self._own:
            self.free[name] = None
        return name

    def temporary(self) -> str:
        return self.own(self.module.name("v"))

    def index(self, storage: LocalStorage, of: Indexed, part: str = "") -> str:
        """A variable with an index of a table, or with a part of it."""
        at = storage.index(of)
        name = self.own("_".join(("x", storage.attribute, str(at), part)).rstrip("_"))
        index = f"s.{storage.attribute}" if storage.keyed else f"s.{storage.attribute}.indexes[{at}]"
        self._indexes[name] = f"{name} = {index}{f'.{part}' if part else ''}"
        return name

    def rows(self, storage: LocalStorage) -> str:
        """A variable with all rows of a table, as they are when it is read."""
        storage.scanned = True
        name = self.own(f"x_{storage.attribute}")
        self._indexes[name] = f"{name} = s.{storage.attribute}.rows.values()"
        return name

    def keep_keys(self, column: tuple[str, int]) -> str:
        """A variable for the different values of a column of a table."""
        name = self._keys[column] = self.own(self.module.name("keys"))
        return name

    def known_keys(self, column: tuple[str, int]) -> str | None:
        """The variable that has them, of this function or of one around it."""
        frame: Frame | None = self
        while frame is not None:
            if column in frame._keys:
                return self.use(frame._keys[column])
            frame = frame.outer
        return None

    def drop_keys(self, table: str, columns: Iterable[int]) -> None:
        """The values of these columns have changed."""
        for column in columns:
            self._keys.pop((table, column), None)

    def invariant(self, node: Expression, text: str) -> str:
        """A variable with a value that is the same throughout the function."""
        name, _ = self._invariants.setdefault(node, (self.temporary(), text))
        return name

    @property
    def prelude(self) -> list[str]:
        """The lines that the function begins with."""
        return [*self._indexes.values(), *(f"{name} = {text}" for name, text in self._invariants.values())]

    # --- rows -----------------------------------------------------------------------------------------------------

    def bind_row(self, alias: str, variable: str, columns: tuple[str, ...]) -> None:
        self._rows[alias] = self.own(variable), columns

    def bind_cells(self, alias: str, storage: LocalStorage, row: int = 0) -> None:
        """Bind a row of a fixed table."""
        self._cells[alias] = storage, row

    def has_one_row(self, alias: str) -> bool:
        """True if it is bound to the row of a table that has one row."""
        frame: Frame | None = self
        while frame is not None:
            if frame.binds(alias):
                return alias in frame._cells and frame._cells[alias][0].fixed == 1
            frame = frame.outer
        return False

    def row_of(self, alias: str) -> int:
        """The row of a fixed table that is bound."""
        return self._cells[alias][1]

    def column(self, name: str) -> str:
        """The source of a column named `alias.column`."""
        alias, _, column = name.rpartition(".")
        frame: Frame | None = self
        while frame is not None:
            if alias in frame._cells:
                storage, row = frame._cells[alias]
                names = [each.name for each in storage.columns]
                return self.cell(storage, row, names.index(column))
            if alias in frame._rows:
                variable, names_ = frame._rows[alias]
                return f"{self.use(variable)}[{names_.index(column)}]"
            frame = frame.outer
        raise KeyError(name)

    def binds(self, alias: str) -> bool:
        return alias in self._rows or alias in self._cells

    # --- values of fixed tables -----------------------------------------------------------------------------------

    def cell(self, storage: LocalStorage, row: int, position: int) -> str:
        """The source of a value of a fixed table: a constant, a variable that has it, or the attribute."""
        if (row, position) in storage.constants:
            return f"({storage.constants[row, position]})"
        attribute, frame = storage.cell(row, position), self
        while frame.outer is not None:
            frame = frame.outer
        return self.use(frame._values[attribute]) if attribute in frame._values else f"s.{attribute}"

    def cells(self, storage: LocalStorage, row: int) -> str:
        """A row of a fixed table."""
        return f"({', '.join(self.cell(storage, row, at) for at in range(len(storage.columns)))},)"

    def assigned(self, storage: LocalStorage, row: int, values: Mapping[int, str], *, always: bool) -> str:
        """The line that assigns values of a fixed table. A variable has those that are assigned whatever the tables
        hold."""
        attributes = [storage.cell(row, position) for position in values]
        if always:
            self._values |= {attribute: self.own(f"c{attribute}") for attribute in attributes}
        targets = [f"s.{attribute}" for attribute in attributes]
        chained = [", ".join(targets)]
        if all(attribute in self._values for attribute in attributes):
            chained.append(", ".join(self._values[attribute] for attribute in attributes))
        else:
            for attribute in attributes:
                self._values.pop(attribute, None)
        return " = ".join([*chained, ", ".join(values.values())])
