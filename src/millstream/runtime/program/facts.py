"""What is known of the values of local tables: which columns are never NULL, and the range of each integer.

A column has the values that the statements of the program give it, so its fact is the least one that holds for all of
them. It is found by repetition: from no rows at all, each round adds the values that the statements make of the facts
of the round before. A bound that still moves after some rounds is taken to be that of the type. A counter, to which an
UPDATE adds a small number, never gets there.

Tables of a program without INITIALIZE are filled by others, and nothing is known of them.

>>> n = Binary(Type.BIGINT, "%", Literal(Type.BIGINT, 7), Literal(Type.BIGINT, 5))
>>> Facts(Program("f", (), (), (), (), ())).of(Binary(Type.BIGINT, "*", n, Literal(Type.BIGINT, 3)))
Fact(nullable=False, low=0, high=12)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce

from millstream.algebra.expression import Binary, Call, Case, Cast, Column, Expression, Literal, PythonCall, Unary
from millstream.algebra.program.expression import (
    Argument,
    CallValue,
    Exists,
    Fitting,
    GroupValue,
    InQuery,
    ScalarQuery,
)
from millstream.algebra.program.fixed import one_row_tables
from millstream.algebra.program.program import Program
from millstream.algebra.program.query import Call as AggregateOf
from millstream.algebra.program.query import Query
from millstream.algebra.program.statement import INWINDOW, RETURN, Insert, Statement, Update, queries
from millstream.algebra.ranges import ANYTHING, LIMITS, Range, Ranges, can_overflow, of_operator
from millstream.algebra.types import Type

LOW, HIGH = -(1 << 63), (1 << 63) - 1
_WHOLE = (Type.INT, Type.BIGINT)
_STEP, _FAR = 64, 1 << 59
"""A column that small steps are added to needs 1 << 53 of them to get this far; so do all its rows together."""
_FURTHEST = 4 * _FAR
"""Where a counter may begin, which another counter may have reached."""
_PATIENCE = 3
"""Rounds after which a bound that still moves is dropped."""


@dataclass(frozen=True, slots=True)
class Fact:
    """`low` and `high` bound the values of integers, those of other types not at all."""

    nullable: bool = True
    low: int = LOW
    high: int = HIGH

    def joined(self, other: Fact) -> Fact:
        """What holds for the values of both."""
        return Fact(self.nullable or other.nullable, min(self.low, other.low), max(self.high, other.high))

    def widened(self, before: Fact | None) -> Fact:
        """Without the bounds that have moved."""
        if before is None:
            return self
        return Fact(
            self.nullable, LOW if self.low < before.low else self.low, HIGH if self.high > before.high else self.high
        )


NOTHING = Fact()
"""Nothing is known."""
_Columns = dict[tuple[str, int], Fact]


class Facts:
    """The facts of one program."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._places = dict(_places(program))
        self._one_row = one_row_tables(program)
        self._columns: _Columns = {}
        self._query: Query | None = None
        """The query with aggregates whose expressions are looked at."""
        self._begun: _Columns = {}
        """The facts of the columns without the steps that are added to them."""
        if program.initialize:
            self._find()

    def _find(self) -> None:
        rounds = 0
        while (found := self._next(widens=rounds >= _PATIENCE)) != self._columns:
            self._columns, rounds = found, rounds + 1

    def _next(self, *, widens: bool) -> _Columns:
        found = dict(self._columns)
        for statement, place, value in _values(self._program):
            if self._reads_no_rows(value):
                continue
            before, fact = found.get(place), self.of(value)
            step = self._step(place, value) if isinstance(statement, Update) else 0
            if step:
                fact = self._counted(place, fact, step)
            else:
                begun = self._begun.get(place)
                self._begun[place] = fact if begun is None else begun.joined(fact)
            joined = fact if before is None else before.joined(fact)
            found[place] = joined.widened(before) if widens else joined
        return found

    def _step(self, place: tuple[str, int], value: Expression) -> int:
        """The small number that an UPDATE adds to a column, 0 if it does something else."""
        match value:
            case Binary(op="+" | "-" as op, left=Column(name=name), right=Literal(value=int(step))):
                small = self._places.get(name) == place and abs(step) <= _STEP
                return (step if op == "+" else -step) if small else 0
        return 0

    def _counted(self, place: tuple[str, int], fact: Fact, step: int) -> Fact:
        """A column that begins near zero stays far from the bounds of its type, however many tuples come."""
        begun = self._begun.get(place)
        if begun is None or begun.low < -_FURTHEST or begun.high > _FURTHEST:
            return fact
        return Fact(fact.nullable, begun.low - (_FAR if step < 0 else 0), begun.high + (_FAR if step > 0 else 0))

    def _reads_no_rows(self, value: Expression) -> bool:
        """True if the value uses a column of which no values are known yet."""
        if isinstance(value, Column):
            place = self._places.get(value.name)
            return place is not None and place not in self._columns
        if isinstance(value, ScalarQuery) and self._is_one_value(value.query):
            return self._reads_no_rows(value.query.items[0])
        return any(map(self._reads_no_rows, value.children()))

    def fits(self, node: Expression) -> bool:
        """True if the operator itself has only results that fit its type."""
        return not can_overflow(node) or not any(self.exceeds(node))

    @contextmanager
    def within(self, query: Query) -> Iterator[None]:
        """While the expressions of a query are looked at."""
        outside, self._query = self._query, query
        yield
        self._query = outside

    def is_safe(self, node: Expression) -> bool:
        """True if the value can be computed for any row, also where it is not asked for: it never fails and calls no
        code."""
        match node:
            case Exists() | InQuery() | Fitting() | PythonCall():
                return False
            case ScalarQuery(query=query):
                return self._is_one_value(query) and self.is_safe(query.items[0])
        return self.fits(node) and all(map(self.is_safe, node.children()))

    def exceeds(self, node: Expression) -> tuple[bool, bool]:
        """True if an operator on BIGINTs may have a result below the least value, and above the greatest one."""
        low, high = self._results(node)
        return node.type is not Type.BIGINT or low < LOW, node.type is not Type.BIGINT or high > HIGH

    def _results(self, node: Expression) -> Range:
        """The range of the results of an operator on integers, whether or not they fit."""
        known = map(self.of, node.children())
        return of_operator(node, [(each.low, each.high) for each in known])

    def of_column(self, table: str, position: int) -> Fact:
        """What is known of the values of a column."""
        return self._columns.get((table, position), NOTHING)

    def of(self, node: Expression) -> Fact:
        """What is known of the value of an expression."""
        match node:
            case Literal(value=bool()):
                return Fact(nullable=False)
            case Literal(value=int(value)):
                return Fact(False, value, value)
            case Literal(value=value):
                return Fact(nullable=value is None)
            case Argument():
                return Fact(not self._program.ignore_nulls)
            case Column(name=name):
                place = self._places.get(name)
                return NOTHING if place is None else self._columns.get(place, NOTHING)
            case ScalarQuery(query=query) if self._is_one_value(query):
                return self.of(query.items[0])
            case ScalarQuery(query=query) if self._is_one_group(query):
                with self.within(query):
                    return self.of(query.items[0])
            case CallValue(position=position) if self._query is not None:
                return self._of_call(self._query, self._query.calls[position])
            case GroupValue(position=position) if self._query is not None:
                return self.of(self._query.groups[position])
            case Exists() | Unary(op="IS NULL" | "IS NOT NULL"):
                return Fact(nullable=False)
            case Unary(op="-", operand=operand) if node.type is Type.BIGINT:
                return self._fitting(node, self.of(operand).nullable)
            case Binary():
                return self._of_binary(node)
            case Case(branches=branches, otherwise=otherwise):
                values = [value for _, value in branches]
                return self._any_of([*values, Literal(Type.NULL, None) if otherwise is None else otherwise])
            case Call(function="COALESCE" | "GREATEST" | "LEAST" as function, arguments=arguments):
                return self._any_known(function, list(map(self.of, arguments)))
            case Cast(operand=operand) | Fitting(operand=operand) if operand.type is node.type:
                return self.of(operand)
            case Call(function="SIGN" | "ABS" | "CEIL" | "FLOOR" as function, arguments=(operand,)):
                return self._of_function(function, self.of(operand), node)
            case Cast(type=Type.BIGINT, operand=operand) if operand.type is Type.DOUBLE:
                low, high = _Doubles(self).of(node)
                return Fact(True, int(low), int(high))
            case Cast(type=Type.BIGINT, operand=operand) if operand.type is Type.INT:
                inner, (least, most) = self.of(operand), LIMITS[Type.INT]
                return Fact(inner.nullable, max(inner.low, least), min(inner.high, most))
            case Cast(type=Type.DOUBLE, operand=operand) if operand.type in _WHOLE:
                return Fact(self.of(operand).nullable)
        return NOTHING

    @staticmethod
    def _any_known(function: str, arguments: list[Fact]) -> Fact:
        """What is known of one of several values, which is NULL only if all are: it is not beyond any that is not NULL,
        if it is the greatest or the least."""
        made, known = reduce(Fact.joined, arguments), [each for each in arguments if not each.nullable]
        low = max((each.low for each in known), default=LOW) if function == "GREATEST" else LOW
        high = min((each.high for each in known), default=HIGH) if function == "LEAST" else HIGH
        return Fact(not known, max(made.low, low), min(made.high, high))

    def _of_function(self, function: str, known: Fact, node: Expression) -> Fact:
        if node.type is not Type.BIGINT:
            return Fact(known.nullable)
        return self._fitting(node, known.nullable) if function in ("SIGN", "ABS") else NOTHING

    def _fitting(self, node: Expression, nullable: bool) -> Fact:
        """What is known of the results of an operator that fit."""
        low, high = self._results(node)
        return Fact(nullable, int(max(low, LOW)), int(min(high, HIGH)))

    def _of_call(self, query: Query, call: AggregateOf) -> Fact:
        """What is known of an aggregate of a query."""
        if call.by is not None or (call.arguments and self._reads_no_rows(call.arguments[0])):
            return NOTHING if call.by is not None else Fact(True, 0, 0)
        if call.function == "COUNT":
            return Fact(False, 0, _FAR)
        (argument,) = call.arguments
        known = self.of(argument)
        nullable = known.nullable or not query.groups
        if call.function in ("MIN", "MAX"):
            return Fact(nullable, known.low, known.high)
        if call.function == "SUM" and isinstance(argument, Column) and len(query.sources) == 1:
            begun = self._begun.get(self._places.get(argument.name, ("", 0)))
            counts = begun is not None and begun.low >= -_STEP and begun.high <= _STEP
            if counts and max(-known.low, known.high) <= _FURTHEST:
                return Fact(nullable, -_FAR, _FAR)
        return Fact(nullable)

    def _is_one_group(self, query: Query) -> bool:
        """True if the query is one row of aggregates."""
        cut = query.limit is not None or query.offset is not None or query.having is not None
        return query.aggregated and not (query.groups or cut or query.members)

    def _is_one_value(self, query: Query) -> bool:
        """True if the query is one expression over tables that have one row each."""
        plain = query == Query(query.sources, query.items)
        return plain and all(source.relation in self._one_row and not source.outer for source in query.sources)

    def _any_of(self, values: Sequence[Expression]) -> Fact:
        return reduce(Fact.joined, map(self.of, values))

    def _of_binary(self, node: Binary) -> Fact:
        left, right = self.of(node.left), self.of(node.right)
        if node.type is Type.DOUBLE:
            divides = node.op == "/" and isinstance(node.right, Literal) and bool(node.right.value)
            return Fact(left.nullable or right.nullable) if divides or node.op in ("+", "-", "*") else NOTHING
        if node.type not in _WHOLE or node.left.type not in _WHOLE or node.right.type not in _WHOLE:
            return NOTHING
        if node.op == "%":
            if right.nullable or right.low <= 0:
                return NOTHING
            low = 0 if left.low >= 0 else max(left.low, 1 - right.high)
            return Fact(left.nullable, low, 0 if left.high <= 0 else min(left.high, right.high - 1))
        if node.op not in ("+", "-", "*"):
            return NOTHING
        return self._fitting(node, left.nullable or right.nullable)


