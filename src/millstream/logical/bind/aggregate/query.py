"""Binds queries over local tables: FROM, WHERE, GROUP BY, aggregates, ORDER BY and LIMIT."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace

from millstream.algebra.expression import Binary, Cast, Column, Expression, Unary, conjunction, rewrite
from millstream.algebra.program.expression import (
    CallValue,
    Exists,
    GroupValue,
    InQuery,
    Oldest,
    ScalarQuery,
    subqueries,
    walk,
)
from millstream.algebra.program.query import Call, Query, Source
from millstream.algebra.program.statement import INWINDOW, RETURN
from millstream.algebra.schema import Attribute
from millstream.algebra.types import Type
from millstream.amounts import amount
from millstream.errors import BindError, PlanError, did_you_mean
from millstream.lang import ast
from millstream.lang.aggregate import ast as body
from millstream.lang.python_function import PythonFunction
from millstream.lang.table.ast import CalledSource
from millstream.logical.bind.aggregate.calls import Calls, check_over
from millstream.logical.bind.aggregate.rewriting import as_select, unified, with_left_joins, without_aliases
from millstream.logical.bind.aggregate.scope import Entry, FunctionScope, LocalScope
from millstream.logical.bind.aggregate.types import assigned, attributes
from millstream.logical.bind.coercion import cast
from millstream.logical.bind.expressions import ExpressionBinder, Hook
from millstream.logical.bind.operators import COMPARISONS, binary
from millstream.logical.bind.pacing import refuse_pacing

Columns = tuple[Attribute, ...]


def members(written: ast.Query) -> list[ast.Query]:
    """The members of a UNION ALL, or a query alone, as they are written."""
    if isinstance(written, ast.SetOperation) and written.op == "UNION ALL" and not written.tail:
        return [*members(written.left), *members(written.right)]
    return [written]


class _Binder(ExpressionBinder):
    def condition(self, node: ast.Expr) -> Expression:
        return rewrite(super().condition(node), _without_casts)


def _without_casts(node: Expression) -> Expression | None:
    """A comparison of integers of two types without its cast, so that an index finds the rows of its columns."""
    if not (isinstance(node, Binary) and node.op in COMPARISONS and node.left.type.is_integer):
        return None
    sides = (node.left, node.right)
    left, right = (each.operand if isinstance(each, Cast) and each.operand.type is Type.INT else each for each in sides)
    return replace(node, left=left, right=right)


@dataclass(slots=True)
class Body:
    """What the statements of a body can name: tables, aggregates, and the columns of inwindow."""

    tables: dict[str, Columns]
    calls: Calls
    statement: bool = False
    """True for a statement that writes a table: its name is not that of an aggregate."""
    _aliases: dict[str, int] = field(default_factory=dict)

    def columns(self, name: str) -> Columns:
        """The columns of a table that can be read."""
        if name == RETURN:
            hint = "It takes results only: INSERT INTO RETURN …"
            raise BindError("M2042", "RETURN cannot be read", hint=hint)
        if name not in self.tables:
            hint = did_you_mean(name, self.tables)
            if name == INWINDOW and self.calls.window:
                hint = "declare it: TABLE inwindow(…), with the types of the arguments"
            owner = self.calls.name if self.statement else f"aggregate '{self.calls.name}'"
            if name not in self.calls.catalog:
                raise BindError("M2002", f"unknown table '{name}' in {owner}", hint=hint)
            if self.statement:
                sees, hint = "it sees its own table only", "JOIN the stream with that table in a subquery of FROM"
            else:
                sees = "a body sees its own tables only"
                hint = f"pass its values as arguments, or declare TABLE {name} (…) in the body"
            raise BindError("M2002", f"{owner} cannot use '{name}': {sees}", hint=hint)
        return self.tables[name]

    def alias(self, name: str) -> str:
        """An alias that no other source of the program has. The bare name is that of the row of UPDATE and DELETE."""
        number = self._aliases[name] = self._aliases.get(name, 0) + 1
        return f"{name}#{number}"

    # --- expressions ----------------------------------------------------------------------------------------------

    def binder(self, scope: LocalScope, where: str, hook: Hook | None = None) -> ExpressionBinder:
        def local(node: ast.Expr) -> Expression | None:
            found = None if hook is None else hook(node)
            return self._local(node, scope, binder) if found is None else found

        binder = _Binder(scope, where, local)
        return binder

    def _local(self, node: ast.Expr, scope: LocalScope, binder: ExpressionBinder) -> Expression | None:
        match node:
            case body.Oldest():
                return self._oldest(node)
            case body.Exists():
                return Exists(Type.BOOLEAN, self.query(node.query, scope)[0])
            case body.Subquery():
                query, columns = self._single(node.query, scope)
                return ScalarQuery(columns[0].type, query)
            case body.InQuery():
                operand = binder.bind(node.operand)
                query, columns = self._single(node.query, scope)
                binary("=", operand, Column(columns[0].type, "value"))  # raises if they cannot be compared
                return InQuery(Type.BOOLEAN, operand, query)
            case ast.Function(over=ast.OverClause()):
                check_over(node)
            case ast.Function() if self.calls.is_aggregate(node):
                message = f"{node.name.upper()} is an aggregate, not allowed in {binder.where}"
                raise PlanError("M3013", message, hint=f"(SELECT {node.name}(…) FROM …)")
            case ast.Function() if (declared := self.calls.function(node)) is not None:
                marked = {part.name: getattr(node, part.name) for part in fields(node)}
                return binder.unhooked(PythonFunction(**marked, declared=declared))
        return None

    def _single(self, written: ast.Query, scope: LocalScope) -> tuple[Query, Columns]:
        query, columns = self.query(written, scope)
        if len(columns) != 1:
            raise BindError("M2045", f"a subquery in an expression has one column, found {len(columns)}")
        return query, columns

    def _oldest(self, node: body.Oldest) -> Expression:
        if not self.calls.window or INWINDOW not in self.tables:
            hint = "CREATE WINDOW AGGREGATE … { TABLE inwindow(…); … }"
            raise BindError("M2047", "oldest() needs a window aggregate with TABLE inwindow", hint=hint)
        columns = self.tables[INWINDOW]
        names = [column.name for column in columns]
        if node.name is None and len(names) > 1:
            raise BindError("M2047", "oldest() of several columns", hint=f"oldest().{names[0]}")
        name = names[0] if node.name is None else node.name
        if name not in names:
            raise BindError("M2001", f"unknown column '{name}' of inwindow", hint=did_you_mean(name, names))
        position = names.index(name)
        return Oldest(columns[position].type, position, name)

    # --- queries --------------------------------------------------------------------------------------------------

    def union(self, written: ast.Query, scope: LocalScope) -> list[tuple[Query, Columns]]:
        """The members of a UNION ALL, or a query alone."""
        return [self.query(member, scope) for member in members(written)]

    def query(self, written: ast.Query, outer: LocalScope) -> tuple[Query, Columns]:
        with written.placing():
            return self._select(written if isinstance(written, ast.Select) else as_select(written), outer)

    def _select(self, select: ast.Select, outer: LocalScope) -> tuple[Query, Columns]:
        if select.window is not None:
            raise PlanError("M3003", "a query over tables has no windows", hint="leave it out", **select.window.place)
        for node in select.walk():
            if isinstance(node, ast.Function):
                check_over(node)
        select, scope = with_left_joins(select), outer.inside()
        sources, conditions = self._sources(select, scope, outer)
        if select.where is not None:
            conditions.append(self.binder(scope, "WHERE").condition(select.where))
        own = {column.name for entry in scope.entries for column in entry.columns}
        select = replace(select, having=without_aliases(select.having, select.items, own))
        grouping = _Grouping(self, scope, select)
        having = None if select.having is None else grouping.binder("HAVING").condition(select.having)
        named = self._items(select, scope, grouping.binder("SELECT"))
        order = self._order(select, named, grouping.binder("ORDER BY"))
        selected = [item for _, item in named]
        selected += [_is_null(item) for item in selected]
        if select.distinct and any(key not in selected for key, _ in order):
            raise BindError("M3084", "SELECT DISTINCT … ORDER BY a column that is not selected", hint="select it too")
        if grouping.active:
            grouping.check([*(item for _, item in named), *(key for key, _ in order), having])
        refuse_pacing(select.tail)
        counts = {tail.clause: self._count(tail, outer) for tail in select.tail if tail.amount is not None}
        query = Query(
            sources,
            tuple(item for _, item in named),
            conjunction(tuple(conditions)),
            grouping.active,
            tuple(grouping.groups),
            tuple(grouping.calls),
            having,
            select.distinct,
            order,
            counts.get("LIMIT"),
            counts.get("OFFSET"),
        )
        return query, tuple(Attribute(name, item.type) for name, item in named)

    def _sources(
        self, select: ast.Select, scope: LocalScope, outer: LocalScope
    ) -> tuple[tuple[Source, ...], list[Expression]]:
        found: list[Source] = []
        conditions: list[Expression] = []
        for written in select.sources:
            source = written.source
            with source.placing():
                if source.window is not None:
                    raise PlanError("M3003", "a table has no windows", hint="leave it out: all its rows are read")
                if source.arguments is not None and not isinstance(source, CalledSource):
                    hint = "call it in a SELECT over tables"
                    raise PlanError("M3081", f"a table function ('{source.relation}') cannot be called here", hint=hint)
                if source.function is not None:
                    hint = f"{source.function} reads a stream"
                    raise PlanError("M3003", f"'{source.relation}' is a table", hint=hint)
                around = self._called(source, scope) if isinstance(source, CalledSource) else outer
                relation, columns = self._relation(source.relation, around)
                name = source.alias or (source.relation if isinstance(source.relation, str) else "subquery")
                if any(entry.name == name for entry in scope.entries):
                    raise BindError("M2016", f"'{name}' appears twice in FROM", hint="take another alias")
                entry = Entry(name, self.alias(name), columns)
                joined = self._joined(written, entry, scope)
                scope.entries.append(entry)
                if written.on is not None:
                    joined.append(self.binder(scope, "ON").condition(written.on))
                on = None
                if written.kind == "LEFT":
                    on = conjunction(tuple(joined))
                else:
                    conditions += joined
                names = tuple(column.name for column in columns)
                found.append(Source(entry.alias, relation, names, on, written.kind == "LEFT"))
        return tuple(found), conditions

    def _called(self, source: CalledSource, scope: LocalScope) -> LocalScope:
        """The scope of the query of a table function, whose arguments may name the sources before it."""
        wanted, values = attributes(source.parameters, "argument"), source.arguments or ()
        if len(values) != len(wanted):
            plural = "" if len(wanted) == 1 else "s"
            message = f"{source.alias} takes {len(wanted)} argument{plural}, found {len(values)}"
            raise BindError("M2009", message, hint=f"({', '.join(map(str, wanted))})")
        given = {}
        for each, value in zip(wanted, values, strict=True):
            with value.placing():
                bound = self.binder(scope, "an argument of a table function").bind(value)
                given[each.name] = assigned(bound, each.type, f"argument '{each.name}'")
        return FunctionScope((), given=given)

    def _relation(self, written: str | ast.Query, outer: LocalScope) -> tuple[str | Query, Columns]:
        if isinstance(written, str):
            return written, self.columns(written)
        if isinstance(written, ast.SetOperation) and written.op == "UNION ALL" and not written.tail:
            members = self.union(written, outer)
            with written.placing():
                members = unified(members)
            query, columns = Query((), (), members=tuple(member for member, _ in members)), members[0][1]
        else:
            query, columns = self.query(written, outer)
        names = [column.name for column in columns]
        for name in names:
            if names.count(name) > 1:
                raise BindError("M2015", f"column '{name}' appears twice", hint="give it an alias")
        return query, columns

    def _joined(self, written: ast.JoinedSource, entry: Entry, scope: LocalScope) -> list[Expression]:
        """The conditions of USING."""
        found = []
        for name in written.using:
            right = entry.column(name)
            if right is None:
                raise BindError("M3004", f"USING ({name}): there is no such column in '{entry.name}'")
            same = binary("=", scope.resolve(ast.Name((name,), **written.place)), right)
            found.append(rewrite(same, _without_casts))
        return found

    def _items(self, select: ast.Select, scope: LocalScope, binder: ExpressionBinder) -> list[tuple[str, Expression]]:
        found: list[tuple[str, Expression]] = []
        for position, item in enumerate(select.items, 1):
            node = item.expression
            if isinstance(node, ast.Star):
                with node.placing():
                    found += [(name.parts[-1], binder.bind(name)) for name in scope.expand(node)]
                continue
            bound = binder.bind(node)
            bound = cast(bound, Type.VARCHAR) if bound.type is Type.NULL else self.calls.typed(bound)
            named = node.parts[-1] if isinstance(node, ast.Name) else f"column_{position}"
            found.append((item.alias or named, bound))
        return found

    def _order(
        self, select: ast.Select, named: list[tuple[str, Expression]], binder: ExpressionBinder
    ) -> tuple[tuple[Expression, bool], ...]:
        found = []
        for key in (key for tail in select.tail for key in tail.keys):
            node = key.expression
            bound: Expression | None = None
            if isinstance(node, ast.Constant) and type(node.value) is int:
                if not 1 <= node.value <= len(named):
                    raise BindError(
                        "M2017", f"ORDER BY {node.value}: the query has {amount(len(named), 'column')}", **node.place
                    )
                bound = named[node.value - 1][1]
            elif isinstance(node, ast.Name) and len(node.parts) == 1:
                aliases = {item.alias: position for position, item in enumerate(select.items) if item.alias}
                if node.parts[0] in aliases:
                    bound = dict(named)[node.parts[0]]
            bound = bound or binder.bind(node)
            if key.nulls_first:
                found.append((_is_null(bound), True))
            found.append((bound, key.descending))
        return tuple(found)

    def _count(self, tail: ast.Tail, outer: LocalScope) -> Expression:
        assert tail.amount is not None
        with tail.placing():
            match tail.amount:
                case ast.Constant(value=int(amount)) if amount < 0:
                    raise BindError("M2009", f"{tail.clause} must not be negative, found {amount}")
            return assigned(self.binder(outer, tail.clause).bind(tail.amount), Type.BIGINT, tail.clause)


def _is_null(value: Expression) -> Expression:
    return Unary(Type.BOOLEAN, "IS NULL", value)


def _at_position(node: ast.Constant, select: ast.Select) -> ast.Expr:
    """The column of the select list that `GROUP BY 1` means."""
    place = node.value if type(node.value) is int else 0
    if not 1 <= place <= len(select.items):
        message = f"GROUP BY {node.value!r}: the query has {amount(len(select.items), 'column')}"
        raise BindError("M2017", message, hint="name a column, or give its place in the select list", **node.place)
    return select.items[place - 1].expression


class _Grouping:
    """Collects the groups and aggregates of a query while its items are bound."""

    def __init__(self, within: Body, scope: LocalScope, select: ast.Select) -> None:
        self._body, self._scope = within, scope
        self.groups: list[Expression] = []
        self.calls: list[Call] = []
        written = [*(item.expression for item in select.items), *(() if select.having is None else (select.having,))]
        self.active = bool(select.group) or any(map(within.calls.contained, written))
        aliases = {item.alias: item.expression for item in select.items if item.alias}
        for node in select.group:
            own = isinstance(node, ast.Name) and any(entry.column(str(node)) for entry in scope.entries)
            meant = node if own or not isinstance(node, ast.Name) else aliases.get(str(node), node)
            if isinstance(node, ast.Constant):
                meant = _at_position(node, select)
            bound = within.binder(scope, "GROUP BY").bind(meant)
            self.groups.append(within.calls.typed(bound))

    def binder(self, where: str) -> ExpressionBinder:
        return self._body.binder(self._scope, where, self._hook if self.active else None)

    def _hook(self, node: ast.Expr) -> Expression | None:
        calls = self._body.calls
        if isinstance(node, ast.Function) and calls.is_aggregate(node):
            call = calls.bind(node, self._argument)
            if call not in self.calls:
                self.calls.append(call)
            return CallValue(call.type, self.calls.index(call))
        if calls.contained(node) or isinstance(node, ast.Constant):
            return None
        bound = self._body.binder(self._scope, "SELECT").bind(node)
        if bound in self.groups:
            return GroupValue(bound.type, self.groups.index(bound))
        if isinstance(bound, Column) and self._scope.owns(bound):
            hint = f"add it to GROUP BY, or aggregate it: MAX({node})"
            raise PlanError("M3016", f"column '{node}' is neither in GROUP BY nor inside an aggregate", hint=hint)
        return None

    def check(self, expressions: list[Expression | None]) -> None:
        """Refuse a subquery of the result that reads a column which the groups no longer have."""
        for query in (query for each in expressions if each is not None for query in subqueries(each)):
            for inner in query.walk():
                for column in (node for each in inner.expressions() for node in walk(each)):
                    if isinstance(column, Column) and self._scope.owns(column):
                        raise PlanError("M3016", f"column '{column}' is used in a subquery of a grouped query")

    def _argument(self, node: ast.Expr) -> Expression:
        if self._body.calls.contained(node):
            raise PlanError("M3018", "an aggregate inside an aggregate", hint="Aggregate in a subquery first.")
        return self._body.binder(self._scope, "an aggregate").bind(node)
