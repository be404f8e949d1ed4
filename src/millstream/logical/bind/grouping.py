"""Binds GROUP BY and aggregates: a select list becomes a window aggregate with a projection on top.

A projection below first computes the arguments and groups as plain columns, so that the operator reads columns only.
Its result columns are named after what they compute, not after aliases, so that queries that differ in aliases share
it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from millstream.algebra.aggregate import functions as aggregates
from millstream.algebra.aggregate.call import AggregateCall
from millstream.algebra.aggregate.function import AggregateFunction
from millstream.algebra.expression import Column, Expression, Literal
from millstream.algebra.schema import TS
from millstream.algebra.types import Type
from millstream.errors import BindError, MillstreamError, PlanError
from millstream.lang import ast
from millstream.logical.bind.coercion import cast
from millstream.logical.bind.expressions import ExpressionBinder, contains_aggregate
from millstream.logical.bind.scope import PSEUDO_COLUMNS, Scope
from millstream.logical.nodes.project import Project, copies
from millstream.logical.nodes.window_aggregate import WindowAggregate
from millstream.logical.plan import Plan


@dataclass(frozen=True, slots=True)
class AggregateWindow:
    """The window of an aggregate; `attribute` is the windowing column, None for the stream's time."""

    range: int | None = None
    slide: int | None = None
    attribute: str | None = None
    integer: bool = False
    """True if window ends are BIGINT, False for TIMESTAMP."""


