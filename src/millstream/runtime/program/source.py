"""The Python module that a program is compiled to: its functions, constants and tables, while they are generated.

Every function takes `s`, the instance of the aggregate, and the values that it uses of the functions that call it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from millstream.algebra.expression import Expression
from millstream.algebra.program.one_row import one_row_tables
from millstream.algebra.program.program import Program
from millstream.algebra.program.statement import INWINDOW
from millstream.algebra.python.definition import Declaration
from millstream.algebra.schema import Attribute
from millstream.runtime.program import scalars
from millstream.runtime.program.facts import Facts
from millstream.runtime.program.index import NO_BUCKET, Indexed, Order

_HELPERS = (
    scalars.out_of_range, scalars.both, scalars.either, scalars.inverted, scalars.contained, scalars.truncated,
    scalars.narrow, scalars.shortened, scalars.moved, scalars.remainder, scalars.greatest, scalars.least,
    scalars.distinct, scalars.run, scalars.all_hold, scalars.both_used, scalars.either_used,
    scalars.ordered, scalars.limited, scalars.only, scalars.several_rows,
)  # fmt: skip


@dataclass(slots=True)
class LocalStorage:
    """How a table is kept: `attribute` of the instance; a one-row table as an attribute for each column."""

    attribute: str
    columns: tuple[Attribute, ...]
    one_row: bool = False
    own: bool = False
    """True if the program alone fills it: its rows are lists, which may be changed in place."""
    indexes: list[Indexed] = field(default_factory=list)

    def cell(self, position: int) -> str:
        """The value of a column of a one-row table."""
        return f"s.{self.attribute}_{position}"

    @property
    def attributes(self) -> list[str]:
        """The attributes of the instance that hold the table."""
        if self.one_row:
            return [f"{self.attribute}_{position}" for position in range(len(self.columns))]
        return [self.attribute]

    def is_indexed(self, position: int) -> bool:
        """True if an index has this column."""
        return any(position == of.column if isinstance(of, Order) else position in of for of in self.indexes)

    def index(self, of: Indexed) -> int:
        """The position of the index on these columns, or of the one in this order."""
        if of not in self.indexes:
            self.indexes.append(of)
        return self.indexes.index(of)


class Module:
    """The functions, constants and tables generated so far."""

    def __init__(self, program: Program, indexes: Mapping[str, list[Indexed]] | None = None) -> None:
        """`indexes`: those of each table, if they are known."""
        self.program = program
        self.globals: dict[str, Any] = {helper.__name__: helper for helper in _HELPERS} | {
            "NAN": scalars.NAN,
            "NO_BUCKET": NO_BUCKET,
        }
        self.functions: list[str] = []
        self._numbers: dict[str, int] = {}
        self.facts = Facts(program)
        one_row = one_row_tables(program)
        self.tables = {
            table.name: LocalStorage(f"t{position}", table.columns, table.name in one_row, bool(program.initialize))
            for position, table in enumerate(program.tables)
        }
        if program.window:
            names = program.inwindow or tuple(argument.name for argument in program.arguments)
            columns = zip(names, program.arguments, strict=True)
            held = tuple(Attribute(name, argument.type) for name, argument in columns)
            self.tables[INWINDOW] = LocalStorage(INWINDOW, held)
        for name, known in (indexes or {}).items():
            self.tables[name].indexes = known

    def name(self, prefix: str) -> str:
        """A name that no other variable or function has."""
        number = self._numbers[prefix] = self._numbers.get(prefix, 0) + 1
        return f"{prefix}{number}"

    def constant(self, value: Any, prefix: str = "k") -> str:
        name = self.name(prefix)
        self.globals[name] = value
        return name

    def inner(self, aggregate: Program | Declaration) -> str:
        """The name of the class of an aggregate that this program calls."""
        raise NotImplementedError

    def add(self, lines: Iterable[str]) -> None:
        self.functions.append("\n".join(lines))


class Frame:
    """One generated function: the rows that it has bound, and what it takes from the functions around it."""

    def __init__(self, module: Module, outer: Frame | None = None) -> None:
        self.module, self.outer = module, outer
        self.free: dict[str, None] = {}
        """The variables of outer functions that this one takes as parameters."""
        self._rows: dict[str, tuple[str, tuple[str, ...]]] = {}
        self._single: dict[str, LocalStorage] = {}
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

    def index(self, storage: LocalStorage, columns: tuple[int, ...], part: str = "") -> str:
        """A variable with the index of a table on these columns, or with a part of it."""
        at = storage.index(columns)
        name = self.own("_".join(("x", storage.attribute, str(at), part)).rstrip("_"))
        self._indexes[name] = f"{name} = s.{storage.attribute}.indexes[{at}]{f'.{part}' if part else ''}"
        return name

    def rows(self, storage: LocalStorage) -> str:
        """A variable with all rows of a table, as they are when it is read."""
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

    def bind_single(self, alias: str, storage: LocalStorage) -> None:
        self._single[alias] = storage

    def column(self, name: str) -> str:
        """The source of a column named `alias.column`."""
        alias, _, column = name.rpartition(".")
        frame: Frame | None = self
        while frame is not None:
            if alias in frame._single:
                storage = frame._single[alias]
                names = [each.name for each in storage.columns]
                return storage.cell(names.index(column))
            if alias in frame._rows:
                variable, names_ = frame._rows[alias]
                return f"{self.use(variable)}[{names_.index(column)}]"
            frame = frame.outer
        raise KeyError(name)

    def binds(self, alias: str) -> bool:
        return alias in self._rows or alias in self._single
