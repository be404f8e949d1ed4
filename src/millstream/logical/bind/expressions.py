"""Binds expressions: resolves names, checks types, makes casts explicit."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from millstream.algebra.aggregate import functions as aggregates
from millstream.algebra.expression import Case, Expression, InList, Literal
from millstream.algebra.types import Type
from millstream.errors import BindError, PlanError
from millstream.lang import ast
from millstream.logical.bind.coercion import cast, literal_type, read_literal, type_named, unify
from millstream.logical.bind.functions import call, extract
from millstream.logical.bind.operators import binary, boolean, unary
from millstream.logical.bind.scope import Scope

Hook = Callable[[ast.Expr], Expression | None]
"""Binds a node other than by the scope; returns None for the default."""


class ExpressionBinder:
    """Binds expressions over one scope. `hook` sees every node first; `where` names the clause in errors."""

    def __init__(self, scope: Scope, where: str, hook: Hook | None = None) -> None:
        self.scope = scope
        self.where = where
        self._hook = hook

    def bind(self, node: ast.Expr) -> Expression:
        with node.placing():
            bound = self._hook(node) if self._hook is not None else None
            return self._bind(node) if bound is None else bound

    def condition(self, node: ast.Expr) -> Expression:
        """Bind a predicate of the clause."""
        with node.placing():
            return boolean(self.bind(node), self.where)

    def _bind(self, node: ast.Expr) -> Expression:
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
                return _explicit_cast(self.bind(node.operand), type_named(node.type_name.name))
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
        if aggregates.find(node.name) is not None:
            hint = "Use HAVING." if self.where == "WHERE" else "Compute it in a subquery in FROM."
            raise PlanError("M3013", f"{node.name.upper()} is an aggregate, not allowed in {self.where}", hint=hint)
        if node.star or node.distinct:
            raise BindError("M2009", f"{node.name.upper()} is not an aggregate")
        return call(node.name, [self.bind(argument) for argument in node.arguments])


def _interval(node: ast.Duration) -> Literal:
    micros = node.micros
    if micros.denominator != 1:
        raise BindError("M2007", f"INTERVAL {node} has a fraction of a microsecond")
    return Literal(Type.INTERVAL, timedelta(microseconds=int(micros)))


_CASTABLE = {
    Type.BOOLEAN: {Type.VARCHAR, Type.INT, Type.BIGINT},
    Type.TIMESTAMP: {Type.VARCHAR, Type.DATE, Type.INT, Type.BIGINT, Type.DOUBLE},
    Type.DATE: {Type.VARCHAR, Type.TIMESTAMP},
    Type.INTERVAL: {Type.VARCHAR, Type.INT, Type.BIGINT, Type.DOUBLE},
}


def _explicit_cast(operand: Expression, wanted: Type) -> Expression:
    given = operand.type
    numeric_target = wanted.is_numeric or wanted in (Type.VARCHAR, Type.TIMESTAMP, Type.INTERVAL, Type.BOOLEAN)
    allowed = (
        given in (wanted, Type.NULL, Type.VARCHAR)
        or (given.is_numeric and numeric_target)
        or wanted in _CASTABLE.get(given, ())
    )
    if not allowed:
        raise BindError("M2006", f"{given.value} cannot be cast to {wanted.value}")
    return cast(operand, wanted)


def contains_aggregate(node: ast.Node) -> bool:
    """True if an aggregate function is called anywhere inside."""
    if isinstance(node, ast.Function) and aggregates.find(node.name) is not None:
        return True
    return any(contains_aggregate(child) for child in node.children())
