"""Binds running aggregates, `SUM(x) OVER (…)`: calls with the same window become one node, others a chain of nodes.

A projection below computes arguments and partitions as plain columns. Result columns are named after what they compute,
not after aliases, so that queries that differ in aliases share the node.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from millstream.algebra.aggregate import functions as aggregates
from millstream.algebra.aggregate.call import AggregateCall
from millstream.algebra.aggregate.functions import lookup
from millstream.algebra.aggregate.row_call import RowCall
from millstream.algebra.expression import Column, Expression, Literal
from millstream.algebra.frame import Frame
from millstream.algebra.program.call import ProgramCall
from millstream.algebra.schema import TS
from millstream.errors import BindError, PlanError
from millstream.lang import ast
from millstream.lang.aggregate.ast import UserCall
from millstream.lang.expression_text import text_of
from millstream.lang.python_function import PythonFunction
from millstream.logical.bind.aggregate.library import is_of_library
from millstream.logical.bind.aggregate.recognition import recognised
from millstream.logical.bind.aggregate.replacement import may_be_null, over_arguments, over_values
from millstream.logical.bind.aggregate.user_calls import bound_arguments, given_arguments, row_call
from millstream.logical.bind.aggregate_call import BoundCall, bind_call
from millstream.logical.bind.computed import ComputedColumns, unused
from millstream.logical.bind.expressions import ExpressionBinder
from millstream.logical.bind.functions import check_known
from millstream.logical.bind.scope import Scope
from millstream.logical.catalog import UserAggregate
from millstream.logical.nodes.over import Over
from millstream.logical.plan import Plan
from millstream.logical.windows import check_units, units

_Window = tuple[tuple[str, ...], Frame]


@dataclass(slots=True)
class OverBinder:
    """Collects windows and calls while the select list is bound, then builds the nodes."""

    scope: Scope
    input: Plan
    computed: ComputedColumns = field(init=False)
    windows: dict[_Window, dict[BoundCall, AggregateCall]] = field(default_factory=dict)
    programs: dict[_Window, dict[tuple[str, tuple[Expression, ...]], RowCall]] = field(default_factory=dict)
    """Calls of user-defined aggregates, which may return any number of rows."""
    recognised: dict[_Window, dict[str, str]] = field(default_factory=dict)
    """User-defined aggregates that built-in functions compute, as EXPLAIN shows them."""
    recognises: bool = True
    """False: user-defined aggregates are compiled, also those that built-in functions could compute."""
    groups: tuple[str, ...] = ()
    """The columns of GROUP BY: the partition of aggregates without OVER."""

    def __post_init__(self) -> None:
        self.computed = ComputedColumns(self.input)

    def binder(self) -> ExpressionBinder:
        """Return a binder of the select list over the output of the nodes."""
        return ExpressionBinder(self.scope, "SELECT", self._hook)

    def plan(self) -> Plan:
        plan = self.computed.plan()
        for (partition, frame), calls in self.windows.items():
            notes = tuple(self.recognised.get((partition, frame), {}).values())
            plan = Over(plan, partition, frame, tuple(calls.values()), notes)
        for (partition, frame), programs in self.programs.items():
            plan = Over(plan, partition, frame, tuple(programs.values()))
        return plan

    def _hook(self, node: ast.Expr) -> Expression | None:
        if isinstance(node, UserCall):
            return self._user_call(node)
        if not isinstance(node, ast.Function) or node.over is None:
            return None
        function = aggregates.find(node.name)
        if function is None:
            if not isinstance(node, PythonFunction):
                check_known(node.name)
            raise PlanError(
                "M3054", f"{node.name.upper()} is not an aggregate: OVER has no meaning", hint="leave it out"
            )
        window = self._window(node.over)
        bound = bind_call(node, function, self.scope)
        if function.needs_over:
            bound, window = _of_place(bound, window, node.over)
        call = self._call(bound, window)
        return Column(call.type, call.name)

    # --- calls ------------------------------------------------------------------------------------------------------

    def _call(self, bound: BoundCall, window: _Window) -> AggregateCall:
        calls = self.windows.setdefault(window, {})
        self._check_windows()
        if bound not in calls:
            argument = None if bound.argument is None else self.computed.column(bound.argument, "argument")
            function = bound.function.name.lower() + ("_distinct" if bound.distinct else "")
            stem = function if argument is None else f"{function}_{argument.replace('.', '_')}"
            filter_ = None if bound.filter is None else self.computed.column(bound.filter, "filter")
            calls[bound] = bound.named(unused(stem, self._taken()), argument, filter_)
        return calls[bound]

    def _check_windows(self) -> None:
        windows = [*self.windows, *self.programs]
        hint = "compute one of them in a subquery of FROM"
        if len(self.programs) > 1:
            detail = "Each may return any number of rows for a tuple."
            raise PlanError(
                "M3053", "user-defined aggregates over different windows in one SELECT", detail=detail, hint=hint
            )
        if len(windows) > 1 and not all(frame.every for _, frame in windows):
            message = "SLIDE and ACTIVE EXPIRATION cannot be combined with another window in one SELECT"
            raise PlanError("M3053", message, hint=hint)

    def _user_call(self, node: UserCall) -> Expression:
        """Bind a call of a user-defined aggregate, with OVER or without."""
        if node.filter is not None:
            raise _filtered(node, node.filter)
        window = (self.groups, Frame("BASE")) if node.over is None else self._window(node.over)
        given = given_arguments(node, window[1], bound_arguments(node, self.scope))
        on_columns = self._on_columns(node, window, given)
        if on_columns is not None:
            return on_columns
        calls = self.programs.setdefault(window, {})
        self._check_windows()
        key = node.name, given
        if key not in calls:
            arguments = tuple(self.computed.column(each, "argument") for each in given)
            stem = "_".join([node.name, *(name.replace(".", "_") for name in arguments)])
            calls[key] = row_call(node, window[1], unused(stem, self._taken()), arguments)
        column = calls[key].outputs[node.result]
        return Column(column.type, column.name)

    def _on_columns(self, node: UserCall, window: _Window, given: tuple[Expression, ...]) -> Expression | None:
        """A call that built-in functions compute, if its body is recognised."""
        if not self.recognises:
            return None
        partition, frame = window
        call = row_call(node, frame, node.name, ())
        if not isinstance(call, ProgramCall):
            return None
        arguments = dict(zip((each.name for each in call.program.arguments), given, strict=True))

        def nullable(expression: Expression) -> bool:
            return may_be_null(over_arguments(expression, arguments), self.input, node.required)

        found = recognised(call, frame, nullable)
        if found is None:
            return None
        unbounded = partition, Frame("RANGE")
        own = unbounded if frame.base else window
        values = []
        for part in found.parts:
            argument, filter_ = (
                None if e is None else over_arguments(e, arguments) for e in (part.argument, part.filter)
            )
            bound = BoundCall(lookup(part.function), argument, part.parameters, False, filter_)
            made = self._call(bound, unbounded if part.ever else own)
            values.append(Column(made.type, made.name))
        self.recognised.setdefault(own, {})[node.name] = f"{node.name} on columns ({', '.join(found.functions)})"
        return over_values(found.results[node.result], arguments, values)

    def _taken(self) -> list[str]:
        made = [call.name for calls in self.windows.values() for call in calls.values()]
        made += [column.name for calls in self.programs.values() for call in calls.values() for column in call.outputs]
        return [*self.input.schema.names, *self.computed.found.values(), *made]

    # --- windows ----------------------------------------------------------------------------------------------------

    def _window(self, over: ast.OverClause) -> _Window:
        with over.placing():
            partition = tuple(dict.fromkeys(map(self._partition, over.partition)))
            if over.order is not None:
                self._check_order(over.order)
            return partition, self._frame(over)

    def _partition(self, written: ast.Expr) -> str:
        bound = ExpressionBinder(self.scope, "PARTITION BY").bind(written)
        if isinstance(bound, Literal):
            raise BindError("M2017", "PARTITION BY needs a column", **written.place)
        return self.computed.column(bound, "partition")

    def _check_order(self, written: ast.Expr) -> None:
        bound = ExpressionBinder(self.scope, "ORDER BY").bind(written)
        times = [name for name, offset in self.input.schema.times.items() if offset == 0]
        if not isinstance(bound, Column) or bound.name not in (TS, *times):
            hint = f"write ORDER BY {times[0]}, or leave it out" if times else "leave it out"
            message = "a running aggregate takes tuples in the order of time, not in the order of another expression"
            raise PlanError("M3052", message, hint=hint, **written.place)

    def _frame(self, over: ast.OverClause) -> Frame:
        if over.slide is not None and over.active:
            hint = "SLIDE emits fewer rows, ACTIVE EXPIRATION more: choose one"
            raise PlanError("M3051", "SLIDE together with ACTIVE EXPIRATION", hint=hint)
        if over.active and over.range is None:
            hint = "Only time makes a tuple leave a frame by itself: RANGE 10 SECONDS PRECEDING ACTIVE EXPIRATION"
            raise PlanError("M3051", "ACTIVE EXPIRATION needs a RANGE of time", hint=hint)
        if over.unit == "ROWS":
            slide = None if over.slide is None else int(over.slide.amount)
            if slide == 0:
                raise BindError("M2024", "SLIDE must be positive, found 0", hint="Write a number of rows.")
            return Frame("ROWS", over.rows, slide)
        unit = self.input.schema.unit
        check_units(over)
        size = None if over.range is None else units(over.range, unit, "RANGE", zero=True)
        slide = None if over.slide is None else units(over.slide, unit, "SLIDE")
        return Frame("RANGE", size, slide, over.active)


def _filtered(node: UserCall, condition: ast.Expr) -> PlanError:
    if not is_of_library(node):
        hint = "filter in a subquery of FROM, or pass NULL and declare IGNORE NULLS"
        return PlanError("M3053", "FILTER of a user-defined aggregate needs a grouped window", hint=hint)
    name, over = node.name.upper(), "" if node.over is None else " OVER …"
    message = f"{name}{over} is an aggregate of the library, which has no FILTER"
    assert isinstance(node.versions, UserAggregate)
    if not all(program.ignore_nulls for program in node.versions.versions):
        return PlanError("M3053", message, hint="filter in a subquery of FROM")
    value, *others = [text_of(argument) or "x" for argument in node.arguments] or ["x"]
    case = f"CASE WHEN {text_of(condition) or '…'} THEN {value} END"
    hint = f"{name}({', '.join((case, *others))}){over}: the aggregate ignores NULL"
    return PlanError("M3053", message, hint=hint)


def _of_place(bound: BoundCall, window: _Window, over: ast.OverClause) -> tuple[BoundCall, _Window]:
    """Return a function of the tuple's place in its partition, whose frame SQL ignores, with the frame that it needs:
    ROW_NUMBER counts the tuples so far, LAG(x, n) reads n tuples back."""
    partition, frame = window
    if not frame.every:
        message = f"{bound.function.name} with {'SLIDE' if frame.slide else 'ACTIVE EXPIRATION'}"
        hint = "compute it in a subquery of FROM"
        raise PlanError("M3051", f"{message}: it has a result for each tuple", hint=hint, **over.place)
    if bound.filter is not None or bound.distinct:
        message = f"{bound.function.name} takes neither DISTINCT nor FILTER"
        raise BindError("M2009", message, hint="leave it out")
    if bound.argument is None:
        return BoundCall(lookup("COUNT"), None), (partition, Frame("ROWS"))
    return bound, (partition, Frame("ROWS", bound.parameters[0]))
