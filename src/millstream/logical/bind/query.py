"""Binds SELECT: FROM and WHERE, then grouping, then the select list, DISTINCT and UNION ALL."""

from __future__ import annotations

from dataclasses import replace

from millstream.algebra.expression import Column, Expression, Literal, conjunction, conjuncts, rename
from millstream.algebra.schema import TimeKind
from millstream.algebra.types import Type
from millstream.errors import BindError, PlanError
from millstream.lang import ast
from millstream.logical.bind.aggregate.user_calls import user_calls, with_user_calls
from millstream.logical.bind.aggregate_call import check_names, refuse_without_over
from millstream.logical.bind.coercion import cast, common
from millstream.logical.bind.emit import emitting
from millstream.logical.bind.expressions import ExpressionBinder, contains_aggregate, contains_over
from millstream.logical.bind.from_clause import bind_entries, scope_of
from millstream.logical.bind.grouping import AggregateBinder, AggregateWindow, meant
from millstream.logical.bind.join.conjunct_sets import Conjuncts
from millstream.logical.bind.join.joins import JoinBinder
from millstream.logical.bind.join.linked import check_linked
from millstream.logical.bind.join.outer import OUTER, check_outer
from millstream.logical.bind.limit import limited
from millstream.logical.bind.operators import binary
from millstream.logical.bind.over import OverBinder
from millstream.logical.bind.pacing import paced
from millstream.logical.bind.scope import Entry, Scope
from millstream.logical.bind.subqueries import refuse_subqueries
from millstream.logical.catalog import Catalog
from millstream.logical.contract.names import time_units
from millstream.logical.nodes.distinct import Distinct
from millstream.logical.nodes.project import Project, copies
from millstream.logical.nodes.select import Select
from millstream.logical.nodes.union import Union
from millstream.logical.plan import Plan
from millstream.logical.windows import aggregate_window, attribute_unit, refuse_slide


def bind_select(query: ast.Query, catalog: Catalog) -> Plan:
    """Return the plan of a query: names resolved, types checked, nothing optimized."""
    try:
        return _query(query, catalog)
    except RecursionError:
        raise PlanError("M3099", "the query is nested too deeply", **query.place) from None


def _query(query: ast.Query, catalog: Catalog) -> Plan:
    with query.placing():
        bare = replace(query, tail=())
        plan = _select(bare, catalog) if isinstance(bare, ast.Select) else _union(bare, catalog)
        for clause in query.tail:
            if isinstance(clause, ast.Pacing):
                plan = paced(clause, plan, [(member, _query(member, catalog)) for member in _members(bare)])
            elif isinstance(clause, ast.Emit):
                plan = emitting(clause, plan, catalog)
            else:
                plan = limited(clause, plan, query.tail)
        return plan


# --- UNION ALL --------------------------------------------------------------------------------------------------------


def _union(query: ast.SetOperation, catalog: Catalog) -> Plan:
    members: list[Plan] = []
    for written in _members(query):
        plan = _query(written, catalog)
        members += plan.members if isinstance(plan, Union) and not members else (plan,)
    first = members[0].schema
    types = _types(members[0])
    for member in members[1:]:
        if len(member.schema) != len(first):
            raise BindError("M2018", f"UNION ALL of {len(first)} and {len(member.schema)} columns")
        for position, type_ in enumerate(_types(member)):
            mixed = common(types[position], type_)
            if mixed is None:
                given = f"{types[position].value} and {type_.value}"
                raise BindError("M2018", f"UNION ALL: column {position + 1} ('{first.names[position]}') mixes {given}")
            types[position] = mixed
    if len(time_units(*members)) > 1 and all(member.schema.kind is not TimeKind.LATENT for member in members):
        hint = "All time columns have to be TIMESTAMP, or all BIGINT; a stream without one counts as TIMESTAMP."
        raise BindError("M2018", "UNION ALL of streams that count time in different units", hint=hint)
    types = [Type.VARCHAR if type_ is Type.NULL else type_ for type_ in types]
    return Union(tuple(_as_types(member, types) for member in members))


def _types(plan: Plan) -> list[Type]:
    """Return the types of a member's columns; a literal NULL has type NULL, so that the other members decide."""
    types = [attribute.type for attribute in plan.schema]
    if isinstance(plan, Project):
        for position, (_, item) in enumerate(plan.items):
            if isinstance(item, Literal) and item.value is None:
                types[position] = Type.NULL
    return types


