"""Bodies over one-row tables as expressions: what INITIALIZE, ITERATE, TERMINATE and EXPIRE make of the state.

A body that a few expressions describe completely has no other tables, no condition on what it returns, and returns one
row at most a block, after the last update.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from millstream.algebra.expression import Binary, Case, Cast, Column, Expression, Literal, rewrite
from millstream.algebra.program.expression import Exists, InQuery, ScalarQuery, walk
from millstream.algebra.program.fixed import one_row_tables
from millstream.algebra.program.program import Program
from millstream.algebra.program.query import Query
from millstream.algebra.program.statement import RETURN, Delete, Insert, Statement, Update
from millstream.algebra.types import Type
from millstream.logical.bind.coercion import cast


class NotSymbolic(Exception):
    """A block does more than a few expressions describe."""


@dataclass(slots=True)
class Block:
    """The state after a block, over the state before it and the arguments; and the row that it returns, over the state
    after it and the arguments. A column of the state is `table.column`."""

    state: dict[str, Expression] = field(default_factory=dict)
    returned: tuple[Expression, ...] | None = None


def symbolic(program: Program, statements: tuple[Statement, ...], *, starts: bool = False) -> Block:
    """The block as expressions; raise NotSymbolic if that is not possible. `starts`: the state is still empty."""
    one_row = one_row_tables(program)
    if len(one_row) != len(program.tables):
        raise NotSymbolic
    columns = {table.name: table.columns for table in program.tables}
    found = Block()
    if not starts:
        for local in program.tables:
            names = [f"{local.name}.{column.name}" for column in local.columns]
            found.state |= {name: Column(c.type, name) for name, c in zip(names, local.columns, strict=True)}
    for statement in statements:
        match statement:
            case Insert(table=table, queries=(query,)) if table == RETURN:
                if found.returned is not None:
                    raise NotSymbolic
                found.returned = tuple(_over_tables(item, query) for item in _single(query))
            case Insert(table=table, queries=(query,)):
                values = [_now(item, query, found) for item in _single(query)]
                names = [f"{table}.{column.name}" for column in columns[table]]
                found.state |= dict(zip(names, values, strict=True))
            case Update() if found.returned is None and statement.table in columns:
                names = [f"{statement.table}.{column.name}" for column in columns[statement.table]]
                found.state |= {
                    names[n]: _updated(names[n], value, statement, found) for n, value in statement.assignments
                }
            case Update() | Delete() | Insert():
                raise NotSymbolic
    return found


def _single(query: Query) -> tuple[Expression, ...]:
    plain = not (query.condition or query.aggregated or query.distinct or query.order or query.limit or query.offset)
    if not plain or any(not isinstance(source.relation, str) or source.outer for source in query.sources):
        raise NotSymbolic
    for item in query.items:
        if any(isinstance(node, ScalarQuery | Exists | InQuery) for node in walk(item)):
            raise NotSymbolic
    return query.items


def _over_tables(item: Expression, query: Query | None) -> Expression:
    """The expression with the names of tables in place of aliases."""
    aliases = {source.alias: source.relation for source in query.sources} if query is not None else {}

    def change(node: Expression) -> Expression | None:
        if not isinstance(node, Column):
            return None
        alias, _, column = node.name.rpartition(".")
        return Column(node.type, f"{aliases.get(alias, alias)}.{column}")

    return simplified(rewrite(item, change))


def _now(item: Expression, query: Query | None, block: Block) -> Expression:
    """The expression over the state before the block."""
    return substituted(_over_tables(item, query), block.state)


def _updated(name: str, value: Expression, statement: Update, block: Block) -> Expression:
    for part in (value, statement.condition):
        if part is not None and any(isinstance(node, ScalarQuery | Exists | InQuery) for node in walk(part)):
            raise NotSymbolic
    new = _now(value, None, block)
    if statement.condition is None:
        return new
    return Case(new.type, ((_now(statement.condition, None, block), new),), block.state[name])


def substituted(expression: Expression, values: dict[str, Expression]) -> Expression:
    """The expression with these values in place of columns."""

    def change(node: Expression) -> Expression | None:
        return values[node.name] if isinstance(node, Column) and node.name in values else None

    return simplified(rewrite(expression, change))


def simplified(expression: Expression) -> Expression:
    """Without casts that change nothing, and without division and multiplication by 1."""

    def change(node: Expression) -> Expression | None:
        match node:
            case Cast(type=type_, operand=operand) if isinstance(operand, Literal):
                made = cast(operand, type_)
                return made if isinstance(made, Literal) else None
            case Binary(op="/" | "*" as op, left=left, right=right):
                left, right = simplified(left), simplified(right)
                if isinstance(right, Literal) and right.value == 1 and left.type is node.type:
                    return left
                if op == "*" and isinstance(left, Literal) and left.value == 1 and right.type is node.type:
                    return right
                return Binary(node.type, op, left, right)
        return None

    made = rewrite(expression, change)
    return made if made.type is not Type.NULL else expression
