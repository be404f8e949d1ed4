"""Advice: declarations with which a query has an accordance, the weakest first.

The schemes of the sources are left open. Candidates are single clauses; one is relevant if it would bound a part of the
state, or help to, were all of them declared. Sets of relevant clauses are tried by size, and by strength within a size:
`(k +)` promises more than `(k #)`. A set that has all clauses of an earlier one, or stronger ones, is left out. If none
of a few clauses suffices, clauses are left out of all of them as long as the others do, the strongest first.

A clause that a source could derive from its rows by itself (`ASCENDING`, `PRIMARY KEY`, a watermark) is a candidate
only if rows at hand obey it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import combinations

from millstream.algebra.punctuation.template import SINGLE, UP_TO, Template
from millstream.algebra.schema import TimeKind
from millstream.algebra.types import Type
from millstream.logical.catalog import References, StreamDefinition
from millstream.logical.contract.accordance import state_of, unbounded
from millstream.logical.contract.names import compares_units
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
from millstream.logical.nodes.scan import Scan
from millstream.logical.plan import Plan

LARGEST = 4
"""Most clauses in a piece of advice."""
TRIED = 300
"""Most sets of clauses that are tried."""
SHOWN = 3
"""Most alternatives."""

Change = Callable[[StreamDefinition], StreamDefinition]


@dataclass(frozen=True, slots=True)
class Clause:
    """A clause that a stream could declare; `column` and `strength` compare it with others. `evidence`: why it may be
    suggested, if rows at hand obey it."""

    stream: str
    origin: str
    column: str = ""
    strength: int = 0
    evidence: str = ""
    change: Change = field(default=lambda definition: definition, compare=False)

    def at_least(self, other: Clause) -> bool:
        """True if it promises as much."""
        same = (self.stream, self.column) == (other.stream, other.column)
        return same and (self == other if not self.column else self.strength >= other.strength)


HEARTBEAT = Clause("", "heartbeats of ", strength=1)
"""`SET ets = 'heartbeat'`."""


@dataclass(frozen=True, slots=True)
class Alternative:
    """Clauses that give a query an accordance, with their text."""

    clauses: tuple[Clause, ...]
    text: str
    declarations: Declarations

    def __str__(self) -> str:
        return self.text


def alternatives(plan: Plan, declarations: Declarations, derivable: Iterable[Clause] = ()) -> tuple[Alternative, ...]:
    """Return what to declare so that all state of a plan is bounded; nothing if it is, or if no declaration does it."""
    if not unbounded(plan, declarations):
        return ()
    candidates = [*_candidates(plan, declarations), *derivable]
    relevant = sorted(_relevant(plan, declarations, candidates), key=lambda c: (c.strength, c.evidence == ""))
    found: list[Alternative] = []

    def tried_with(clauses: Sequence[Clause]) -> Declarations | None:
        """The declarations with these clauses, if they suffice."""
        tried = declared_with(declarations, clauses)
        changed = redeclared(plan, tried)
        return None if compares_units(changed) or unbounded(changed, tried) else tried

    def add(clauses: tuple[Clause, ...]) -> None:
        if (tried := tried_with(clauses)) is not None:
            found.append(Alternative(clauses, _text(clauses, declarations, tried), tried))

    for number, clauses in enumerate(_sets(relevant)):
        if len(found) == SHOWN or number == TRIED:
            break
        if any(_as_strong(clauses, earlier.clauses) for earlier in found):
            continue
        add(clauses)
    if not found:
        add(_fewest(relevant, lambda clauses: tried_with(clauses) is not None))
    return tuple(found)


def _fewest(relevant: Sequence[Clause], suffice: Callable[[Sequence[Clause]], bool]) -> tuple[Clause, ...]:
    """Return clauses of which none can be left out; none if all do not suffice. The relevant ones come by strength."""
    for strength in sorted({clause.strength for clause in relevant}):
        left = [clause for clause in relevant if clause.strength <= strength]
        if suffice(left):
            for clause in reversed(left):
                fewer = [other for other in left if other != clause]
                left = fewer if suffice(fewer) else left
            return tuple(left)
    return ()


def _sets(relevant: Sequence[Clause]) -> Iterator[tuple[Clause, ...]]:
    for size in range(1, min(LARGEST, len(relevant)) + 1):
        yield from sorted(combinations(relevant, size), key=lambda clauses: sum(c.strength for c in clauses))


def _as_strong(clauses: tuple[Clause, ...], earlier: tuple[Clause, ...]) -> bool:
    return all(any(own.at_least(other) for own in clauses) for other in earlier)


def _relevant(plan: Plan, declarations: Declarations, candidates: list[Clause]) -> list[Clause]:
    """The clauses behind a bound, were all clauses of a kind declared. The kinds are tried apart and together, since
    punctuation takes an order away."""
    kinds = {(bool(c.column), c.strength, c.stream == "") for c in candidates}
    groups = [[c for c in candidates if (bool(c.column), c.strength, c.stream == "") == kind] for kind in kinds]
    bounds: set[str] = set()
    for group in (*groups, candidates):
        tried = declared_with(declarations, tuple(group))
        parts = state_of(redeclared(plan, tried), tried).values()
        bounds |= {bound for part in parts for bound in part.bounds}
    return [c for c in candidates if any(c.origin in bound for bound in bounds)]


def declared_with(declarations: Declarations, clauses: Sequence[Clause]) -> Declarations:
    """Return the declarations with more clauses."""
    for clause in clauses:
        if clause == HEARTBEAT:
            declarations = replace(declarations, ets="heartbeat")
        else:
            changed = clause.change(declarations.streams[clause.stream])
            declarations = with_stream(declarations, changed)
    return declarations


def _text(clauses: tuple[Clause, ...], before: Declarations, after: Declarations) -> str:
    parts: list[str] = []
    for stream in dict.fromkeys(clause.stream for clause in clauses if clause != HEARTBEAT):
        parts.append(f"{changes(before.streams[stream], after.streams[stream])} on {stream}")
    declared = [f"declare {' and '.join(parts)}"] if parts else []
    setting = ["SET ets = 'heartbeat'"] if HEARTBEAT in clauses else []
    evidence = "; ".join(dict.fromkeys(clause.evidence for clause in clauses if clause.evidence))
    return " and ".join([*declared, *setting]) + (f" ({evidence})" if evidence else "")


def _candidates(plan: Plan, declarations: Declarations) -> Iterator[Clause]:
    """Yield all clauses that the streams of a plan do not declare yet."""
    heartbeat = False
    for scan in dict.fromkeys(part for part in plan.walk() if isinstance(part, Scan)):
        definition = declarations.streams.get(scan.stream)
        heartbeat |= scan.schema.kind is not TimeKind.EXTERNAL
        if definition is None:
            continue
        sends = scan.stream not in declarations.unpunctuated
        if sends:
            yield from _punctuations(definition)
        if declarations.offers(scan).time is not Time.MOVES:
            yield from _times(definition, sends)
    yield from _foreign_keys(plan, declarations)
    if heartbeat and declarations.ets != "heartbeat":
        yield HEARTBEAT


def _punctuations(definition: StreamDefinition) -> Iterator[Clause]:
    schema = definition.schema
    for name in schema.names:
        classes = (SINGLE,) if schema.type_of(name) is Type.BOOLEAN else (SINGLE, UP_TO)
        if schema.type_of(name).is_array or name == schema.time:
            continue
        for class_ in classes:
            template = Template(((name, class_),))
            if template not in definition.templates:
                origin = f"{definition.name} PUNCTUATED ON {template}"
                change = partial(punctuated, templates=[template])
                yield Clause(definition.name, origin, name, int(class_ == UP_TO), change=change)


def _foreign_keys(plan: Plan, declarations: Declarations) -> Iterator[Clause]:
    """Yield the references of each column to each primary key of its type."""
    read = dict.fromkeys(part.stream for part in plan.walk() if isinstance(part, Scan))
    streams = [declarations.streams[name] for name in read if name in declarations.streams]
    for there in (stream for stream in streams if len(stream.primary_key) == 1):
        (key,) = there.primary_key
        type_ = there.schema.type_of(key)
        for own in (stream for stream in streams if stream is not there):
            for name in own.schema.names:
                other, made = own.schema.type_of(name), References((name,), there.name, (key,))
                alike = other is type_ or (other.is_integer and type_.is_integer)
                if alike and name != own.schema.time and made not in own.references:
                    origin = f"{own.name} {name} REFERENCES {there.name} ({key})"
                    yield Clause(own.name, origin, change=partial(referring, reference=made))


def _times(definition: StreamDefinition, sends: bool) -> Iterator[Clause]:
    """Yield the clauses that move the time of a stream."""
    name, time = definition.name, definition.schema.time
    if definition.schema.kind is TimeKind.EXTERNAL and time is not None:
        rising = Template(((time, UP_TO),))
        if sends:
            yield Clause(name, f"{name} PUNCTUATED ON {rising}", change=partial(punctuated, templates=[rising]))
        yield Clause(name, f"{name} WATERMARK FOR {time}", strength=1, change=watermarked)
    elif not definition.templates:
        yield Clause(name, f"{name} ORDER BY current_time", change=stamped)