class _Doubles(Ranges):
    """The ranges of DOUBLEs, of which some are made of integers."""

    def __init__(self, facts: Facts) -> None:
        super().__init__(lambda _: ANYTHING)
        self._facts = facts

    def of(self, node: Expression) -> Range:
        if node.type in _WHOLE and not (isinstance(node, Cast) and node.operand.type is Type.DOUBLE):
            known = self._facts.of(node)
            return known.low, known.high
        return super().of(node)


def _values(program: Program) -> Iterator[tuple[Statement, tuple[str, int], Expression]]:
    """The expressions whose values the columns of tables get, and their statements."""
    for statement in program.statements:
        if isinstance(statement, Insert) and statement.table != RETURN:
            for query in statement.queries:
                for position, item in enumerate(query.items):
                    yield statement, (statement.table, position), item
        elif isinstance(statement, Update):
            for position, value in statement.assignments:
                yield statement, (statement.table, position), value


def _places(program: Program) -> Iterator[tuple[str, tuple[str, int]]]:
    """Tables and positions of the columns that expressions name, unless a join may add NULLs to them."""
    for table in program.tables:
        for position, column in enumerate(table.columns):
            yield f"{table.name}.{column.name}", (table.name, position)
    for statement in program.statements:
        for query in queries(statement):
            for source in query.sources:
                if isinstance(source.relation, str) and source.relation != INWINDOW and not source.outer:
                    for position, name in enumerate(source.columns):
                        yield f"{source.alias}.{name}", (source.relation, position)