_INSTEAD = {
    "UNION": "UNION ALL keeps duplicates; SELECT DISTINCT over it removes them.",
    "INTERSECT": "a JOIN on all columns, and SELECT DISTINCT",
    "EXCEPT": "a LEFT JOIN on all columns, then WHERE b.k IS NULL keeps the tuples without a partner",
}
"""What to write instead of a set operation."""


def _members(query: ast.Query) -> list[ast.Query]:
    if isinstance(query, ast.Select) or query.tail:
        return [query]
    if query.op != "UNION ALL":
        message = f"{query.op} is not possible in a continuous query"
        raise PlanError("M3019", message, hint=_INSTEAD[query.op.split()[0]], **query.place)
    return [*_members(query.left), *_members(query.right)]


def _as_types(plan: Plan, types: list[Type]) -> Plan:
    columns = zip(copies(plan.schema), types, strict=True)
    return _projected(plan, tuple((name, cast(column, type_)) for (name, column), type_ in columns))


# --- SELECT -----------------------------------------------------------------------------------------------------------


def _select(select: ast.Select, catalog: Catalog) -> Plan:
    select = with_user_calls(select, catalog)
    entries = bind_entries(select.sources, catalog, _query)
    refuse_subqueries(select)
    named = {item.alias: item.expression for item in select.items if item.alias}
    totals = frozenset(alias for alias, expression in named.items() if contains_aggregate(expression))
    scope = replace(scope_of(entries), aliases=frozenset(named), aggregates=totals)
    plan, scope = _from(select, entries, scope, accepted=catalog.replaying)
    scope = replace(scope, aggregates=frozenset())
    for item in select.items:
        check_names(item)
    aggregates = any(contains_aggregate(item.expression) for item in select.items)
    own = any(call.over is None for item in select.items for call in user_calls(item.expression))
    if own and _window_clause(select, entries) is None:
        plan = _returning(select, scope, plan)
    elif any(contains_over(item.expression) for item in select.items):
        plan = _running(select, entries, scope, plan)
    elif aggregates or own or select.group or select.having is not None:
        plan = _aggregated(select, entries, scope, plan)
    else:
        _check_window(select, entries, scope)
        scope = replace(scope, joined=True)
        plan = _projected(plan, _items(select, scope, ExpressionBinder(scope, "SELECT")))
    if select.distinct and (arrays := [a for a in plan.schema if a.type.is_array]):
        message = f"SELECT DISTINCT of an array ('{arrays[0].name}') is not possible"
        raise BindError("M2017", message, hint="select its text: CAST(x AS VARCHAR)", **select.place)
    return Distinct(plan) if select.distinct else plan


def _from(select: ast.Select, entries: tuple[Entry, ...], scope: Scope, *, accepted: bool) -> tuple[Plan, Scope]:
    """Bind FROM and WHERE: joins take the conditions that connect their inputs, a selection on top takes the rest.
    A statement that was `accepted` once is not refused later."""
    sequence, where = (None, []) if select.where is None else _without_sequence(select.where)
    on: dict[str, tuple[Expression, ...]] = {}
    for position, entry in enumerate(entries):
        on[entry.alias] = _on(entry, entries[: position + 1], scope)
        if entry.written.kind in OUTER:
            check_outer(entry, entries[:position], sequence)
    binder = ExpressionBinder(scope, "WHERE")
    waiting, conditions = Conjuncts(), tuple(binder.condition(condition) for condition in where)
    if len(entries) == 1:
        if sequence is not None:
            raise PlanError("M3006", "SEQ needs two streams in FROM", **sequence.place)
        plan = entries[0].plan
        assert plan is not None
        waiting.add(conjunction(conditions))
    else:
        if not accepted:
            check_linked(entries, on, zip(where, conditions, strict=True), sequence)
        joins = JoinBinder(entries, waiting, on, conditions)
        plan = joins.join(sequence)
        scope = replace(scope, same=joins.keys.same)
    rest = conjunction(tuple(rename(conjunct, dict(scope.same)) for conjunct in waiting.rest()))
    return plan if rest is None else Select(plan, rest), scope


def _on(entry: Entry, visible: tuple[Entry, ...], scope: Scope) -> tuple[Expression, ...]:
    """Return the conjuncts of ON or USING, over the entries up to this one."""
    written = entry.written
    if written.on is not None:
        return conjuncts(ExpressionBinder(replace(scope, entries=visible), "ON").condition(written.on))
    owners = [(name, next(e for e in visible if name in e.schema)) for name in written.using]
    return tuple(binary("=", scope.column(owner, name), scope.column(entry, name)) for name, owner in owners)


