"""Tables that streams write: whether the DELETEs that run remove each row sooner or later.

A DELETE removes the rows for which a tuple comes that satisfies its condition. No declaration promises that a tuple
with a certain key comes, so that a DELETE by key bounds nothing. But if the time of a stream moves with its tuples,
they have ever higher times. Such a DELETE removes every row if

- it has no condition, or a conjunction of comparisons `t.column < value`, `t.column <= value`, whose values rise with
  the time of the stream;
- the columns are never NULL (`PRIMARY KEY`, `NOT NULL`) nor NaN;
- it reads the stream as it is: a condition or a join before it might leave out all tuples;
- no UPDATE sets the columns, since it might raise them in all rows again and again. ON CONFLICT DO UPDATE may: each of
  its tuples puts one row in the place of another.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from millstream.algebra.expression import Binary, Column, Expression, conjuncts, rewrite
from millstream.algebra.monotone import monotone
from millstream.algebra.program.expression import Argument, walk
from millstream.algebra.program.statement import Delete, Insert, Update
from millstream.algebra.schema import Schema, TimeKind
from millstream.algebra.types import Type
from millstream.logical.catalog import Catalog
from millstream.logical.contract.offers import Declarations, Time
from millstream.logical.nodes.project import Project
from millstream.logical.nodes.scan import Scan
from millstream.logical.nodes.table_write import TableWrite
from millstream.logical.nodes.written_table import WrittenTable
from millstream.logical.plan import Plan

Writers = Mapping[str, TableWrite]
"""The statements that run, by the names of their queries."""


def with_removal(plan: Plan, writers: Writers, catalog: Catalog, declarations: Declarations) -> Plan:
    """Return the plan with tables that know what removes their rows; the same plan if it has none."""
    if isinstance(plan, WrittenTable):
        return _known(plan, writers, catalog, declarations)
    inputs = tuple(with_removal(input_, writers, catalog, declarations) for input_ in plan.inputs)
    if isinstance(plan, TableWrite):
        return replace(plan, input=inputs[0], target=_known(plan.target, writers, catalog, declarations))
    changed = any(one is not other for one, other in zip(inputs, plan.inputs, strict=True))
    return plan.with_inputs(inputs) if changed else plan


def _known(table: WrittenTable, writers: Writers, catalog: Catalog, declarations: Declarations) -> WrittenTable:
    own = {name: writer for name, writer in writers.items() if writer.table == table.table}
    deleting = {name: writer for name, writer in own.items() if _deletes(writer)}
    definition = catalog.table(table.table)
    set_ = {position for writer in own.values() for position in _updated(writer)}
    lasting = {name for position, name in enumerate(definition.schema.names) if position not in set_}
    lasting &= {*definition.primary_key, *definition.not_null}
    found = {name: list(_removals(name, writer, lasting, declarations)) for name, writer in deleting.items()}
    partly = tuple(name for name, removals in found.items() if not removals)
    return replace(table, removed=tuple(text for texts in found.values() for text in texts), partly=partly)


def _deletes(writer: TableWrite) -> bool:
    return any(isinstance(statement, Delete) for statement in writer.program.iterate)


def _updated(writer: TableWrite) -> Iterator[int]:
    """The positions of the columns that an UPDATE sets."""
    statements = writer.program.iterate
    if not any(isinstance(statement, Insert) and statement.table == writer.table for statement in statements):
        yield from (place for each in statements if isinstance(each, Update) for place, _ in each.assignments)


def _removals(name: str, writer: TableWrite, lasting: set[str], declarations: Declarations) -> Iterator[str]:
    """Yield what removes every row, as text: a DELETE, and the declaration that moves its time."""
    clock = _clock(writer.input, declarations)
    for statement in writer.program.iterate if clock else ():
        if isinstance(statement, Delete) and all(
            _passes(part, lasting, writer.target.table_schema, writer.input.schema)
            for part in conjuncts(statement.condition)
        ):
            yield f"{statement} of query {name} and {clock}"


def _clock(plan: Plan, declarations: Declarations) -> str:
    """The declaration of a stream whose time moves with its tuples; empty if some tuples are left out, or none need
    come."""
    while isinstance(plan, Project):
        plan = plan.input
    if not isinstance(plan, Scan) or plan.schema.kind is not TimeKind.EXTERNAL:
        return ""
    definition, offers = declarations.streams.get(plan.stream), declarations.offers(plan)
    by_tuples = plan.schema.ordered or (definition is not None and definition.watermark is not None)
    return " and ".join(offers.clocks) if by_tuples and offers.time is Time.MOVES else ""


def _passes(condition: Expression, lasting: set[str], table: Schema, source: Schema) -> bool:
    """True if a condition holds for every row from some tuple on."""
    if not isinstance(condition, Binary):
        return False
    match condition.op:
        case "<" | "<=":
            row, value = condition.left, condition.right
        case ">" | ">=":
            row, value = condition.right, condition.left
        case _:
            return False
    if not isinstance(row, Column) or any(isinstance(part, Column) for part in walk(value)):
        return False
    name = row.name.rpartition(".")[2]
    if name not in lasting or not _ordered(table.type_of(name)):
        return False
    found = monotone(rewrite(value, lambda p: Column(p.type, p.name) if isinstance(p, Argument) else None))
    return found is not None and found.rises and found.column in source.trails


def _ordered(type_: Type) -> bool:
    return type_.is_integer or type_ in (Type.TIMESTAMP, Type.DATE)
