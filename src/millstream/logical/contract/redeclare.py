"""Other declarations of the same streams, to ask what they would bound."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from millstream.algebra.punctuation.template import UP_TO, Template
from millstream.algebra.schema import TimeKind
from millstream.logical.catalog import References, StreamDefinition
from millstream.logical.contract.offers import Declarations, foreign_keys
from millstream.logical.nodes.scan import Scan
from millstream.logical.plan import Plan


def redeclared(plan: Plan, declarations: Declarations) -> Plan:
    """Return the plan over the streams of other declarations."""
    if isinstance(plan, Scan):
        definition = declarations.streams.get(plan.stream)
        return plan if definition is None else replace(plan, stream_schema=definition.schema)
    return plan.with_inputs(tuple(redeclared(input_, declarations) for input_ in plan.inputs))


def with_stream(declarations: Declarations, definition: StreamDefinition) -> Declarations:
    return replace(declarations, streams={**declarations.streams, definition.name: definition})


def punctuated(definition: StreamDefinition, templates: Iterable[Template]) -> StreamDefinition:
    """Return a stream with more punctuation. It takes the order away: an ordered stream gets bounds on its time, which
    keep it moving."""
    schema, wanted = definition.schema, list(templates)
    rising = Template(((str(schema.time), UP_TO),))
    if schema.kind is TimeKind.EXTERNAL and schema.ordered and rising not in wanted:
        wanted.append(rising)
    every = tuple(dict.fromkeys((*definition.templates, *wanted)))
    return replace(definition, schema=replace(schema, ordered=False, moves=rising in every), templates=every)


def watermarked(definition: StreamDefinition, delay: int = 0) -> StreamDefinition:
    """Return a stream whose time moves with a watermark."""
    rising = Template(((str(definition.schema.time), UP_TO),))
    return replace(punctuated(definition, [rising]), watermark=delay)


def ascending(definition: StreamDefinition, name: str) -> StreamDefinition:
    """Return a stream with a column that never falls."""
    return replace(definition, ascending=(*definition.ascending, name))


def keyed(definition: StreamDefinition, name: str) -> StreamDefinition:
    """Return a stream with a primary key."""
    return replace(definition, primary_key=(name,))


def referring(definition: StreamDefinition, reference: References) -> StreamDefinition:
    """Return a stream with one more foreign key."""
    return replace(definition, references=(*definition.references, reference))


def stamped(definition: StreamDefinition) -> StreamDefinition:
    """Return a stream whose tuples are stamped on entry, in order."""
    schema = replace(definition.schema, kind=TimeKind.INTERNAL, ordered=True, moves=True)
    return replace(definition, schema=schema)


def changes(before: StreamDefinition, after: StreamDefinition) -> str:
    """Return the clauses that one definition has and another has not, as text."""
    watermark = after.watermark is not None and before.watermark is None
    rising = Template(((str(after.schema.time), UP_TO),))
    added = [t for t in after.templates if t not in before.templates and not (watermark and t == rising)]
    clauses = [f"PUNCTUATED ON {template}" for template in added]
    if watermark:
        delay = f" AS {after.schema.time} - {after.watermark}" if after.watermark else ""
        clauses.append(f"WATERMARK FOR {after.schema.time}{delay}")
    if after.schema.kind is TimeKind.INTERNAL and before.schema.kind is not TimeKind.INTERNAL:
        clauses.append("ORDER BY current_time")
    if after.primary_key and not before.primary_key:
        clauses.append(f"PRIMARY KEY ({', '.join(after.primary_key)})")
    clauses += [f"ASCENDING ({name})" for name in after.ascending if name not in before.ascending]
    clauses += [str(each) for each in foreign_keys(after) if each not in foreign_keys(before)]
    return " ".join(clauses)