def _without_sequence(where: ast.Expr) -> tuple[ast.SequenceTest | None, list[ast.Expr]]:
    """Return the SEQ test, or None, and the other conditions."""
    parts: list[ast.Expr] = []
    open_parts = [where]
    while open_parts:
        part = open_parts.pop()
        if isinstance(part, ast.Binary) and part.op == "AND":
            open_parts += [part.right, part.left]
        else:
            parts.append(part)
    tests = [part for part in parts if isinstance(part, ast.SequenceTest)]
    if len(tests) > 1:
        raise PlanError("M3006", "more than one SEQ is not available yet", **tests[1].place)
    return (tests[0] if tests else None), [part for part in parts if part not in tests]


# --- windows and aggregates -------------------------------------------------------------------------------------------


def _window_clause(select: ast.Select, entries: tuple[Entry, ...]) -> ast.WindowClause | None:
    """Return the window of the result: the WINDOW clause, or the bracket of the only stream."""
    streams = [entry for entry in entries if entry.plan is not None]
    bracket = streams[0].window if len(streams) == 1 else None
    if bracket is not None and select.window is not None:
        raise PlanError("M3021", "two windows: one after the stream, one in WINDOW", **select.window.place)
    if bracket is not None and bracket.key_join:
        raise streams[0].fail("M3045", "KEY JOIN needs a join of two streams", "leave it out")
    return select.window or bracket


def _check_window(select: ast.Select, entries: tuple[Entry, ...], scope: Scope) -> None:
    """Check a window without an aggregate: it has no effect on a selection, but must be valid."""
    clause = _window_clause(select, entries)
    if clause is None:
        return
    if clause.function is not None:
        hint = "add one, such as COUNT(*)"
        raise PlanError("M3015", f"{clause.function} needs an aggregate", hint=hint, **clause.place)
    if clause.slide is not None:
        refuse_slide(clause.slide)
    _attribute(clause, scope)


def _attribute(clause: ast.WindowClause, scope: Scope) -> Column | None:
    if clause.attribute is None:
        return None
    name = ast.Name((clause.attribute,), **clause.place)
    column = ExpressionBinder(scope, "a window").bind(name)
    assert isinstance(column, Column)
    if not column.type.is_integer and column.type is not Type.TIMESTAMP:
        message = f"a window needs a TIMESTAMP or BIGINT column, '{column.name}' is {column.type.value}"
        raise BindError("M2026", message, **clause.place)
    return column


def _aggregate_window(select: ast.Select, entries: tuple[Entry, ...], scope: Scope, plan: Plan) -> AggregateWindow:
    clause = _window_clause(select, entries)
    attribute = None if clause is None else _attribute(clause, scope)
    schema = plan.schema
    if attribute is not None and attribute.name == schema.time:
        attribute = None
    unit = schema.unit if attribute is None else attribute_unit(attribute.type.is_integer)
    window = None if clause is None else aggregate_window(clause, unit)
    if window is not None and attribute is None and len(time_units(plan)) > 1:
        hint = "name the column to window on: [RANGE 10 ON ts]"
        raise PlanError("M3024", "a window over streams that count time in different units", hint=hint)
    if window is None:
        if not select.group:
            written = (select.having, *(item.expression for item in select.items))
            if not any(contains_aggregate(node) or any(user_calls(node)) for node in written if node is not None):
                raise PlanError("M3022", "HAVING selects groups, and there are none", hint="WHERE selects tuples")
            streams = [entry for entry in entries if entry.plan is not None]
            example = "WINDOW [RANGE 60 SECONDS]" if len(streams) > 1 else f"{streams[0].alias} [RANGE 60 SECONDS]"
            message = "an aggregate over a whole stream never has a result"
            raise PlanError("M3022", message, hint=f"add a window: {example}")
        return AggregateWindow()
    return AggregateWindow(window, None if attribute is None else attribute.name, unit == 1)


def _aggregated(select: ast.Select, entries: tuple[Entry, ...], scope: Scope, plan: Plan) -> Plan:
    for written in (*select.items, *([] if select.having is None else [select.having])):
        refuse_without_over(written)
    window = _aggregate_window(select, entries, scope, plan)
    aliases = {item.alias: item.expression for item in select.items if item.alias is not None}
    aggregate = AggregateBinder(scope, plan, window, aliases)
    aggregate.add_groups(select)
    having = None if select.having is None else aggregate.binder("HAVING").condition(select.having)
    items = _items(select, scope, aggregate.binder("SELECT"), grouped=True)
    aggregate.estimate_of(item for _, item in items)
    grouped = aggregate.plan()
    return _projected(aggregate.revised(grouped if having is None else Select(grouped, having)), items)


