"""Hints: what would bound a part of a query's state.

A declaration is suggested only if it helps: with it, a second check of the plan finds the part bounded and no other
part newly unbounded. `PUNCTUATED ON` takes away the order of a stream. For an ordered stream the suggestion therefore
adds `PUNCTUATED ON (ts +)`, which keeps its time moving. A source that sends no punctuation gets no `PUNCTUATED ON`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice

from millstream.algebra.punctuation.template import Template
from millstream.algebra.schema import TimeKind
from millstream.logical.catalog import References
from millstream.logical.contract.accordance import Agreed, unbounded
from millstream.logical.contract.names import base_columns
from millstream.logical.contract.offers import Declarations, Time
from millstream.logical.contract.redeclare import (
    changes,
    punctuated,
    redeclared,
    referring,
    stamped,
    watermarked,
    with_stream,
)
from millstream.logical.contract.requirements import AllPunctuated, Punctuated, Refers, TimeMoves
from millstream.logical.contract.state_parts import WAITING, StatePart
from millstream.logical.nodes.scan import Scan
from millstream.logical.plan import Plan

NOTHING = "no declaration of its streams bounds it"


@dataclass(frozen=True, slots=True)
class Suggestion:
    """Changed declarations, and their text in a hint."""

    text: str
    declarations: Declarations


def hint(root: Agreed, at: Agreed, part: StatePart, declarations: Declarations) -> str:
    """Return the hint for an unbounded part of the node `at`."""
    suggestions = tuple(_suggestions(at, part, declarations))
    helpful = (suggestion.text for suggestion in suggestions if _helps(suggestion, root, (at.number, part.name)))
    found = list(islice(helpful, 1))
    below = sorted({number for input_ in at.inputs for number, _ in input_.unbounded()})
    if suggestions and not found and below:
        found.append(f"bound {' and '.join(f'#{number}' for number in below)} first")
    advice = at.plan.advice(part, tuple(input_.offers for input_ in at.inputs))
    return ", or ".join([*found, *advice]) or NOTHING


def _helps(suggestion: Suggestion, root: Agreed, part: tuple[int, str]) -> bool:
    before = root.unbounded().keys()
    after = unbounded(redeclared(root.plan, suggestion.declarations), suggestion.declarations)
    return part not in after and after <= before


def _suggestions(at: Agreed, part: StatePart, declarations: Declarations) -> Iterator[Suggestion]:
    """Yield declarations worth trying, the likeliest first."""
    for requirement in (TimeMoves(at.plan.inputs),) if part.name == WAITING else at.plan.requirements(part):
        match requirement:
            case TimeMoves(inputs):
                yield from _moving_time(inputs, declarations)
            case Punctuated():
                yield from _punctuation(requirement, declarations)
            case AllPunctuated(inputs):
                yield from _punctuation_of_all(inputs, declarations)
            case Refers():
                yield from _references(requirement, declarations)


def _punctuation_of_all(inputs: tuple[Punctuated, ...], declarations: Declarations) -> Iterator[Suggestion]:
    texts: list[str] = []
    for requirement in inputs:
        suggestion = next(_punctuation(requirement, declarations), None)
        if suggestion is None:
            return
        declarations = suggestion.declarations
        texts.append(suggestion.text.removeprefix("declare "))
    yield Suggestion(f"declare {' and '.join(texts)}", declarations)


def _punctuation(requirement: Punctuated, declarations: Declarations) -> Iterator[Suggestion]:
    """Yield, for each column, punctuation on the base columns that it copies."""
    for column in requirement.columns:
        bases = base_columns(requirement.input, column)
        sources = {stream for stream, _ in bases}
        if not bases or not sources <= declarations.streams.keys() or sources & declarations.unpunctuated:
            continue
        streams, texts = dict(declarations.streams), []
        for stream, base in dict.fromkeys(bases):
            definition = streams[stream]
            bound = base == definition.schema.time
            wanted = Template(((base, "+" if bound else requirement.class_),))
            streams[stream] = punctuated(definition, [wanted])
            own = f"PUNCTUATED ON {wanted}"
            texts.append(f"{changes(definition, streams[stream]) or own} on {stream}")
        yield Suggestion(f"declare {' and '.join(texts)}", replace(declarations, streams=streams))


def _references(requirement: Refers, declarations: Declarations) -> Iterator[Suggestion]:
    """Yield, for each pair of columns, a reference of one base column to the primary key of another stream."""
    for own, other in requirement.columns:
        bases, there = base_columns(requirement.input, own), base_columns(requirement.other, other)
        if len(bases) != 1 or len(there) != 1:
            continue
        (stream, column), (keyed, key) = bases[0], there[0]
        definition, referenced = (declarations.streams.get(name) for name in (stream, keyed))
        if definition is not None and referenced is not None and referenced.primary_key == (key,):
            made = referring(definition, References((column,), keyed, (key,)))
            yield Suggestion(f"declare {changes(definition, made)} on {stream}", with_stream(declarations, made))


def _moving_time(plans: tuple[Plan, ...], declarations: Declarations) -> Iterator[Suggestion]:
    """Yield declarations that move the time of every stream whose time does not move."""
    streams, texts, heartbeat = dict(declarations.streams), [], False
    for scan in dict.fromkeys(part for plan in plans for part in plan.walk() if isinstance(part, Scan)):
        if declarations.offers(scan).time is Time.MOVES:
            continue
        definition = streams.get(scan.stream)
        heartbeat = heartbeat or scan.schema.kind is not TimeKind.EXTERNAL
        if definition is None:
            continue
        time = definition.schema.time
        if scan.schema.kind is TimeKind.EXTERNAL and time is not None:
            streams[scan.stream] = watermarked(definition)
            by_source = "" if scan.stream in declarations.unpunctuated else f"PUNCTUATED ON ({time} +) or "
            texts.append(f"{by_source}WATERMARK FOR {time} on {scan.stream}")
        elif not definition.templates:
            streams[scan.stream] = stamped(definition)
            texts.append(f"ORDER BY current_time on {scan.stream}")
    if texts:
        yield Suggestion(f"declare {' and '.join(texts)}", replace(declarations, streams=streams))
    if heartbeat:
        yield Suggestion("SET ets = 'heartbeat'", replace(declarations, ets="heartbeat"))
