"""FROM: looks up each entry and names it by its alias."""

from __future__ import annotations

from collections.abc import Callable

from millstream.algebra.schema import TimeKind
from millstream.errors import BindError, PlanError, did_you_mean
from millstream.lang import ast
from millstream.logical.bind.expensive import worked_on
from millstream.logical.bind.instrument import instrumented
from millstream.logical.bind.scope import Entry, Scope
from millstream.logical.bind.table.called import check_called
from millstream.logical.catalog import Catalog
from millstream.logical.contract.names import time_units
from millstream.logical.nodes.denoise import Denoise
from millstream.logical.plan import Plan
from millstream.logical.windows import units

QueryBinder = Callable[[ast.Query, Catalog], Plan]


def bind_entries(sources: tuple[ast.JoinedSource, ...], catalog: Catalog, bind_query: QueryBinder) -> tuple[Entry, ...]:
    """Bind all entries of FROM; at least one must be a stream, and no alias may appear twice."""
    found: list[Entry] = []
    for written in sources:
        entry = _entry(written, len(found) + 1, catalog, bind_query)
        if any(entry.alias == other.alias for other in found):
            source = written.source
            message = f"'{entry.alias}' appears twice in FROM"
            hint = "take another alias" if source.alias else f"give them aliases: {entry.alias} a, {entry.alias} b"
            raise BindError("M2016", message, hint=hint, **source.place)
        found.append(entry)
    if all(entry.plan is None for entry in found):
        hint = "A continuous query reads at least one stream; a SELECT without name and INTO reads tables alone."
        raise found[0].fail("M3002", f"'{found[0].table}' is a table", hint)
    return tuple(found)


def _entry(written: ast.JoinedSource, position: int, catalog: Catalog, bind_query: QueryBinder) -> Entry:
    source = written.source
    relation = source.relation
    if not isinstance(relation, str):
        alias = source.alias or f"subquery{position}"
        plan = instrumented(source, worked_on(written, _denoised(source, bind_query(relation, catalog)), alias))
        return Entry(alias, plan.schema, written, plan)
    alias = source.alias or relation
    with source.placing():
        check_called(source, relation, catalog)
        if catalog.is_table(relation):
            schema = catalog.table(relation).schema
            if source.window is not None or source.function is not None:
                raise PlanError("M3003", f"'{relation}' is a table and has no windows", hint="Leave the bracket out.")
            return Entry(alias, schema, written, table=relation, changes=catalog.written(relation))
        if catalog.view(relation) is not None:
            what = "view" if source.arguments is None else "function"
            message = f"'{relation}' is a {what} over tables, which a stream cannot be joined with"
            raise PlanError("M3081", message, hint="join its tables")
        plan = instrumented(source, worked_on(written, _denoised(source, catalog.plan(relation)), alias))
    return Entry(alias, plan.schema, written, plan)


def _denoised(source: ast.Source, plan: Plan) -> Plan:
    clause = source.denoising
    if clause is None:
        return plan
    schema = plan.schema
    with clause.placing():
        for name in clause.key:
            if name not in schema:
                raise BindError("M2001", f"no column '{name}' to denoise by", hint=did_you_mean(name, schema.names))
            if schema.type_of(name).is_array:
                raise BindError("M2017", f"DENOISE by an array ('{name}') is not possible")
        if clause.threshold < 1:
            raise BindError("M2024", f"the threshold of DENOISE must be positive, found {clause.threshold}")
        if schema.kind is TimeKind.LATENT or not (schema.ordered or schema.moves):
            hint = "declare ORDER BY, with WATERMARK FOR or PUNCTUATED ON (ts +) if tuples come in another order"
            raise PlanError("M3029", "DENOISE needs a stream that can be put into the order of time", hint=hint)
        if len(time_units(plan)) > 1:
            raise PlanError("M3024", "DENOISE of a stream whose tuples count time in different units")
        length = units(clause.range, schema.unit, "the window of DENOISE", zero=True)
    return Denoise(plan, clause.key, length, clause.threshold, clause.mode)


def scope_of(entries: tuple[Entry, ...]) -> Scope:
    """Return the scope of these entries; a column of USING counts once."""
    merged: set[str] = set()
    for position, entry in enumerate(entries):
        for name in entry.written.using:
            owners = [other for other in entries[:position] if name in other.schema]
            if name not in entry.schema or not owners:
                where = f"in '{entry.alias}'" if name not in entry.schema else "before it"
                both = [c for c in entry.schema.names if any(c in other.schema for other in entries[:position])]
                hint = did_you_mean(name, both) or "Write ON with the two columns."
                raise entry.fail("M3004", f"USING ({name}): there is no such column {where}", hint)
            merged.add(name)
    return Scope(entries, frozenset(merged))
