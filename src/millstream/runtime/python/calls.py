"""The Python functions in a condition and in items, computed as columns before everything else.

A function is called only for rows that use its result:

| in | it is called for |
|---|---|
| a condition of several parts | rows that satisfy the parts without Python functions, and those with one before it |
| an item, beside a condition | rows that satisfy the condition |
| `a AND b`, `a OR b` | rows that the parts without Python functions, and those before it, leave undecided |
| `CASE`, `IF`, `COALESCE` | rows that need its branch |
| the argument of another function | rows for which that one is called |

The same call is computed once for each set of rows. What remains are expressions over plain columns, so that all of
Polars' speed is kept for them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from typing import Any

import polars as pl

from millstream.algebra.aggregate.fold import FoldCall
from millstream.algebra.expression import (
    Binary,
    Call,
    Case,
    CodeCall,
    Column,
    Expression,
    Literal,
    PythonCall,
    Unary,
    calls_code,
    conjunction,
    conjuncts,
)
from millstream.algebra.ranges import OVERFLOWS
from millstream.algebra.types import Type
from millstream.errors import PlanError
from millstream.runtime.expression.checks import Checks
from millstream.runtime.expression.evaluate import predicate, to_polars
from millstream.runtime.python.function import apply

WHERE = "WHERE"
_TRUE, _FALSE = Literal(Type.BOOLEAN, True), Literal(Type.BOOLEAN, False)


@dataclass(frozen=True, slots=True)
class Computed(Column):
    """A column that holds the results of a call."""

    text: str

    def __str__(self) -> str:
        return self.text


class PythonCalls:
    """`condition` and `items` are those given, over columns of the page and computed ones. `of_items`: some items call
    Python functions, so that rows are to be filtered before they are computed."""

    def __init__(self, condition: Expression | None, items: Iterable[Expression] = ()) -> None:
        self._steps: list[_Step] = []
        self._known: dict[tuple[CodeCall, Expression | None], Computed] = {}
        self._number = 0
        given, always = tuple(items), list[Expression | None]()
        self.condition = conjunction(self._decided(WHERE, conjuncts(condition), None, always))
        of_condition = len(self._steps)
        # Rows that satisfy the condition have the results of the calls that all its parts have needed.
        self._known |= {(call, None): column for (call, used), column in self._known.items() if used in always}
        self.items = tuple(self._replaced(item, None) for item in given)
        self._of_condition, self._of_items = self._steps[:of_condition], self._steps[of_condition:]

    def __bool__(self) -> bool:
        return bool(self._steps)

    @property
    def of_items(self) -> bool:
        return bool(self._of_items)

    def for_condition(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Return the rows with the columns that the condition needs."""
        return _computed(rows, self._of_condition)

    def for_items(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Return rows that satisfy the condition, and have its columns, with the columns that the items need."""
        return _computed(rows, self._of_items)

    # --- finding the calls, and the rows that use them ---------------------------------------------------------------

    def _replaced(self, node: Expression, used: Expression | None) -> Expression:
        """Return the expression with computed columns in place of calls; `used`: for which rows (None: for all)."""
        if not calls_code(node):
            return node
        match node:
            case CodeCall():
                call = node.with_arguments(tuple(self._replaced(part, used) for part in node.children()))
                return self._column(call, used)
            case Binary(op="AND" | "OR" as op):
                parts = self._decided(op, tuple(_operands(node, op)), used)
                return _joined(op, parts)
            case Case(type=type_, branches=branches, otherwise=otherwise):
                made: list[tuple[Expression, Expression]] = []
                for condition, value in branches:
                    tested = self._replaced(condition, used)
                    made.append((tested, self._replaced(value, _and(used, tested))))
                    used = _and(used, Unary(Type.BOOLEAN, "NOT", _known(tested)))
                return Case(type_, tuple(made), None if otherwise is None else self._replaced(otherwise, used))
            case Call(type=type_, function="COALESCE", arguments=arguments):
                values: list[Expression] = []
                for argument in arguments:
                    values.append(self._replaced(argument, used))
                    used = _and(used, Unary(Type.BOOLEAN, "IS NULL", values[-1]))
                return Call(type_, "COALESCE", tuple(values))
            case Call(function=name) if name == OVERFLOWS:
                raise PlanError("M3072", "a Python function in a value that may not fit its type is not available here")
        return type(node)(*(self._visited(getattr(node, field.name), used) for field in fields(node)))

    def _visited(self, value: Any, used: Expression | None) -> Any:
        if isinstance(value, Expression):
            return self._replaced(value, used)
        return tuple(self._visited(item, used) for item in value) if isinstance(value, tuple) else value

    def _decided(
        self, op: str, parts: Sequence[Expression], used: Expression | None, uses: list[Expression | None] | None = None
    ) -> tuple[Expression, ...]:
        """Return the parts of AND or OR, those without calls first; others are used where none before decides. Add to
        `uses` where each of them is used."""
        calling = [part for part in parts if calls_code(part)]
        if not calling:
            return tuple(parts)
        made = [part for part in parts if part not in calling]
        for part in made:
            used = _and(used, _undecided(op, part))
        for part in calling:
            if uses is not None:
                uses.append(used)
            made.append(self._replaced(part, used))
            used = _and(used, _undecided(op, made[-1]))
        return tuple(made)

    def _column(self, call: CodeCall, used: Expression | None) -> Computed:
        if (call, used) not in self._known:
            self._number += 1
            column = Computed(call.type, f"__python_{self._number}", str(call))
            self._known[call, used] = column
            self._steps.append(_Step(column, call, used))
        return self._known[call, used]


def _operands(node: Expression, op: str) -> list[Expression]:
    if isinstance(node, Binary) and node.op == op:
        return [*_operands(node.left, op), *_operands(node.right, op)]
    return [node]


def _joined(op: str, parts: Sequence[Expression]) -> Expression:
    made = parts[0]
    for part in parts[1:]:
        made = Binary(Type.BOOLEAN, op, made, part)
    return made


def _and(left: Expression | None, right: Expression) -> Expression:
    return right if left is None else Binary(Type.BOOLEAN, "AND", left, right)


def _known(condition: Expression) -> Expression:
    """The condition with false for NULL."""
    return Call(Type.BOOLEAN, "COALESCE", (condition, _FALSE))


def _undecided(op: str, part: Expression) -> Expression:
    """Where a part does not decide AND (it is not false), OR (it is not true) or a condition (it is true)."""
    if op == WHERE:
        return part
    if op == "AND":
        return Call(Type.BOOLEAN, "COALESCE", (part, _TRUE))
    return Unary(Type.BOOLEAN, "NOT", _known(part))


# --- computing -------------------------------------------------------------------------------------------------------


class _Step:
    """Computes one column."""

    def __init__(self, column: Computed, call: CodeCall, used: Expression | None) -> None:
        self._name, self._type, self._call = column.name, call.type, call
        arguments = tuple(call.children())
        self._used = None if used is None else predicate(used)
        self._checks = Checks(used, arguments)
        self._constant = not call.columns()
        self._arguments = [to_polars(argument).alias(f"__argument_{at}") for at, argument in enumerate(arguments)]

    def add(self, rows: pl.DataFrame) -> pl.DataFrame:
        if not rows.height:
            return rows.with_columns(pl.lit(None, dtype=self._type.polars).alias(self._name))
        mask = None if self._used is None else self._mask(rows, self._used)
        self._checks.verify(rows)
        if mask is None or mask.all():
            return rows.with_columns(self._results(rows).alias(self._name))
        chosen = rows.filter(mask)
        results = self._results(chosen) if chosen.height else pl.Series([], dtype=self._type.polars)
        places = pl.select(pl.when(mask).then(mask.cum_sum() - 1)).to_series()
        return rows.with_columns(results.gather(places).alias(self._name))

    def _mask(self, rows: pl.DataFrame, used: pl.Expr) -> pl.Series:
        return rows.with_columns(used.fill_null(False).alias(self._name)).get_column(self._name)

    def _results(self, rows: pl.DataFrame) -> pl.Series:
        needed = rows.head(1) if self._constant else rows
        given = needed.with_columns(self._arguments)
        arguments = [given.get_column(argument.meta.output_name()).alias("") for argument in self._arguments]
        found = _called(self._call, arguments, needed.height)
        return found if not self._constant else found.new_from_index(0, rows.height)


def _called(call: CodeCall, arguments: Sequence[pl.Series], height: int) -> pl.Series:
    if isinstance(call, PythonCall):
        return apply(call.function, arguments, height, call.type)
    from millstream.runtime.program.grouped import fold_column

    assert isinstance(call, FoldCall)
    return fold_column(call, arguments)


def _computed(rows: pl.DataFrame, steps: Sequence[_Step]) -> pl.DataFrame:
    for step in steps:
        rows = step.add(rows)
    return rows
