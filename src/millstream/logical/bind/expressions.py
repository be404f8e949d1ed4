"""Binds expressions: resolves names, checks types, makes casts explicit."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Protocol

from millstream.algebra.aggregate import functions as aggregates
from millstream.algebra.expression import Case, Expression, InList, Literal
from millstream.algebra.type_names import type_named
from millstream.algebra.types import Type
from millstream.errors import BindError, PlanError
from millstream.lang import ast
from millstream.lang.aggregate.ast import UserCall
from millstream.lang.python_function import PythonFunction
from millstream.logical.bind.coercion import cast, castable, literal_type, read_literal, unify
from millstream.logical.bind.functions import call, check_known, extract
from millstream.logical.bind.operators import binary, boolean, unary
from millstream.logical.bind.python_functions import python_call

Hook = Callable[[ast.Expr], Expression | None]
"""Binds a node other than by the scope; returns None for the default."""


class Names(Protocol):
    """Resolves the names of columns."""

    def resolve(self, name: ast.Name, /) -> Expression: ...


class ExpressionBinder:
    """Binds expressions over one scope. `hook` sees every node first; `where` names the clause in errors."""

    def __init__(self, scope: Names, where: str, hook: Hook | None = None) -> None:
        self.scope = scope
        self.where = where
        self._hook = hook

    def bind(self, node: ast.Expr) -> Expression:
        with node.placing():
            bound = self._hook(node) if self._hook is not None else None
            return self.unhooked(node) if bound is None else bound

    def condition(self, node: ast.Expr) -> Expression:
        """Bind a predicate of the clause."""
        with node.placing():
            return boolean(self.bind(node), self.where)

    def unhooked(self, node: ast.Expr) -> Expression:
        """Bind a node without asking the hook about the node itself."""
        match node:
            case ast.Name():
                return self.scope.resolve(node)
            case ast.Constant():
                return Literal(literal_type(node.value), node.value)
            case ast.TypedConstant():
                return read_literal(node.text, type_named(node.type_name))
            case ast.Duration():
                return _interval(node)
            case ast.Binary():
                if self.where in ("WHERE", "HAVING", "ON"):
                    _check_null(node)
                return binary(node.op, self.bind(node.left), self.bind(node.right))
            case ast.Unary():
                return unary(node.op, self.bind(node.operand))
            case ast.Between():
                operand = self.bind(node.operand)
                low, high = binary(">=", operand, self.bind(node.low)), binary("<=", operand, self.bind(node.high))
                return binary("AND", low, high)
            case ast.InList():
                return self._in_list(node)
            case ast.Case():
                return self._case(node)
            case ast.Cast():
                operand = self.bind(node.operand)
                with node.type_name.placing():
                    return _explicit_cast(operand, type_named(node.type_name.name))
            case ast.Extract():
                return extract(node.part, self.bind(node.operand))
            case ast.Function():
                return self._function(node)
            case ast.SequenceTest():
                hint = "Join it to the other conditions by AND: WHERE SEQ(a, b) MODE RECENT AND a.k = b.k"
                raise PlanError("M3012", "SEQ is allowed only in WHERE, not inside another expression", hint=hint)
        raise BindError("M2014", f"{type(node).__name__.lower()} is not allowed in {self.where}")

    def _in_list(self, node: ast.InList) -> Expression:
        operand = self.bind(node.operand)
        options = [self.bind(option) for option in node.options]
        for option in options:
            binary("=", operand, option)  # raises if they cannot be compared
        _, (operand, *options) = unify([operand, *options], "IN")
        return InList(Type.BOOLEAN, operand, tuple(options))

    def _case(self, node: ast.Case) -> Expression:
        operand = None if node.operand is None else self.bind(node.operand)
        tests = [self.bind(test) for test, _ in node.branches]
        conditions = [boolean(t, "WHEN") if operand is None else binary("=", operand, t) for t in tests]
        values = [self.bind(value) for _, value in node.branches]
        if node.otherwise is not None:
            values.append(self.bind(node.otherwise))
        type_, values = unify(values, "CASE")
        otherwise = values.pop() if node.otherwise is not None else None
        return Case(type_, tuple(zip(conditions, values, strict=True)), otherwise)

    def _function(self, node: ast.Function) -> Expression:
        if node.over is not None:
            hint = "Compute it in the select list of a subquery in FROM."
            raise PlanError("M3054", f"a running aggregate is not allowed in {self.where}", hint=hint)
        if isinstance(node, UserCall) or is_built_in_aggregate(node):
            hint = "Use HAVING." if self.where == "WHERE" else "Compute it in a subquery in FROM."
            raise PlanError("M3013", f"{node.name.upper()} is an aggregate, not allowed in {self.where}", hint=hint)
        if node.star or node.distinct or node.within is not None or node.filter is not None:
            raise BindError("M2009", f"{node.name.upper()} is not an aggregate")
        if isinstance(node, PythonFunction):
            return python_call(node, [self.bind(argument) for argument in node.arguments])
        check_known(node.name)
        return call(node.name, [self.bind(argument) for argument in node.arguments])


_COMPARISONS = {"=": "IS NULL", "<>": "IS NOT NULL", "!=": "IS NOT NULL"}


def _check_null(node: ast.Binary) -> None:
    """Refuse a condition that compares with the word NULL, which holds for no row."""
    for side, other in ((node.right, node.left), (node.left, node.right)):
        if node.op in _COMPARISONS and side == ast.Constant(None):
            test = _COMPARISONS[node.op]
            hint = f"{other if isinstance(other, ast.Name) else 'x'} {test}"
            raise BindError("M2006", f"'{node.op} NULL' is never true", hint=hint, **node.place)


def _interval(node: ast.Duration) -> Literal:
    micros = node.micros
    if micros.denominator != 1:
        raise BindError("M2007", f"INTERVAL {node} has a fraction of a microsecond")
    return Literal(Type.INTERVAL, timedelta(microseconds=int(micros)))


def _explicit_cast(operand: Expression, wanted: Type) -> Expression:
    if not castable(operand.type, wanted):
        raise BindError("M2006", f"{operand.type.value} cannot be cast to {wanted.value}")
    return cast(operand, wanted)


def is_built_in_aggregate(node: ast.Function) -> bool:
    return not isinstance(node, PythonFunction) and aggregates.find(node.name) is not None


def contains_aggregate(node: ast.Node) -> bool:
    """True if an aggregate function is called anywhere inside, other than with OVER."""
    if isinstance(node, ast.Function):
        if node.over is not None or isinstance(node, UserCall):
            return False
        if is_built_in_aggregate(node):
            return True
    return any(contains_aggregate(child) for child in node.children())


def contains_over(node: ast.Node) -> bool:
    """True if a function is called with OVER anywhere inside."""
    if isinstance(node, ast.Function) and node.over is not None:
        return True
    return any(contains_over(child) for child in node.children())
