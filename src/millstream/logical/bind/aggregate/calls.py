"""Aggregates that queries over local tables call: built-in ones, base versions of the user's and of the library's, and
classes in Python."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from millstream.algebra.aggregate import functions as aggregates
from millstream.algebra.aggregate.call import AggregateCall
from millstream.algebra.aggregate.function import AggregateFunction
from millstream.algebra.expression import Expression
from millstream.algebra.program.program import Program
from millstream.algebra.program.query import Call
from millstream.algebra.python.definition import Declaration
from millstream.algebra.types import Type
from millstream.errors import BindError, PlanError
from millstream.lang import ast
from millstream.logical.bind.aggregate.types import assigned, wide
from millstream.logical.bind.aggregate_call import arguments_of, check_argument, needs_over, parameters_of
from millstream.logical.bind.coercion import cast
from millstream.logical.bind.operators import boolean
from millstream.logical.bind.python_functions import python_arguments
from millstream.logical.catalog import Catalog, UserAggregate

BY_VALUE = ("COUNT", "SUM", "AVG", "MIN", "MAX")
"""The built-in functions that are computed without columns."""
Binder = Callable[[ast.Expr], Expression]


@dataclass(frozen=True, slots=True)
class Calls:
    """The aggregates that a body of this name may call. The window version may call the base version of its name."""

    catalog: Catalog
    name: str
    window: bool
    of_tables: bool = False
    """True for statements over tables, whose values keep their types."""

    def typed(self, value: Expression) -> Expression:
        """The value in the type that it has in a body, or over tables."""
        return value if self.of_tables else cast(value, wide(value.type))

    def is_aggregate(self, node: ast.Node) -> bool:
        if not isinstance(node, ast.Function):
            return False
        found = self._found(node.name)
        if isinstance(found, Declaration):
            return bool(found.methods)
        return node.name == self.name or found is not None or aggregates.find(node.name) is not None

    def function(self, node: ast.Function) -> Declaration | None:
        """The function in Python that a call means."""
        found = self._found(node.name)
        return found if isinstance(found, Declaration) and not found.methods else None

    def _found(self, name: str) -> UserAggregate | Declaration | None:
        from millstream.logical.bind.aggregate.library import find  # binds bodies, which call aggregates

        return self.catalog.user_defined(name) or (None if name == self.name else find(name, self.catalog))

    def contained(self, node: ast.Node) -> bool:
        """True if an aggregate is called inside, but not in a subquery."""
        if self.is_aggregate(node):
            return True
        return not isinstance(node, ast.Select) and any(map(self.contained, node.children()))

    def bind(self, node: ast.Function, binder: Binder) -> Call:
        """Return the call of an aggregate, its arguments bound by `binder`."""
        check_over(node)
        found, built_in = self._found(node.name), aggregates.find(node.name)
        if node.name == self.name and not (self.window and (found is not None or built_in is not None)):
            detail = "An aggregate may call those that exist before it; the window version may call the base version."
            hint = f"CREATE AGGREGATE {node.name}, the base version, first" if self.window else ""
            raise BindError("M2044", f"aggregate '{node.name}' calls itself", detail=detail, hint=hint)
        if isinstance(found, Declaration):
            return self._python(node, found, binder)
        if found is not None and found.base is not None:
            return self._program(node, found.base, binder)
        if built_in is not None:
            return self._built_in(node, built_in, binder)
        hint = f"CREATE AGGREGATE {node.name}: over a table the base version is used"
        raise BindError("M2008", f"aggregate '{node.name}' has only a window version", hint=hint)

    # --- of the user ----------------------------------------------------------------------------------------------

    def _program(self, node: ast.Function, program: Program, binder: Binder) -> Call:
        self._check(node, len(program.results))
        arguments = matched(program, [binder(argument) for argument in node.arguments])
        return Call(program.results[0].type, program.name, arguments, node.distinct, program)

    def _python(self, node: ast.Function, declared: Declaration, binder: Binder) -> Call:
        self._check(node, len(declared.returns))
        arguments = python_arguments(declared, [binder(argument) for argument in node.arguments])
        return Call(declared.signature.type, declared.name, arguments, node.distinct, declared)

    def _check(self, node: ast.Function, width: int) -> None:
        if node.filter is not None or node.within is not None:
            clause = "FILTER" if node.filter is not None else "WITHIN GROUP"
            hint = "choose and sort the rows in a subquery of FROM"
            raise BindError("M2009", f"{clause} of {node.name}, a user-defined aggregate", hint=hint)
        if width != 1:
            raise BindError("M2009", f"{node.name} returns {width} columns, not a value")

    # --- built in -------------------------------------------------------------------------------------------------

    def _built_in(self, node: ast.Function, function: AggregateFunction, binder: Binder) -> Call:
        if function.needs_over:
            raise needs_over(function)
        if function.name not in BY_VALUE:
            return self._on_column(node, function, binder)
        node = _filtered(node)
        if node.star:
            if not function.star:
                raise BindError("M2009", f"{function.name}(*) means nothing", hint=function.example)
            return Call(Type.BIGINT, function.name, ())
        written, _ = arguments_of(node, function)
        assert written is not None
        argument = self._argument(binder(written))
        check_argument(node, function, argument)
        return Call(function.result_type(argument.type), function.name, (argument,), node.distinct)

    def _on_column(self, node: ast.Function, function: AggregateFunction, binder: Binder) -> Call:
        written, constants = arguments_of(node, function)
        assert written is not None
        parameters, argument = parameters_of(function, constants), self._argument(binder(written))
        check_argument(node, function, argument)
        argument = argument if function.takes is None else cast(argument, function.takes)
        filtered = () if node.filter is None else (boolean(binder(node.filter), "FILTER"),)
        distinct = argument.type if node.distinct and not function.idempotent else None
        type_ = function.result_type(argument.type)
        of = None if function.of(argument.type) is function else argument.type
        by = AggregateCall(
            "value", function.name, "argument", type_, parameters, distinct, "filter" if filtered else None, of
        )
        return Call(type_, function.name, (argument, *filtered), by=by)

    def _argument(self, bound: Expression) -> Expression:
        return cast(bound, Type.BIGINT) if bound.type is Type.NULL else self.typed(bound)


def check_over(node: ast.Function) -> None:
    """Refuse OVER: tables have no order of time."""
    if node.over is not None:
        hint = "aggregate in a subquery: (SELECT SUM(b.x) FROM t b WHERE b.k = a.k); ORDER BY and LIMIT choose rows"
        message = f"{node.name.upper()}(…) OVER is not possible over tables"
        raise PlanError("M3054", message, hint=hint, **node.over.place)


def _filtered(node: ast.Function) -> ast.Function:
    """Return the call with its FILTER inside the argument: NULL where that does not hold."""
    if node.filter is None:
        return node
    given = node.arguments or (ast.Constant(1, **node.place),)
    chosen = tuple(ast.Case(None, ((node.filter, each),), None, **node.place) for each in given)
    return replace(node, arguments=chosen, star=False, filter=None)


def matched(program: Program, arguments: list[Expression]) -> tuple[Expression, ...]:
    """The arguments of a call, in the types that the program declares."""
    from millstream.logical.bind.aggregate.library import check_arguments  # binds bodies, which call aggregates

    wanted = program.arguments
    if len(arguments) != len(wanted):
        plural = "" if len(wanted) == 1 else "s"
        hint = f"{program.name}({', '.join(map(str, wanted))})"
        message = f"{program.name} takes {len(wanted)} argument{plural}, found {len(arguments)}"
        raise BindError("M2009", message, hint=hint)
    check_arguments(program, arguments)
    pairs = zip(arguments, wanted, strict=True)
    return tuple(assigned(given, each.type, f"argument '{each.name}'") for given, each in pairs)
