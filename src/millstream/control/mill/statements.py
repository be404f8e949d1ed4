"""Statements: their effects on a mill's catalog, streams and queries."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from millstream.errors import BindError, did_you_mean
from millstream.ingest.tables import read_table
from millstream.lang import ast
from millstream.logical.bind import bind_select, bind_stream, bind_table
from millstream.logical.contract.explain import explain_contract
from millstream.logical.explain import explain
from millstream.logical.nodes.multi_join import MultiJoin
from millstream.logical.nodes.scan import Scan
from millstream.logical.plan import Plan
from millstream.optimizer import optimize
from millstream.physical.plan.explain import explain_physical

if TYPE_CHECKING:
    from millstream.control.mill.base import Mill


def run_statement(mill: Mill, statement: ast.Statement) -> str:
    """Run one statement; return the text of `EXPLAIN` and `SHOW`."""
    with statement.placing():
        return _run(mill, statement)


def _run(mill: Mill, statement: ast.Statement) -> str:
    match statement:
        case ast.CreateStream():
            definition = bind_stream(statement, mill.catalog)
            mill.catalog.add_stream(definition)
            mill.feeds.open(definition, mill.options.page_rows)
            closed = (clause.stream for clause in definition.closes)
            mill.journal.statement("relation", definition.name, statement.text, closed)
        case ast.CreateDerivedStream():
            derived = bind_select(statement.select, mill.catalog)
            mill.catalog.add_derived(statement.name, derived)
            read = (*relations(statement.select), *scanned(derived))
            mill.journal.statement("relation", statement.name, statement.text, read)
        case ast.CreateTable():
            table = bind_table(statement, mill.catalog)
            mill.catalog.check_free(table.name)
            mill.tables[table.name] = read_table(table.schema, dict(table.options))
            mill.catalog.add_table(table)
            mill.journal.statement("relation", table.name, statement.text, ())
        case ast.CreateQuery():
            mill.start_query(statement.name, statement.text, statement.select, *sink_of(statement))
        case ast.SelectStatement():
            name = mill.free_name()
            text = f"CREATE QUERY {name} AS {statement.text}"
            mill.start_query(name, text, statement.select, *sink_of(statement))
        case ast.Drop():
            _drop(mill, statement)
        case ast.SetOption():
            mill.set_option(statement.name, statement.value)
        case ast.Explain():
            return _explain(mill, statement)
        case ast.ExplainNamed():
            return _explain_named(mill, statement.name)
        case ast.Show():
            return _show(mill, statement.what.upper())
    return ""


def relations(node: ast.Node) -> Iterator[str]:
    """The names of all relations that a query reads, as spelled in its text."""
    if isinstance(node, ast.Source) and isinstance(node.relation, str):
        yield node.relation
    for child in node.children():
        yield from relations(child)


def scanned(plan: Plan) -> Iterator[str]:
    """The streams that a plan reads, including the streams that close others."""
    return (node.stream for node in plan.walk() if isinstance(node, Scan))


def sink_of(statement: ast.CreateQuery | ast.SelectStatement) -> tuple[str | None, dict[str, str]]:
    """The sink named in the INTO clause of a query, and its options."""
    options = {name: str(value) for name, value in statement.into_options}
    return options.get("connector", statement.into), options


def _drop(mill: Mill, statement: ast.Drop) -> None:
    kind, name = statement.kind.lower(), statement.name
    if kind == "query":
        if name in mill.queries or not statement.if_exists:
            mill.stop_query(mill.query(name).name)
        return
    readers = mill.journal.readers(name)
    if readers:
        what, reader = readers[0]
        reading = "query" if what == "query" else "stream"
        message = f"{kind} '{name}' is read by {reading} '{reader}'"
        raise BindError("M2093", message, hint=f"DROP {reading.upper()} {reader} first")
    if mill.catalog.drop(kind, name, if_exists=statement.if_exists):
        mill.forget(name)


def _explain(mill: Mill, statement: ast.Explain) -> str:
    plan = bind_select(statement.statement.select, mill.catalog)
    stage, options = statement.stage.upper(), mill.options
    if stage == "LOGICAL":
        return explain(plan)
    plan = mill.optimized(plan)
    if stage == "CONTRACT":
        return explain_contract(plan, mill.catalog, options.ets)
    if stage == "PHYSICAL":
        text = explain_physical(mill.prepare("query", plan), options.shards, options.strategy)
    else:
        text = explain(plan)
    return text + _why_pairwise(mill, statement)


def _why_pairwise(mill: Mill, statement: ast.Explain) -> str:
    """A line on the options that keep streams from being joined in one operator; empty if there are none."""
    options = mill.options
    if options.multi_join != "auto" or not options.of_two:
        return ""
    plan = optimize(bind_select(statement.statement.select, mill.catalog), mill.catalog, paned=options.paned)
    if not any(isinstance(part, MultiJoin) for part in plan.walk()):
        return ""
    names = " and ".join(options.of_two)
    return f"\n\njoined pairwise because {names} {'is' if len(options.of_two) == 1 else 'are'} set"


def _explain_named(mill: Mill, name: str) -> str:
    if name in mill.queries:
        plan = mill.queries[name].plan
    elif name in mill.catalog.derived:
        plan = mill.optimized(mill.catalog.derived[name])
    else:
        known = [*mill.queries, *mill.catalog.derived]
        raise BindError("M2092", f"unknown query '{name}'", hint=did_you_mean(name, known))
    return explain_contract(plan, mill.catalog, mill.options.ets)


def _show(mill: Mill, what: str) -> str:
    if what == "QUERIES":
        return "\n".join(f"{q.name}: {q.output.rows_out} rows out" for q in mill.queries.values())
    if what == "TABLES":
        held = ((table, mill.tables[table.name].height) for table in mill.catalog.tables)
        return "\n".join(f"{table.name} {table.schema}: {rows} rows" for table, rows in held)
    lines = []
    for stream in mill.catalog.streams:
        counts = ", ".join(f"{number} {what}" for what, number in mill.counts(stream.name).items())
        lines.append(f"{stream.name} {stream.schema}: {counts}")
    lines += [f"{name} {plan.schema}: derived" for name, plan in mill.catalog.derived.items()]
    return "\n".join(lines)
