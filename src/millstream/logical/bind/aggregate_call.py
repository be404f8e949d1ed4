"""Binds a call of an aggregate function: its argument, the constants after it, DISTINCT and FILTER."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from millstream.algebra.aggregate import functions as aggregates
from millstream.algebra.aggregate.call import AggregateCall
from millstream.algebra.aggregate.function import AggregateFunction, Parameter
from millstream.algebra.expression import Expression, Literal
from millstream.algebra.types import Type, format_value
from millstream.errors import BindError, PlanError
from millstream.lang import ast
from millstream.lang.expression_text import text_of
from millstream.logical.bind.coercion import cast, common, loss
from millstream.logical.bind.expressions import ExpressionBinder, contains_aggregate, contains_over
from millstream.logical.bind.functions import check_known
from millstream.logical.bind.scope import Scope


@dataclass(frozen=True)
class BoundCall:
    """Equal calls have equal values. `argument` is None if the function counts tuples, or has no argument."""

    function: AggregateFunction
    argument: Expression | None
    parameters: tuple[Any, ...] = ()
    distinct: bool = False
    filter: Expression | None = None

    @property
    def type(self) -> Type:
        return Type.BIGINT if self.argument is None else self.function.result_type(self.argument.type)

    def named(self, name: str, argument: str | None, filter: str | None) -> AggregateCall:
        """The call under a name; `argument` and `filter` are the input columns that hold the values of its own."""
        taken = None if self.argument is None else self.argument.type
        distinct = taken if self.distinct else None
        of = None if taken is None or self.function.of(taken) is self.function else taken
        return AggregateCall(name, self.function.name, argument, self.type, self.parameters, distinct, filter, of)


def bind_call(node: ast.Function, function: AggregateFunction, scope: Scope) -> BoundCall:
    """Return the call with its names resolved and its types checked."""
    if function.star and node.star:
        return BoundCall(function, None, filter=_filter(node, scope))
    argument, constants = arguments_of(node, function)
    parameters = parameters_of(function, constants)
    if argument is None:
        return BoundCall(function, None, parameters, filter=_filter(node, scope))
    if contains_aggregate(argument) or contains_over(argument):
        raise PlanError("M3018", "an aggregate inside an aggregate", hint="Aggregate in a subquery first.")
    bound = ExpressionBinder(scope, function.name).bind(argument)
    distinct = node.distinct and not function.idempotent
    if function.star and not distinct and isinstance(bound, Literal) and bound.value is not None:
        return BoundCall(function, None, filter=_filter(node, scope))
    check_argument(node, function, bound)
    if distinct and bound.type.is_array:
        raise BindError("M2006", f"{function.name}(DISTINCT …) of an array is not possible")
    taken = function.takes or (Type.VARCHAR if bound.type is Type.NULL else bound.type)
    return BoundCall(function, cast(bound, taken), parameters, distinct, _filter(node, scope))


def check_argument(node: ast.Function, function: AggregateFunction, argument: Expression) -> None:
    """Raise BindError if the argument cannot have its type."""
    try:
        function.check(argument.type)
    except BindError as error:
        if function.numeric and argument.type is Type.VARCHAR:
            written, constants = arguments_of(node, function)
            number = f"CAST({text_of(written) or argument} AS DOUBLE)"
            inside = ", ".join((number, *(text_of(each) or "p" for each in constants)))
            call = f"{function.name}({'DISTINCT ' * node.distinct}{inside})"
            error.hint = f"{call}, {loss(Type.VARCHAR, Type.DOUBLE)}; MIN, MAX and COUNT take any type"
        raise


def arguments_of(node: ast.Function, function: AggregateFunction) -> tuple[ast.Expr | None, tuple[ast.Expr, ...]]:
    """Return the argument and the constants after it, as many as there may be."""
    name, given = function.name, node.arguments
    if node.star:
        raise BindError("M2009", f"{name}(*) means nothing", hint=f"name a column: {function.example}")
    if node.within is not None:
        if not function.within_group:
            raise BindError("M2009", f"{name} has no WITHIN GROUP", hint=f"write {function.example}")
        given = (node.within, *given)
    least = int(function.argument) + sum(parameter.default is None for parameter in function.parameters)
    most = int(function.argument) + len(function.parameters)
    if not least <= len(given) <= most:
        wanted = f"{least}" if least == most else f"{least} to {most}"
        found = len(node.arguments)
        message = f"{name} takes {wanted} argument{'' if most == 1 else 's'}, found {found}"
        several = "COUNT(*) of a subquery in FROM with SELECT DISTINCT" if name == "COUNT" and node.distinct else ""
        raise BindError("M2009", message, hint=several)
    return (given[0], given[1:]) if function.argument else (None, given)


def parameters_of(function: AggregateFunction, constants: tuple[ast.Expr, ...]) -> tuple[Any, ...]:
    """Return the values of all parameters, of these constants and of defaults."""
    defaults = [parameter.default for parameter in function.parameters[len(constants) :]]
    given = zip(function.parameters, constants, strict=False)
    return (*(_constant(function.name, parameter, node) for parameter, node in given), *defaults)


def _constant(name: str, parameter: Parameter, node: ast.Expr) -> Any:
    """Return the value of a parameter; raise BindError unless it is a constant of its type and in its range."""
    with node.placing():
        bound = ExpressionBinder(Scope(()), name).bind(node) if not list(_names(node)) else None
        if not isinstance(bound, Literal) or bound.value is None:
            raise BindError("M2009", f"{parameter.name} of {name} must be a constant")
        cast_ = cast(bound, parameter.type) if common(bound.type, parameter.type) is parameter.type else None
        if not isinstance(cast_, Literal):
            raise BindError("M2006", f"{parameter.name} of {name} needs {parameter.type.value}, not {bound.type.value}")
        if not parameter.valid(cast_.value):
            raise BindError(
                "M2009",
                f"{parameter.name} of {name} must be {parameter.range}, not {format_value(bound.value)}",
                hint=parameter.hint(bound.value),
            )
        return cast_.value


def _names(node: ast.Node) -> list[ast.Name]:
    found = [node] if isinstance(node, ast.Name) else []
    return [*found, *(name for child in node.children() for name in _names(child))]


def _filter(node: ast.Function, scope: Scope) -> Expression | None:
    if node.filter is None:
        return None
    return ExpressionBinder(scope, "FILTER").condition(node.filter)


def check_names(node: ast.Node) -> None:
    """Raise BindError if a function is called that is not known: it may have been meant as an aggregate."""
    if type(node) is ast.Function and aggregates.find(node.name) is None:
        with node.placing():
            check_known(node.name)
    for child in node.children():
        check_names(child)


def refuse_without_over(node: ast.Node) -> None:
    """Raise PlanError if a function that needs OVER is called without it."""
    if isinstance(node, ast.Function) and node.over is None:
        function = aggregates.find(node.name)
        if function is not None and function.needs_over:
            raise needs_over(function).at(node.line, node.column)
    for child in node.children():
        refuse_without_over(child)


def needs_over(function: AggregateFunction) -> PlanError:
    hint = f"{function.example} OVER (PARTITION BY k ROWS UNBOUNDED PRECEDING)"
    return PlanError("M3028", f"{function.name} has a result per tuple and needs OVER", hint=hint)
