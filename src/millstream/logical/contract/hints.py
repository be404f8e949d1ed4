"""What would bound a part of a query's state.

A declaration is suggested only if it helps: the plan is checked again as if the streams had it, and the part must then
be bounded without another one becoming unbounded. `PUNCTUATED ON` takes away the order of a stream, so for an ordered
one the suggestion keeps its time moving by `PUNCTUATED ON (ts +)`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from millstream.algebra.punctuation.template import Template
from millstream.algebra.schema import TimeKind
from millstream.logical.catalog import StreamDefinition
from millstream.logical.contract.check import Contract, check
from millstream.logical.contract.names import base_columns
from millstream.logical.contract.offers import Declarations, Time
from millstream.logical.contract.state_parts import WAITING, Closed, Moving, StatePart, Together
from millstream.logical.nodes.scan import Scan
from millstream.logical.plan import Plan


@dataclass(frozen=True, slots=True)
class Remedy:
    """Other declarations, in words and as they would be."""

    text: str
    declarations: Declarations


def hint(root: Contract, at: Contract, part: StatePart, declarations: Declarations) -> str:
    """What to do about an unbounded part of the node `at`."""
    remedies = tuple(_remedies(at, part, declarations))
    useful = (remedy.text for remedy in remedies if _helps(remedy, root, (at.number, part.name)))
    found = [text for text in (next(useful, None),) if text is not None]
    below = sorted({number for input_ in at.inputs for number, _ in input_.unbounded()})
    if remedies and not found and below:
        found.append(f"bound {' and '.join(f'#{number}' for number in below)} first")
    advice = at.plan.advice(part, tuple(input_.offers for input_ in at.inputs))
    return ", or ".join([*found, *advice]) or "no declaration of its streams bounds it"


def _helps(remedy: Remedy, root: Contract, part: tuple[int, str]) -> bool:
    before = root.unbounded().keys()
    after = check(_redeclared(root.plan, remedy.declarations), remedy.declarations).unbounded().keys()
    return part not in after and after <= before


def _redeclared(plan: Plan, declarations: Declarations) -> Plan:
    """The plan over streams as they are declared there."""
    if isinstance(plan, Scan):
        definition = declarations.streams.get(plan.stream)
        return plan if definition is None else replace(plan, stream_schema=definition.schema)
    return plan.with_inputs(tuple(_redeclared(input_, declarations) for input_ in plan.inputs))


def _remedies(at: Contract, part: StatePart, declarations: Declarations) -> Iterator[Remedy]:
    """Declarations worth trying, the likeliest first."""
    for cure in (Moving(at.plan.inputs),) if part.name == WAITING else at.plan.cures(part):
        match cure:
            case Moving(inputs):
                yield from _moving(inputs, declarations)
            case Closed():
                yield from _closing(cure, declarations)
            case Together(parts):
                yield from _by_all(parts, declarations)


def _by_all(cures: tuple[Closed, ...], declarations: Declarations) -> Iterator[Remedy]:
    """Each of several inputs does its part."""
    texts: list[str] = []
    for cure in cures:
        remedy = next(_closing(cure, declarations), None)
        if remedy is None:
            return
        declarations = remedy.declarations
        texts.append(remedy.text.removeprefix("declare "))
    yield Remedy(f"declare {' and '.join(texts)}", declarations)


def _closing(cure: Closed, declarations: Declarations) -> Iterator[Remedy]:
    """Punctuation on each of the columns, wherever it comes from."""
    for column in cure.columns:
        bases = base_columns(cure.input, column)
        if not bases or any(stream not in declarations.streams for stream, _ in bases):
            continue
        streams, texts = dict(declarations.streams), []
        for stream, base in dict.fromkeys(bases):
            definition = streams[stream]
            bound = base == definition.schema.time
            wanted = [Template(((base, "+" if bound else cure.class_),))]
            if definition.schema.kind is TimeKind.EXTERNAL and definition.schema.ordered and not bound:
                wanted.append(Template(((str(definition.schema.time), "+"),)))
            streams[stream] = _punctuated(definition, wanted)
            texts.append(f"{' '.join(f'PUNCTUATED ON {template}' for template in wanted)} on {stream}")
        yield Remedy(f"declare {' and '.join(texts)}", replace(declarations, streams=streams))


def _punctuated(definition: StreamDefinition, templates: list[Template]) -> StreamDefinition:
    templates = list(dict.fromkeys((*definition.templates, *templates)))
    moves = Template(((str(definition.schema.time), "+"),)) in templates
    schema = replace(definition.schema, ordered=False, moves=moves)
    return replace(definition, schema=schema, templates=tuple(templates))


def _moving(plans: tuple[Plan, ...], declarations: Declarations) -> Iterator[Remedy]:
    """Time for every stream that has none."""
    streams, texts, beats = dict(declarations.streams), [], False
    for scan in dict.fromkeys(part for plan in plans for part in plan.walk() if isinstance(part, Scan)):
        if declarations.offers(scan).time is Time.MOVES:
            continue
        definition = streams.get(scan.stream)
        beats = beats or scan.schema.kind is not TimeKind.EXTERNAL
        if definition is None:
            continue
        time = definition.schema.time
        if scan.schema.kind is TimeKind.EXTERNAL and time is not None:
            streams[scan.stream] = _punctuated(definition, [Template(((time, "+"),))])
            texts.append(f"PUNCTUATED ON ({time} +) or WATERMARK FOR {time} on {scan.stream}")
        elif not definition.templates:
            schema = replace(definition.schema, kind=TimeKind.INTERNAL, ordered=True, moves=True)
            streams[scan.stream] = replace(definition, schema=schema)
            texts.append(f"ORDER BY current_time on {scan.stream}")
    if texts:
        yield Remedy(f"declare {' and '.join(texts)}", replace(declarations, streams=streams))
    if beats:
        yield Remedy("SET ets = 'heartbeat'", replace(declarations, ets="heartbeat"))
