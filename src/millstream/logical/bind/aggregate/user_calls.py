"""Finds the user-defined aggregates in a select list, and chooses the version that a call uses.

| call | version |
|---|---|
| without OVER | base, if it does not block |
| `UNBOUNDED PRECEDING` | base, and TERMINATE after each tuple |
| finite frame | window, or else base over the whole frame |
| `ROWS`, slide ≥ window | base, for each slot anew |
| slide < window | ALGEBRAIC: base, then window; others: as without a slide |

Where the base version is used and only a built-in function has one, the call is that of the built-in function.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, replace
from typing import Any, TypeVar

from millstream.algebra.aggregate import functions as aggregates
from millstream.algebra.aggregate.row_call import RowCall
from millstream.algebra.expression import Expression
from millstream.algebra.frame import Frame
from millstream.algebra.program.call import ProgramCall
from millstream.algebra.program.program import Program
from millstream.algebra.python.aggregate_call import PythonAggregateCall
from millstream.algebra.python.definition import Declaration
from millstream.errors import BindError, PlanError, did_you_mean
from millstream.lang import ast
from millstream.lang.aggregate.ast import UserCall
from millstream.lang.expression_text import text_of
from millstream.lang.python_function import PythonFunction
from millstream.logical.bind.aggregate.calls import matched
from millstream.logical.bind.aggregate.library import find, is_of_library
from millstream.logical.bind.expressions import ExpressionBinder, Names, contains_aggregate, contains_over
from millstream.logical.bind.functions import check_known
from millstream.logical.bind.python_functions import python_arguments
from millstream.logical.catalog import Catalog, UserAggregate

Item = TypeVar("Item")


def with_user_calls(select: ast.Select, catalog: Catalog) -> ast.Select:
    """The query with its user-defined aggregates and its Python functions marked. An aggregate that returns several
    columns becomes several items."""
    items: list[ast.SelectItem] = []
    for item in select.items:
        found = _marked(item, catalog)
        call = found.expression
        names = _result_names(call) if isinstance(call, UserCall) else []
        if isinstance(call, UserCall) and len(names) > 1:
            stem = "" if item.alias is None else f"{item.alias}_"
            items += [
                replace(found, expression=replace(call, result=n), alias=stem + name) for n, name in enumerate(names)
            ]
            continue
        for inner in user_calls(call):
            if len(_result_names(inner)) > 1:
                message = f"{inner.name} returns several columns and cannot be part of an expression"
                raise BindError("M2009", message, **inner.place)
        items.append(found)
    return replace(
        select,
        items=tuple(items),
        sources=tuple(
            replace(
                each, on=_marked(each.on, catalog), source=replace(each.source, work=_marked(each.source.work, catalog))
            )
            for each in select.sources
        ),
        where=_marked(select.where, catalog),
        group=_marked(select.group, catalog),
        having=_marked(select.having, catalog),
    )


def user_calls(node: ast.Node) -> Iterator[UserCall]:
    """The calls of user-defined aggregates inside."""
    if isinstance(node, UserCall):
        yield node
    for child in node.children():
        yield from user_calls(child)


def _marked(node: Item, catalog: Catalog) -> Item:
    made: Any = node
    if isinstance(node, tuple):
        made = tuple(_marked(part, catalog) for part in node)
    elif isinstance(node, ast.Node):
        values = {field.name: getattr(node, field.name) for field in fields(node)}
        changed = {name: _marked(value, catalog) for name, value in values.items()}
        if any(changed[name] is not values[name] for name in values):
            made = replace(node, **changed)
        if isinstance(made, ast.Function) and (found := _found(made, catalog)) is not None:
            return _meant(made, found, catalog)  # type: ignore[return-value]
        if isinstance(made, ast.Function) and aggregates.find(made.name) is None:
            own = [*catalog.aggregates, *(declared.name for declared in catalog.library)]
            if did_you_mean(made.name, own):  # it may be meant
                with made.placing():
                    check_known(made.name, own)
        return made  # type: ignore[no-any-return]
    return made if made != node else node


def _found(node: ast.Function, catalog: Catalog) -> UserAggregate | Declaration | None:
    return catalog.user_defined(node.name) or find(node.name, catalog, over=node.over is not None)


def _meant(node: ast.Function, found: UserAggregate | Declaration, catalog: Catalog) -> ast.Function:
    own = {field.name: getattr(node, field.name) for field in fields(node)}
    if isinstance(found, Declaration):
        return UserCall(**own, versions=found) if found.methods else PythonFunction(**own, declared=found)
    if found.base is None and _uses_base(node.over) and aggregates.find(node.name) is not None:
        return node
    required = {stream.name: frozenset(stream.required) for stream in catalog.streams}
    return UserCall(**own, versions=found, required=required)


def _uses_base(over: ast.OverClause | None) -> bool:
    if over is None or (over.rows is None and over.range is None):
        return True
    return over.rows is not None and over.slide is not None and over.slide.amount > over.rows


def _versions(call: UserCall) -> UserAggregate:
    assert isinstance(call.versions, UserAggregate)
    return call.versions


def _result_names(call: UserCall) -> list[str]:
    if isinstance(call.versions, Declaration):
        return [name for name, _ in call.versions.returns]
    return [result.name for result in _versions(call).versions[0].results]


def row_call(node: UserCall, frame: Frame, name: str, arguments: tuple[str, ...]) -> RowCall:
    """The call over a frame; raise PlanError if the aggregate cannot compute it."""
    if isinstance(node.versions, Declaration):
        return _python_call(node.versions, frame, name, arguments)
    return program_call(node, frame, name, arguments)


def bound_arguments(node: UserCall, scope: Names) -> list[Expression]:
    """The arguments as they are written, with their names resolved."""
    if node.star or node.distinct:
        raise _meaningless(node)
    for written in node.arguments:
        if contains_aggregate(written) or contains_over(written) or any(user_calls(written)):
            raise PlanError("M3018", "an aggregate inside an aggregate", hint="Aggregate in a subquery first.")
    return [ExpressionBinder(scope, node.name).bind(written) for written in node.arguments]


def _meaningless(node: UserCall) -> BindError:
    built_in = aggregates.find(node.name)
    if node.star or built_in is None or not is_of_library(node):
        return BindError("M2009", f"{node.name}({'*' if node.star else 'DISTINCT …'}) means nothing")
    name = node.name.upper()
    if built_in.idempotent:
        message = f"{name}(DISTINCT …) OVER: DISTINCT has no effect here"
        return BindError("M2009", message, hint=f"leave it out: {name}({_written(node)}) OVER …")
    message = f"{name}(DISTINCT …) OVER is not available"
    return BindError("M2009", message, hint=f"QUANTILE_CONT(DISTINCT {_written(node)}) OVER …, which is exact")


def _written(node: UserCall) -> str:
    return ", ".join(text_of(argument) or "x" for argument in node.arguments)


def given_arguments(node: UserCall, frame: Frame, bound: list[Expression]) -> tuple[Expression, ...]:
    """The arguments of a call, in the types that the aggregate declares."""
    if isinstance(node.versions, Declaration):
        return python_arguments(node.versions, bound)
    return matched(program_call(node, frame, "", ()).program, bound)


def _python_call(declared: Declaration, frame: Frame, name: str, arguments: tuple[str, ...]) -> PythonAggregateCall:
    if frame.base and "terminate" in declared.methods:
        detail = "It has terminate, which runs at the end of the input; a stream has no end."
        hint = f"over a window: {declared.name}(…) OVER (RANGE UNBOUNDED PRECEDING)"
        raise PlanError("M3060", f"aggregate '{declared.name}' is blocking", detail=detail, hint=hint)
    return PythonAggregateCall(name, arguments, declared)


def base_version(node: UserCall) -> Program:
    """The base version; raise PlanError if there is none."""
    found = _versions(node).base
    if found is None:
        hint = f"{node.name}(…) OVER (ROWS 9 PRECEDING)"
        raise PlanError("M3062", f"aggregate '{node.name}' has only a window version", hint=hint)
    return found


def program_call(node: UserCall, frame: Frame, name: str, arguments: tuple[str, ...]) -> ProgramCall:
    """The call over a frame; raise PlanError if no version can compute it."""
    found = _versions(node)
    if frame.base:
        if base_version(node).blocking:
            detail = "It has TERMINATE, which runs at the end of the input; a stream has no end."
            hint = f"over a window: {node.name}(…) OVER (RANGE UNBOUNDED PRECEDING)"
            raise PlanError("M3060", f"aggregate '{node.name}' is blocking", detail=detail, hint=hint)
        return ProgramCall(name, arguments, found.base)
    if frame.active and found.window is not None and not found.window.returns_on_expiry:
        hint = "add INSERT INTO RETURN … to EXPIRE, or leave ACTIVE EXPIRATION out"
        raise PlanError("M3061", f"EXPIRE of aggregate '{node.name}' returns nothing", hint=hint)
    return ProgramCall(name, arguments, found.base, found.window)
