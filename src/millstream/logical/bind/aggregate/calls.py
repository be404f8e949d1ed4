"""Aggregates that queries of a body call: built-in ones, and base versions of the user's."""

from __future__ import annotations

from dataclasses import dataclass, replace

from millstream.algebra.aggregate import functions as aggregates
from millstream.algebra.expression import Expression
from millstream.algebra.program.program import Program
from millstream.algebra.program.query import Call
from millstream.algebra.types import Type
from millstream.errors import BindError, PlanError
from millstream.lang import ast
from millstream.logical.bind.aggregate.types import assigned, wide
from millstream.logical.bind.coercion import cast
from millstream.logical.catalog import Catalog

BUILT_IN = ("COUNT", "SUM", "AVG", "MIN", "MAX")


@dataclass(frozen=True, slots=True)
class Calls:
    """The aggregates that a body of this name may call. The window version may call the base version of its name."""

    catalog: Catalog
    name: str
    window: bool

    def is_aggregate(self, node: ast.Node) -> bool:
        if not isinstance(node, ast.Function):
            return False
        return node.name == self.name or node.name in self.catalog.aggregates or aggregates.find(node.name) is not None

    def contained(self, node: ast.Node) -> bool:
        """True if an aggregate is called inside, but not in a subquery."""
        if self.is_aggregate(node):
            return True
        return not isinstance(node, ast.Select) and any(map(self.contained, node.children()))

    def filtered(self, node: ast.Function) -> ast.Function:
        """Return the call with its FILTER inside the argument, NULL where that does not hold; refuse what a body has
        no meaning for."""
        if node.over is not None:
            hint = "a body reads whole tables: ORDER BY and LIMIT in a subquery choose rows"
            raise PlanError("M3054", "a running aggregate is not allowed in a body", hint=hint, **node.over.place)
        if node.within is not None:
            raise BindError("M2009", f"{node.name.upper()} takes no WITHIN GROUP in a body")
        if node.filter is None:
            return node
        if node.name in self.catalog.aggregates and self.catalog.aggregates[node.name].base is not None:
            hint = "filter in a subquery of FROM"
            raise BindError("M2009", f"FILTER of {node.name}, a user-defined aggregate", hint=hint)
        given = node.arguments or (ast.Constant(1, **node.place),)
        chosen = tuple(ast.Case(None, ((node.filter, each),), None, **node.place) for each in given)
        return replace(node, arguments=chosen, star=False, filter=None)

    def bind(self, node: ast.Function, arguments: list[Expression]) -> Call:
        """Return the call with these bound arguments."""
        known = node.name in self.catalog.aggregates or aggregates.find(node.name) is not None
        if node.name == self.name and not (self.window and known):
            detail = "An aggregate may call those that exist before it; the window version may call the base version."
            hint = f"CREATE AGGREGATE {node.name}, the base version, first" if self.window else ""
            raise BindError("M2044", f"aggregate '{node.name}' calls itself", detail=detail, hint=hint)
        if node.name in self.catalog.aggregates:
            return self._program(node, arguments)
        return self._built_in(node, arguments)

    def _program(self, node: ast.Function, arguments: list[Expression]) -> Call:
        program = self.catalog.aggregates[node.name].base
        if program is None:
            if aggregates.find(node.name) is not None:
                return self._built_in(node, arguments)
            hint = f"CREATE AGGREGATE {node.name}: over a table the base version is used"
            raise BindError("M2008", f"aggregate '{node.name}' has only a window version", hint=hint)
        if len(program.results) != 1:
            raise BindError("M2009", f"{node.name} returns {len(program.results)} columns, not a value")
        return Call(program.results[0].type, program.name, matched(program, arguments), node.distinct, program)

    def _built_in(self, node: ast.Function, arguments: list[Expression]) -> Call:
        function = aggregates.lookup(node.name)
        if function.name not in BUILT_IN:
            hint = f"the built-in aggregates of a body are {', '.join(BUILT_IN)}"
            raise BindError("M2014", f"{function.name} is not available in a body", hint=hint)
        if node.star:
            if not function.star:
                raise BindError("M2009", f"{function.name}(*) means nothing", hint=f"{function.name}(x)")
            return Call(Type.BIGINT, function.name, ())
        if len(arguments) != 1:
            raise BindError("M2009", f"{function.name} takes 1 argument, found {len(arguments)}")
        (argument,) = arguments
        if argument.type is Type.NULL:
            argument = cast(argument, Type.BIGINT)
        function.check(argument.type)
        argument = cast(argument, wide(argument.type))
        return Call(function.result_type(argument.type), function.name, (argument,), node.distinct)


def matched(program: Program, arguments: list[Expression]) -> tuple[Expression, ...]:
    """The arguments of a call, in the types that the program declares."""
    wanted = program.arguments
    if len(arguments) != len(wanted):
        plural = "" if len(wanted) == 1 else "s"
        hint = f"{program.name}({', '.join(map(str, wanted))})"
        message = f"{program.name} takes {len(wanted)} argument{plural}, found {len(arguments)}"
        raise BindError("M2009", message, hint=hint)
    pairs = zip(arguments, wanted, strict=True)
    return tuple(assigned(given, each.type, f"argument '{each.name}'") for given, each in pairs)
