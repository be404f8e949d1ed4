"""Statements: their effects on a mill's catalog, streams and queries."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from millstream.algebra.program.program import Program
from millstream.algebra.schema import Schema
from millstream.algebra.types import format_value
from millstream.amounts import amount
from millstream.control.mill.altering import alter_query, shown
from millstream.control.mill.contracts import contract, warn_unpunctuated, warn_unused_windows
from millstream.control.mill.dropping import drop, replaced
from millstream.control.mill.explain_once import explain_once
from millstream.control.mill.feedback_statement import run_feedback
from millstream.control.mill.journal import aggregate_name
from millstream.control.mill.places import switches_of
from millstream.control.mill.sharing import explain_running, explain_start
from millstream.errors import BindError, InputError, MillstreamError, OptionError, PlanError, did_you_mean
from millstream.ingest.tables import read_table
from millstream.lang import ast, parse
from millstream.lang.aggregate.ast import CreateAggregate
from millstream.lang.options import option_place
from millstream.lang.spelling import spelled
from millstream.lang.statements import STAGES
from millstream.lang.table.ast import CreateTableFunction, CreateView, Write, WriteStatement
from millstream.logical.bind import bind_aggregate, bind_derived, bind_select, bind_stream, bind_table
from millstream.logical.bind.table.driven import driven
from millstream.logical.bind.table.once import bind_once, bind_table_function
from millstream.logical.bind.table.relations import is_stream, over_tables, relations
from millstream.logical.catalog import TableDefinition, View
from millstream.logical.explain import explain
from millstream.logical.nodes.multi_join import MultiJoin
from millstream.logical.nodes.scan import Scan
from millstream.logical.plan import Plan
from millstream.optimizer import optimize
from millstream.physical.plan.explain import explain_physical
from millstream.physical.plan.explain_feedback import explain_feedback, switched
from millstream.sinks import SINKS, SinkOptions, delivery_options, make_sink
from millstream.switches import Switches

if TYPE_CHECKING:
    from millstream.control.mill.base import Mill
    from millstream.control.mill.running_query import RunningQuery

CREATES = (ast.CreateStream, ast.CreateTable)
LOG = logging.getLogger("millstream")


def run_statement(mill: Mill, statement: ast.Statement) -> str:
    """Run one statement; return the text of `EXPLAIN` and `SHOW`."""
    with statement.placing():
        try:
            return _run(mill, statement)
        except (OptionError, InputError, BindError) as error:
            named = isinstance(error, InputError) or error.code in ("M2001", "M2002", "M2006")
            placed = isinstance(error, OptionError) or (named and isinstance(statement, CREATES))
            if placed and (place := option_place(statement, error)) is not None:
                error.line, error.column = place["line"], place["column"]
            raise


def _run(mill: Mill, statement: ast.Statement) -> str:
    if isinstance(statement, ast.Created) and statement.unless_exists and exists(mill, statement):
        return ""
    match statement:
        case ast.CreateStream():
            definition = bind_stream(statement, mill.catalog)
            if not mill.journal.recovering:  # what was accepted once is not refused later
                mill.connectors.check(definition)
                warn_unpunctuated(mill, definition)
            mill.catalog.add_stream(definition)
            mill.feeds.open(definition, mill.options.page_rows)
            mill.journal.statement("relation", definition.name, statement.text, definition.named)
        case ast.CreateDerivedStream():
            derived = bind_derived(statement, mill.catalog)
            warn_unused_windows(mill, statement.select)
            mill.catalog.add_derived(statement.name, derived.plan, derived.bad)
            mill.python_code.note(derived.plan)
            read = (*relations(statement.select), *scanned(derived.plan), *called(mill, statement.select))
            mill.journal.statement("relation", statement.name, statement.text, read)
        case ast.CreateTable():
            table = bind_table(statement, mill.catalog)
            mill.catalog.check_free(table.name)
            held = read_table(table)
            mill.tables[table.name], mill.bad_rows[table.name] = held.rows, len(held.bad)
            mill.catalog.add_table(table)
            if (report := held.report(table.name)) and not mill.journal.recovering:
                LOG.warning(report)
            mill.journal.statement("relation", table.name, statement.text, ())
        case CreateTableFunction():
            _create_table_function(mill, statement)
        case CreateView():
            _create_view(mill, statement)
        case CreateAggregate():
            mill.catalog.add_aggregate(bind_aggregate(statement, mill.catalog))
            mill.journal.statement(aggregate_kind(statement), statement.name, statement.text, ())
        case ast.CreateQuery():
            mill.start_query(statement.name, statement.text, statement.select, *sink_of(statement), statement.start)
        case WriteStatement(select=write) if runs_once(mill, write):
            mill.written.write(write, statement.text)
        case ast.SelectStatement(select=query, into=None) if over_tables(query, mill.catalog):
            return "\n".join(" | ".join(map(format_value, row)) for row in mill.written.select(query).rows())
        case ast.SelectStatement():
            name = mill.free_name(stem_of(statement.select))
            text = ast.query_text(name, statement, "now")
            mill.start_query(name, text, statement.select, *sink_of(statement))
        case ast.Drop():
            drop(mill, statement)
        case ast.SetOption():
            mill.set_option(statement.name, statement.value)
        case ast.Explain():
            return _explain(mill, statement)
        case ast.ExplainNamed():
            return _explain_named(mill, statement)
        case ast.FeedbackStatement():
            run_feedback(mill, statement)
        case ast.AlterQuery():
            alter_query(mill, statement)
        case ast.Show():
            return _show(mill, statement.what.upper())
    return ""


def _create_view(mill: Mill, statement: CreateView) -> None:
    held = replaced(mill, statement) if statement.replaces else None
    if held == statement:
        return
    if held is not None:
        mill.catalog.drop("view", statement.name)
    try:
        read = _add_view(mill, statement)
    except MillstreamError:
        if held is not None:
            _add_view(mill, held)
        raise
    mill.journal.statement("relation", statement.name, statement.text, read)


def _add_view(mill: Mill, statement: CreateView) -> list[str]:
    """Add a view: over tables alone it is a query that runs once wherever it is read, otherwise a derived stream.
    Return what it reads."""
    select = statement.select
    read = [*relations(select), *called(mill, select)]
    if over_tables(select, mill.catalog):
        mill.catalog.check_free(statement.name)
        bind_once(select, mill.catalog)
        mill.catalog.add_view(statement.name, View(select))
        return read
    plan = bind_select(select, mill.catalog)
    warn_unused_windows(mill, select)
    mill.catalog.add_derived(statement.name, plan)
    mill.python_code.note(plan)
    return [*read, *scanned(plan)]


def _create_table_function(mill: Mill, statement: CreateTableFunction) -> None:
    view = View(statement.select, statement.arguments)
    mill.catalog.check_free(statement.name)
    read = [*relations(view.query), *called(mill, view.query)]
    if streams := [name for name in relations(view.query) if name in mill.catalog and is_stream(name, mill.catalog)]:
        hint = "an aggregate with OVER returns rows for each tuple of a stream"
        raise PlanError("M3081", f"table function '{statement.name}' reads stream '{streams[0]}'", hint=hint)
    bind_table_function(view, mill.catalog)
    mill.catalog.add_view(statement.name, view)
    mill.journal.statement("relation", statement.name, statement.text, read)


def runs_once(mill: Mill, write: Write) -> bool:
    """Return whether no stream drives a statement that writes a table."""
    write = driven(write, mill.catalog)
    return write.source is None or over_tables(write, mill.catalog)


def stem_of(runs: ast.Runs) -> str:
    """The name of a query that was not named, but for its number."""
    return f"{type(runs.statement).__name__.lower()}_{runs.statement.table}" if isinstance(runs, Write) else "query"


def exists(mill: Mill, statement: ast.Created) -> bool:
    """Return whether a CREATE … IF NOT EXISTS has nothing to do. What exists under the name may be defined otherwise,
    which is logged; if it is of another kind, the name is taken."""
    name, table = statement.name, isinstance(statement, ast.CreateTable)
    kind = "query" if isinstance(statement, ast.CreateQuery) else "relation"
    if isinstance(statement, CreateAggregate):
        kind = aggregate_kind(statement)
    text = mill.journal.texts.get((kind, name))
    if text is None or (kind == "relation" and table != mill.catalog.is_table(name)):
        return False
    (existing,) = parse(text)
    if isinstance(existing, ast.Created) and replace(existing, unless_exists=True) != statement:
        LOG.warning("'%s' exists already with another definition, which stays: %s", name, text)
    return True


def note_query(mill: Mill, query: RunningQuery, select: ast.Runs) -> None:
    """Note a query for recovery."""
    mill.python_code.note(query.plan)
    read = (*relations(select), *scanned(query.plan), *called(mill, select))
    mill.journal.statement("query", query.name, query.text, read)


def scanned(plan: Plan) -> Iterator[str]:
    """The streams that a plan reads, including the streams that close others."""
    return (node.stream for node in plan.walk() if isinstance(node, Scan))


def called(mill: Mill, node: ast.Node) -> Iterator[str]:
    """The user-defined aggregates that a query calls, as the journal names what a query reads."""
    if isinstance(node, ast.Function) and node.name in mill.catalog.aggregates:
        yield aggregate_name(node.name)
    for child in node.children():
        yield from called(mill, child)


def aggregate_kind(statement: CreateAggregate) -> str:
    """The kind of an aggregate in the journal: its versions are two statements."""
    return "window aggregate" if statement.window else "aggregate"


def sink_of(statement: ast.CreateQuery | ast.SelectStatement) -> tuple[str | None, dict[str, str]]:
    """The sink named in the INTO clause of a query, and its options."""
    options = {name: str(value) for name, value in statement.into_options}
    named, connector = statement.into, options.get("connector")
    check_sink_options(options, named)
    if connector and named and SINKS.get(named) is not None and named.lower() != connector.lower():
        message = f"INTO {named} names a sink, and the connector is '{connector}'"
        raise OptionError("M6003", message, hint=f"INTO {connector} WITH (…), without the connector")
    return connector or named, options


def check_sink_options(options: Mapping[str, str], sink: str | None = None) -> None:
    """Raise OptionError if one of the options is set by Millstream itself."""
    for option in sorted(options.keys() & SinkOptions.passed):
        raise OptionError("M6001", f"sink '{sink}' has no option '{option}'", hint="Millstream sets it.")


def check_stage(stage: str) -> None:
    """Raise OptionError unless EXPLAIN knows this stage of a plan."""
    if not isinstance(stage, str) or stage.upper() not in STAGES:
        stages = [each.lower() for each in STAGES]
        hint = did_you_mean(stage, stages) if isinstance(stage, str) else ""
        raise OptionError("M6002", f"stage cannot be {stage!r}: one of {', '.join(stages)}", hint=hint)


def check_sink(statement: ast.CreateQuery | ast.SelectStatement) -> None:
    """Raise an error if the sink of a query is unknown, or an option of it."""
    sink, options = sink_of(statement)
    if sink is not None:
        _, own = delivery_options({name: value for name, value in options.items() if name != "connector"}, sink)
        make_sink(sink, own)


def _explain(mill: Mill, statement: ast.Explain) -> str:
    if not isinstance(statement.statement, ast.CreateDerivedStream):
        check_sink(statement.statement)
        query = statement.statement.select
        if isinstance(query, ast.Query) and over_tables(query, mill.catalog):
            return explain_once(bind_once(query, mill.catalog))
    plan = _bound(mill, statement)
    stage, options = statement.stage.upper(), mill.options
    if stage == "LOGICAL":
        return explain(plan)
    plan = mill.optimized(plan)
    if stage == "CONTRACT":
        return str(contract(mill, plan))
    inner = statement.statement
    name = inner.name if isinstance(inner, ast.CreateQuery) else "query"
    if stage == "FEEDBACK":
        return explain_feedback(mill.prepare(name, plan), switches_of(mill))
    if stage == "PHYSICAL":
        text = explain_physical(mill.prepare(name, plan), options.shards, mill.schedule())
    else:
        text = explain(plan)
    start = ast.NOW if isinstance(statement.statement, ast.CreateDerivedStream) else statement.statement.start
    return text + _switches(mill, name, plan) + explain_start(mill, plan, start) + _why_pairwise(mill, statement)


def _switches(mill: Mill, name: str, plan: Plan) -> str:
    """Lines on the operators whose responses to feedback are switched off; empty if there are none."""
    switches = switches_of(mill)
    return "" if switches == Switches.parse() else switched(mill.prepare(name, plan), switches)


def _bound(mill: Mill, statement: ast.Explain) -> Plan:
    explained = statement.statement
    if isinstance(explained, ast.CreateDerivedStream):
        return bind_derived(explained, mill.catalog).plan
    return bind_select(explained.select, mill.catalog)


def _why_pairwise(mill: Mill, statement: ast.Explain) -> str:
    """A line on the options that keep streams from being joined in one operator; empty if there are none."""
    options = mill.options
    if options.multi_join != "auto" or not options.of_two:
        return ""
    plan = optimize(_bound(mill, statement), mill.catalog, paned=options.paned)
    if not any(isinstance(part, MultiJoin) for part in plan.walk()):
        return ""
    names = " and ".join(options.of_two)
    return f"\n\njoined pairwise because {names} {'is' if len(options.of_two) == 1 else 'are'} set"


def _explain_named(mill: Mill, statement: ast.ExplainNamed) -> str:
    name, stage, shared = statement.name, statement.stage, ""
    plan = named_plan(mill, name)
    if (query := mill.queries.get(name)) is not None:
        if query.failure is not None:
            shared = f"\n\nfailed in batch {query.failure.batch}: {query.failure.text}"
        elif stage not in ("CONTRACT", "FEEDBACK"):
            shared = _switches(mill, name, plan) + explain_running(mill, name)
    if stage == "CONTRACT":
        return str(contract(mill, plan)) + shared
    if stage == "FEEDBACK":
        return explain_feedback(mill.prepare(name, plan), switches_of(mill)) + shared
    if stage == "PHYSICAL":
        return explain_physical(mill.prepare(name, plan), mill.options.shards, mill.schedule()) + shared
    return explain(plan) + shared


def named_plan(mill: Mill, name: str) -> Plan:
    """The plan of a query or a derived stream; raise BindError if there is none of that name."""
    if name in mill.queries:
        return shown(mill.queries[name].plan, mill.queries[name].prodder)
    if name in mill.catalog.derived:
        return mill.optimized(mill.catalog.derived[name])
    if name in mill.catalog:
        kind = "table" if mill.catalog.is_table(name) else "stream"
        hint = f"EXPLAIN SELECT … FROM {spelled(name)}, or the name of a query; SHOW {kind.upper()}S shows its columns"
        raise BindError("M2092", f"'{name}' is a {kind}, not a query", hint=hint)
    known = [*mill.queries, *mill.catalog.derived]
    hint = did_you_mean(name, known) or "there is no query yet: CREATE QUERY … AS SELECT …"
    raise BindError("M2092", f"unknown query '{name}'", hint=hint)


def _output(query: RunningQuery) -> str:
    table = query.plan.writes
    return f"writes {table}" if table else f"{amount(query.rows_out, 'row')} out"


def _trouble(mill: Mill, query: RunningQuery) -> str:
    """What is wrong with a query; empty if nothing is."""
    if query.failure is not None:
        return f", failed in batch {query.failure.batch}: {query.failure.text}"
    if query.finished is not None:
        return ", ended"
    outlet = mill.deliveries.outlets.get(query.name)
    return "" if outlet is None or outlet.trouble is None else f", {outlet.trouble}"


def _shown_table(mill: Mill, table: TableDefinition) -> str:
    counts = mill.written.counts(table.name)
    _, reason = mill.written.refused(table.name)
    bad = f", {counts['bad']} bad{f' (the last: {reason})' if reason else ''}" if counts["bad"] else ""
    written = ", written by streams" if mill.catalog.written(table.name) is not None else ""
    return f"{table.name} {table.schema}: {amount(counts['accepted'], 'row')}{bad}{written}"


def _shown_views(mill: Mill) -> Iterator[str]:
    """The views over tables alone; other views are derived streams."""
    views = [(name, view.query) for name, view in mill.catalog.views if view.arguments is None]
    return (f"{name} {Schema(bind_once(query, mill.catalog).results)}: view" for name, query in views)


def _shown_functions(mill: Mill) -> Iterator[str]:
    """The functions in Python, then the table functions."""
    yield from (str(declared) for declared in mill.catalog.library if declared.kind == "function")
    for name, view in mill.catalog.views:
        if view.arguments is not None:
            arguments, columns = bind_table_function(view, mill.catalog)
            yield f"{spelled(name)}({', '.join(map(str, arguments))}) RETURNS TABLE {Schema(columns)}"


def _show(mill: Mill, what: str) -> str:
    if what == "QUERIES":
        return "\n".join(
            f"{q.name}: {_output(q)}{'' if q.start == 'now' else f', start = {q.start}'}{trouble}"
            for q in mill.queries.values()
            for trouble in [_trouble(mill, q)]
        )
    if what == "FUNCTIONS":
        return "\n".join(_shown_functions(mill))
    if what == "TABLES":
        return "\n".join([*map(partial(_shown_table, mill), mill.catalog.tables), *_shown_views(mill)])
    if what == "AGGREGATES":
        programs = [program for each in mill.catalog.aggregates.values() for program in each.versions]
        lines = [f"{_signature(program)}: {'window' if program.window else 'base'} version" for program in programs]
        lines += [str(declared) for declared in mill.catalog.library if declared.kind == "aggregate"]
        return "\n".join(lines)
    lines = []
    for stream in mill.catalog.streams:
        counts = ", ".join(f"{number} {what}" for what, number in mill.counts(stream.name).items())
        lines.append(f"{stream.name} {stream.schema}: {counts}")
    for name, plan in mill.catalog.derived.items():
        counted = mill.counts(name) if mill.catalog.diverts(name) else {}
        numbers = [f", {number} {what}" for what, number in counted.items()]
        lines.append(f"{name} {plan.schema}: derived{''.join(numbers)}")
    return "\n".join(lines)


def _signature(program: Program) -> str:
    results = [column.type.value if len(program.results) == 1 else str(column) for column in program.results]
    returned = results[0] if len(results) == 1 else f"({', '.join(results)})"
    return f"{spelled(program.name)}({', '.join(map(str, program.arguments))}) : {returned}"
