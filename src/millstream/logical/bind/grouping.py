"""Binds GROUP BY and aggregates: a select list becomes a window aggregate with a projection on top.

A projection below first computes the arguments and groups as plain columns, so that the operator reads columns only.
Its result columns are named after what they compute, not after aliases, so that queries that differ in aliases share
it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from millstream.algebra.aggregate import functions as aggregates
from millstream.algebra.aggregate.call import AggregateCall
from millstream.algebra.aggregate.fold import FoldCall
from millstream.algebra.aggregate.function import AggregateFunction
from millstream.algebra.early import ESTIMATES, FINALITY, REVISION
from millstream.algebra.expression import Column, Expression, Literal
from millstream.algebra.frame import Frame
from millstream.algebra.program.expression import Applied
from millstream.algebra.python.definition import Declaration
from millstream.algebra.schema import TS
from millstream.algebra.types import Type
from millstream.algebra.window import WINDOW_END, WINDOW_TIME
from millstream.algebra.windower import Windower
from millstream.errors import BindError, MillstreamError, PlanError
from millstream.lang import ast
from millstream.lang.aggregate.ast import UserCall
from millstream.logical.bind.aggregate.calls import matched
from millstream.logical.bind.aggregate.user_calls import base_version, bound_arguments, given_arguments, row_call
from millstream.logical.bind.aggregate_call import BoundCall, bind_call, needs_over
from millstream.logical.bind.estimates import estimated_call, first_call, kind_of, moments
from millstream.logical.bind.expressions import ExpressionBinder, contains_aggregate, is_built_in_aggregate
from millstream.logical.bind.scope import PSEUDO_COLUMNS, Scope
from millstream.logical.nodes.assess import Assess
from millstream.logical.nodes.project import Project, copies
from millstream.logical.nodes.revise import Revise
from millstream.logical.nodes.window_aggregate import WindowAggregate
from millstream.logical.plan import Plan

_WHATEVER_THE_GROUPS = ("M2008", "M2009")
"""Errors of a function that has no meaning over groups either: it is unknown, or has other arguments."""


@dataclass(frozen=True, slots=True)
class AggregateWindow:
    """The window of an aggregate; `attribute` is the windowing column, None for the stream's time."""

    windows: Windower | None = None
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
    calls: dict[BoundCall, AggregateCall] = field(default_factory=dict)
    computed: dict[Expression, str] = field(default_factory=dict)
    finality: bool = False
    """True if the query shows whether a row is early or final."""
    revision: bool = False
    """True if the query shows which answer for its window and group a row is."""
    estimate: ast.Expr | None = None
    """The first column of a prediction that the query shows."""
    estimated: BoundCall | None = None
    """The aggregate that it speaks of."""

    # --- groups ---------------------------------------------------------------------------------------------------

    def add_groups(self, select: ast.Select) -> None:
        for written in select.group:
            node = meant(written, select, self.scope)
            if self._pseudo(node) is not None:
                continue  # windows are groups already
            if contains_aggregate(node):
                raise PlanError("M3013", "GROUP BY cannot contain an aggregate", **written.place)
            bound = ExpressionBinder(self.scope, "GROUP BY").bind(node)
            if isinstance(bound, Literal):
                raise BindError("M2017", "GROUP BY needs a column", **written.place)
            if bound.type.is_array:
                message = f"GROUP BY of an array ({bound.type.value}) is not possible"
                raise BindError("M2017", message, hint="group by its text: CAST(x AS VARCHAR)", **written.place)
            if all(bound != known for known, _ in self.groups):
                self.groups.append((bound, self._column(bound, "group")))

    def _pseudo(self, node: ast.Expr) -> str | None:
        """Return the window column that a name refers to, if there is a window."""
        named = self.window.windows is not None and isinstance(node, ast.Name) and len(node.parts) == 1
        return str(node) if named and str(node) in PSEUDO_COLUMNS else None

    def _column(self, bound: Expression, stem: str) -> str:
        """Return the input column that holds the expression: the column itself, or one to be computed below."""
        # The aggregate itself emits the window columns.
        collides = stem == "group" and self.window.windows is not None
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
        for name in (REVISION, *ESTIMATES):
            if is_pseudo(node, name, self.scope):
                hint = "a row that HAVING drops is no answer, and does not count"
                raise PlanError("M3016", f"{name} is not known in HAVING", hint=hint, **node.place)
        return self._hook(node)

    def _hook(self, node: ast.Expr) -> Expression | None:
        if isinstance(node, UserCall):
            return self._user_call(node)
        if isinstance(node, ast.Function) and is_built_in_aggregate(node):
            call = self._call(node, aggregates.lookup(node.name))
            return Column(call.type, call.name)
        if is_pseudo(node, FINALITY, self.scope):
            self.finality = True
            return Column(Type.VARCHAR, FINALITY)
        if is_pseudo(node, REVISION, self.scope):
            self.revision = True
            return Column(Type.BIGINT, REVISION)
        for name in ESTIMATES:
            if is_pseudo(node, name, self.scope):
                self.estimate = self.estimate or node
                return Column(Type.DOUBLE, name)
        if (pseudo := self._pseudo(node)) == WINDOW_TIME:
            return Column(Type.BIGINT if self.input.schema.unit == 1 else Type.TIMESTAMP, TS)
        if pseudo is not None:
            return Column(Type.BIGINT if self.window.integer else Type.TIMESTAMP, pseudo)
        return self._group(node)

    def _group(self, node: ast.Expr) -> Expression | None:
        """Return the group column that holds this expression."""
        if contains_aggregate(node) or isinstance(node, ast.Constant):
            return None
        try:
            bound = ExpressionBinder(self.scope, "SELECT").bind(node)
        except MillstreamError as error:
            if isinstance(node, ast.Name) or error.code in _WHATEVER_THE_GROUPS:
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
        if function.needs_over:
            raise needs_over(function)
        if not (function.mergeable or function.sequential):
            detail = "Tuples are folded into partial results page by page, and these are merged."
            raise PlanError("M3025", f"{function.name} cannot run: its partial results do not merge", detail=detail)
        return self._added(bind_call(node, function, self.scope))

    def _user_call(self, node: UserCall) -> Expression:
        """A user-defined aggregate runs over the lists of its arguments when the group is complete."""
        frame, bound = Frame(), bound_arguments(node, self.scope)
        filtered = None if node.filter is None else ExpressionBinder(self.scope, "FILTER").condition(node.filter)

        def lists(given: tuple[Expression, ...]) -> tuple[Expression, ...]:
            collect = aggregates.lookup("ARRAY_AGG")
            added = (self._added(BoundCall(collect, each, filter=filtered)) for each in given)
            return tuple(Column(each.type, each.name) for each in added)

        if isinstance(node.versions, Declaration):
            if node.versions.several:
                message = f"aggregate '{node.name}' returns a list of rows, and a grouped window takes one value of it"
                hint = f"{node.name}(…) OVER (…) emits all rows; or return one, as a tuple or a text of all"
                raise PlanError("M6077", message, hint=hint, **node.place)
            call = row_call(node, frame, node.name, ())
            output = call.outputs[node.result]
            return FoldCall(output.type, call, lists(given_arguments(node, frame, bound)), node.result)
        program = base_version(node)
        return Applied(program.results[node.result].type, program, node.result, lists(matched(program, bound)))

    def _added(self, bound: BoundCall) -> AggregateCall:
        if bound not in self.calls:
            argument = None if bound.argument is None else self._column(bound.argument, "argument")
            filter_ = None if bound.filter is None else self._column(bound.filter, "filter")
            self.calls[bound] = bound.named(self._call_name(bound, argument), argument, filter_)
        return self.calls[bound]

    def _call_name(self, bound: BoundCall, argument: str | None) -> str:
        function = bound.function.name.lower() + ("_distinct" if bound.distinct else "")
        base = function if argument is None else f"{function}_{argument.replace('.', '_')}"
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
            own = tuple(item for item in computed if isinstance(item[1], Column) and item[1].name in PSEUDO_COLUMNS)
            rest = tuple(item for item in computed if item not in own)
            source = Project(source, own + copies(source.schema) + rest)  # punctuation restricts the first of a name
        groups = tuple(name for _, name in self.groups)
        window, calls = self.window, tuple(self.calls.values())
        made = WindowAggregate(source, window.windows, groups, calls, window.attribute)
        asks = self.revision or self.estimate is not None
        return replace(made, finality=self.finality, early="top" if asks else "")

    def estimate_of(self, items: Iterable[Expression]) -> None:
        """Add what estimates need, if the query shows them; `items`: its select list."""
        node = self.estimate
        if node is None:
            return
        if self.window.windows is None or self.window.attribute is not None:
            hint = "s [RANGE 60 SECONDS]"
            raise PlanError("M3038", f"{node} needs a window over the time of the stream", hint=hint, **node.place)
        for _, name in self.groups:
            if name in ESTIMATES:
                hint = "rename it in a subquery of FROM"
                raise PlanError("M3038", f"{node} beside a group that is called '{name}'", hint=hint, **node.place)
        self.estimated = estimated_call(node, first_call(items, self.calls), self.calls)
        for needed in moments(self.estimated):
            self._added(needed)

    def revised(self, plan: Plan) -> Plan:
        """Return the result of the aggregate with the numbers of its answers and with estimates, if the query shows
        them."""
        ends = (WINDOW_END,) if self.window.windows is not None else ()
        keys = (*ends, *(name for _, name in self.groups))
        plan = Revise(plan, keys) if self.revision else plan
        if self.estimated is None:
            return plan
        call, windows = self.calls[self.estimated], self.window.windows
        assert windows is not None
        kind, needed = kind_of(call), tuple(self.calls[each].name for each in moments(self.estimated))
        assert kind is not None
        return Assess(plan, keys, call.name, kind, windows, needed, estimates=True)


def is_pseudo(node: ast.Expr, name: str, scope: Scope) -> bool:
    """Return whether a name is a pseudo-column of early answers: no stream has a column of that name."""
    named = isinstance(node, ast.Name) and node.parts == (name,)
    return named and not any(name in entry.schema for entry in scope.entries)


def meant(written: ast.Expr, select: ast.Select, scope: Scope) -> ast.Expr:
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