def _running(select: ast.Select, entries: tuple[Entry, ...], scope: Scope, plan: Plan) -> Plan:
    """Bind a select list with running aggregates, a row for each tuple."""
    if select.group or select.having is not None or any(contains_aggregate(item.expression) for item in select.items):
        clause = "GROUP BY" if select.group else "HAVING" if select.having is not None else "an aggregate without OVER"
        hint = "Aggregate in a subquery of FROM first, and compute the running aggregate over its rows."
        if select.having is not None and not select.group:
            hint = "compute the running aggregate in a subquery of FROM, and select its rows with WHERE"
        alone = (item.expression for item in select.items if contains_aggregate(item.expression))
        where = select.group[0] if select.group else select.having or next(alone)
        raise PlanError("M3050", f"OVER together with {clause}", hint=hint, **where.place)
    _check_window(select, entries, scope)
    if len(time_units(plan)) > 1:
        hint = "a running aggregate over each of them; or groups over both, by a column: [RANGE 10 ON ts]"
        raise PlanError("M3024", "a running aggregate over streams that count time in different units", hint=hint)
    over = OverBinder(scope, plan)
    try:
        items = _items(select, scope, over.binder())
    except PlanError as error:
        # built-in functions and compiled aggregates need operators of their own, which some windows do not allow
        if error.code != "M3053" or not over.recognised:
            raise
        over = OverBinder(scope, plan, recognises=False)
        items = _items(select, scope, over.binder())
    return _projected(over.plan(), items)


def _returning(select: ast.Select, scope: Scope, plan: Plan) -> Plan:
    """Bind a select list with user-defined aggregates without OVER: rows as the aggregates return them."""
    expressions = [item.expression for item in select.items]
    if select.having is not None or any(contains_aggregate(node) or contains_over(node) for node in expressions):
        what = "HAVING" if select.having is not None else "another aggregate"
        hint = "Compute one of them in a subquery of FROM."
        others = (node for node in expressions if contains_aggregate(node) or contains_over(node))
        place = (select.having or next(others)).place
        raise PlanError("M3050", f"a user-defined aggregate without OVER together with {what}", hint=hint, **place)
    over = OverBinder(scope, plan)
    groups = [ExpressionBinder(scope, "GROUP BY").bind(meant(node, select, scope)) for node in select.group]
    over.groups = tuple(dict.fromkeys(over.computed.column(group, "group") for group in groups))
    items = _items(select, scope, over.binder())
    return _projected(over.plan(), items)


# --- the select list --------------------------------------------------------------------------------------------------


def _items(
    select: ast.Select, scope: Scope, binder: ExpressionBinder, *, grouped: bool = False
) -> tuple[tuple[str, Expression], ...]:
    """Bind the select list, every item under a unique name."""
    found: list[tuple[str, Expression]] = []
    for position, item in enumerate(select.items, 1):
        node = item.expression
        if isinstance(node, ast.Star):
            if grouped:
                message = "* cannot be combined with GROUP BY or aggregates"
                raise PlanError("M3023", message, hint="name the columns", **node.place)
            with node.placing():
                found += scope.expand(node)
        else:
            found.append(_item(item, position, binder))
    return _unique(found)


def _item(item: ast.SelectItem, position: int, binder: ExpressionBinder) -> tuple[str, Expression]:
    name = item.alias or _name(item.expression, position)
    if name.startswith("__"):
        raise BindError("M2015", f"'{name}' is a reserved name", hint="take one without __", **item.place)
    bound = binder.bind(item.expression)
    # A column of NULLs needs a type, whichever.
    return name, cast(bound, Type.VARCHAR) if bound.type is Type.NULL else bound


def _name(node: ast.Expr, position: int) -> str:
    match node:
        case ast.Name():
            return node.parts[-1]
        case ast.Function():
            return node.name
        case ast.Cast():
            return _name(node.operand, position)
        case ast.Case():
            return "case"
        case ast.Extract():
            return node.part.lower()
    return f"column_{position}"


def _unique(items: list[tuple[str, Expression]]) -> tuple[tuple[str, Expression], ...]:
    """Number equal names: `k`, `k_1`."""
    written = {name for name, _ in items}
    taken: set[str] = set()
    result = []
    for name, expression in items:
        unique, number = name, 1
        while unique in taken or (unique != name and unique in written):
            unique, number = f"{name}_{number}", number + 1
        taken.add(unique)
        result.append((unique, expression))
    return tuple(result)


def _projected(plan: Plan, items: tuple[tuple[str, Expression], ...]) -> Plan:
    """Return a projection, or the plan itself if the projection would change nothing."""
    return plan if items == copies(plan.schema) else Project(plan, items)