@dataclass(slots=True)
class AggregateBinder:
    """Collects groups and calls while the select list is bound, then builds the operator."""

    scope: Scope
    input: Plan
    window: AggregateWindow
    aliases: dict[str, ast.Expr]
    """The select list by alias; HAVING may use the aliases."""
    groups: list[tuple[Expression, str]] = field(default_factory=list)
    calls: dict[tuple[str, Expression | None], AggregateCall] = field(default_factory=dict)
    computed: dict[Expression, str] = field(default_factory=dict)

    # --- groups ---------------------------------------------------------------------------------------------------

    def add_groups(self, select: ast.Select) -> None:
        for written in select.group:
            node = _meant(written, select, self.scope)
            if self._pseudo(node) is not None:
                continue  # windows are groups already
            if contains_aggregate(node):
                raise PlanError("M3013", "GROUP BY cannot contain an aggregate", **written.place)
            bound = ExpressionBinder(self.scope, "GROUP BY").bind(node)
            if isinstance(bound, Literal):
                raise BindError("M2017", "GROUP BY needs a column", **written.place)
            if all(bound != known for known, _ in self.groups):
                self.groups.append((bound, self._column(bound, "group")))

    def _pseudo(self, node: ast.Expr) -> str | None:
        """Return the window column that a name refers to, if there is a window."""
        named = self.window.range is not None and isinstance(node, ast.Name) and len(node.parts) == 1
        return str(node) if named and str(node) in PSEUDO_COLUMNS else None

    def _column(self, bound: Expression, stem: str) -> str:
        """Return the input column that holds the expression: the column itself, or one to be computed below."""
        # The aggregate itself emits the window columns.
        collides = stem == "group" and self.window.range is not None
        if isinstance(bound, Column) and bound.name != TS and not (collides and bound.name in PSEUDO_COLUMNS):
            return bound.name
        if bound not in self.computed:
            taken = {*self.input.schema.names, *self.computed.values()}
            number = 1 + sum(name.startswith(stem) for name in self.computed.values())
            while f"{stem}_{number}" in taken:
                number += 1
            self.computed[bound] = f"{stem}_{number}"
        return self.computed[bound]

    # --- expressions over groups and calls ------------------------------------------------------------------------

    def binder(self, where: str) -> ExpressionBinder:
        """Return a binder of SELECT or HAVING over the aggregate's output."""
        return ExpressionBinder(self.scope, where, self._having if where == "HAVING" else self._hook)

    def _having(self, node: ast.Expr) -> Expression | None:
        if isinstance(node, ast.Name) and len(node.parts) == 1 and node.parts[0] in self.aliases:
            name = node.parts[0]
            if not any(name in entry.schema for entry in self.scope.entries):
                return self.binder("SELECT").bind(self.aliases[name])
        return self._hook(node)

    def _hook(self, node: ast.Expr) -> Expression | None:
        if isinstance(node, ast.Function) and (function := aggregates.find(node.name)) is not None:
            call = self._call(node, function)
            return Column(call.type, call.name)
        if (pseudo := self._pseudo(node)) is not None:
            return Column(Type.BIGINT if self.window.integer else Type.TIMESTAMP, pseudo)
        return self._group(node)

    def _group(self, node: ast.Expr) -> Expression | None:
        """Return the group column that holds this expression."""
        if contains_aggregate(node) or isinstance(node, ast.Constant):
            return None
        try:
            bound = ExpressionBinder(self.scope, "SELECT").bind(node)
        except MillstreamError:
            if isinstance(node, ast.Name):
                raise
            return None
        for known, name in self.groups:
            if known == bound:
                return Column(bound.type, name)
        if isinstance(node, ast.Name):
            hint = f"add it to GROUP BY, or aggregate it: MAX({node})"
            raise PlanError("M3016", f"column '{node}' is neither in GROUP BY nor inside an aggregate", hint=hint)
        return None

    def _call(self, node: ast.Function, function: AggregateFunction) -> AggregateCall:
        if not function.mergeable:
            detail = "Tuples are folded into partial results page by page, and these are merged."
            raise PlanError("M3025", f"{function.name} cannot run: its partial results do not merge", detail=detail)
        bound = self._argument(node, function)
        key = function.name, bound
        if key not in self.calls:
            argument = None if bound is None else self._column(bound, "argument")
            name = self._call_name(function.name, argument)
            type_ = Type.BIGINT if bound is None else function.result_type(bound.type)
            self.calls[key] = AggregateCall(name, function.name, argument, type_)
        return self.calls[key]

    def _argument(self, node: ast.Function, function: AggregateFunction) -> Expression | None:
        """Return the argument of the aggregate, or None if it counts tuples."""
        name = function.name
        if node.star:
            if not function.star:
                raise BindError("M2009", f"{name}(*) means nothing", hint=f"name a column: {name}(x)")
            return None
        if len(node.arguments) != 1:
            raise BindError("M2009", f"{name} takes 1 argument, found {len(node.arguments)}")
        if node.distinct and not function.idempotent:
            hint = "SELECT DISTINCT in a subquery, then COUNT"
            raise PlanError("M3017", f"{name}(DISTINCT …) is not available yet", hint=hint)
        if contains_aggregate(node.arguments[0]):
            hint = "Aggregate in a subquery first."
            raise PlanError("M3018", "an aggregate inside an aggregate", hint=hint)
        bound = ExpressionBinder(self.scope, name).bind(node.arguments[0])
        if function.star and isinstance(bound, Literal) and bound.value is not None:
            return None
        function.check(bound.type)
        return cast(bound, Type.VARCHAR) if bound.type is Type.NULL else bound

    def _call_name(self, function: str, argument: str | None) -> str:
        base = function.lower() if argument is None else f"{function.lower()}_{argument.replace('.', '_')}"
        taken = {*PSEUDO_COLUMNS, *(name for _, name in self.groups), *(call.name for call in self.calls.values())}
        name, number = base, 1
        while name in taken:
            name, number = f"{base}_{number}", number + 1
        return name

    # --- the operator ---------------------------------------------------------------------------------------------

    def plan(self) -> Plan:
        """Return the aggregate over its input, with a projection in between for computed columns."""
        source = self.input
        if self.computed:
            computed = tuple((name, expression) for expression, name in self.computed.items())
            source = Project(source, copies(source.schema) + computed)
        groups = tuple(name for _, name in self.groups)
        window = self.window
        return WindowAggregate(source, window.range, window.slide, groups, tuple(self.calls.values()), window.attribute)


def _meant(written: ast.Expr, select: ast.Select, scope: Scope) -> ast.Expr:
    """Return the item that an ordinal or an alias in GROUP BY refers to; a column takes precedence over an alias."""
    if isinstance(written, ast.Constant) and type(written.value) is int:
        if not 1 <= written.value <= len(select.items):
            message = f"GROUP BY {written.value}: the select list has {len(select.items)} items"
            raise BindError("M2017", message, **written.place)
        return select.items[written.value - 1].expression
    if isinstance(written, ast.Name) and len(written.parts) == 1:
        name = written.parts[0]
        if not any(name in entry.schema for entry in scope.entries):
            return next((item.expression for item in select.items if item.alias == name), written)
    return written
