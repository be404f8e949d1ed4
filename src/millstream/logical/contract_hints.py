"""What would bound a part of a query's state.

A declaration is suggested only if it helps: the plan is checked again as if the streams had it, and the part must then
be bounded without another one becoming unbounded. `PUNCTUATED ON` takes away the order of a stream, so for an ordered
one the suggestion keeps its time moving by `PUNCTUATED ON (ts +)`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from millstream.algebra.expression import Binary, conjuncts
from millstream.algebra.schema import TimeKind
from millstream.algebra.template import Template
from millstream.logical import plan as node
from millstream.logical.catalog import StreamDefinition
from millstream.logical.contract_check import Contract, check
from millstream.logical.contract_names import base_columns
from millstream.logical.contract_offers import Declarations, Time
from millstream.logical.contract_parts import WAITING, Part, named, timed, windowed
from millstream.logical.multi_join import MultiJoin
from millstream.logical.outer_join import OuterJoin
from millstream.logical.plan import Plan


@dataclass(frozen=True, slots=True)
class Remedy:
    """Other declarations, in words and as they would be."""

    text: str
    declarations: Declarations


def hint(root: Contract, at: Contract, part: Part, declarations: Declarations) -> str:
    """What to do about an unbounded part of the node `at`."""
    remedies = tuple(_remedies(at, part, declarations))
    useful = (remedy.text for remedy in remedies if _helps(remedy, root, (at.number, part.name)))
    found = [text for text in (next(useful, None),) if text is not None]
    below = sorted({number for input_ in at.inputs for number, _ in input_.unbounded()})
    if remedies and not found and below:
        found.append(f"bound {' and '.join(f'#{number}' for number in below)} first")
    return ", or ".join([*found, *_windows(at, part)]) or "no declaration of its streams bounds it"


def _helps(remedy: Remedy, root: Contract, part: tuple[int, str]) -> bool:
    before = root.unbounded().keys()
    after = check(_redeclared(root.plan, remedy.declarations), remedy.declarations).unbounded().keys()
    return part not in after and after <= before


def _redeclared(plan: Plan, declarations: Declarations) -> Plan:
    """The plan over streams as they are declared there."""
    if isinstance(plan, node.Scan):
        definition = declarations.streams.get(plan.stream)
        return plan if definition is None else replace(plan, stream_schema=definition.schema)
    return plan.with_inputs(tuple(_redeclared(input_, declarations) for input_ in plan.inputs))


def _remedies(at: Contract, part: Part, declarations: Declarations) -> Iterator[Remedy]:
    """Declarations worth trying, the likeliest first."""
    plan = _carried_out(at.plan)
    if part.name == WAITING:
        yield from _moving(plan.inputs, declarations)
        return
    match plan:
        case node.WindowJoin():
            other = plan.inputs[1 - part.side]
            if (plan.left_window, plan.right_window)[part.side].range is not None:
                yield from _moving((other,), declarations)
            yield from _closing(other, (pair[1 - part.side] for pair in plan.keys), declarations)
        case MultiJoin():
            yield from _by_all(plan, part.side, declarations)
        case node.Sequence():
            yield from _closing(plan.second, (b for _, b in plan.keys), declarations)
        case node.WindowAggregate() | node.PaneAggregate():
            if timed(plan):
                yield from _moving(plan.inputs, declarations)
            elif plan.attribute is not None:
                yield from _closing(plan.input, (plan.attribute,), declarations, "+")
            yield from _closing(plan.input, plan.group, declarations)
        case node.Distinct():
            yield from _closing(plan.input, plan.schema.names, declarations)


def _by_all(plan: MultiJoin, side: int, declarations: Declarations) -> Iterator[Remedy]:
    """What bounds an input of a join of several: each of the other inputs does its part."""
    others = [place for place in range(len(plan.members)) if place != side]
    if plan.windows[side].range is not None:
        yield from _moving(tuple(plan.members[place] for place in others), declarations)
    texts: list[str] = []
    for place in others:
        remedy = next(_closing(plan.members[place], plan.keys[place], declarations), None)
        if remedy is None:
            return
        declarations = remedy.declarations
        texts.append(remedy.text.removeprefix("declare "))
    yield Remedy(f"declare {' and '.join(texts)}", declarations)


def _carried_out(plan: Plan) -> Plan:
    """The state of an outer join is that of the join inside it."""
    return plan.inner if isinstance(plan, OuterJoin) else plan


def _windows(at: Contract, part: Part) -> list[str]:
    """Windows that would bound the part."""
    plan = _carried_out(at.plan)
    if isinstance(plan, node.Sequence) and plan.mode == "CHRONICLE" and not plan.keys and part.name != WAITING:
        return ["add an equality on a column that its second stream closes", "use MODE RECENT"]
    if isinstance(plan, node.WindowAggregate) and not windowed(plan) and at.inputs[0].offers.time is not Time.STILL:
        return ["give it a window"]
    if isinstance(plan, MultiJoin) and part.name != WAITING:
        moves = all(offered.offers.time is Time.MOVES for place, offered in enumerate(at.inputs) if place != part.side)
        bare = plan.windows[part.side].range is None
        return [f"give {plan.prefixes[part.side]} a window"] if moves and bare and plan.prefixes[part.side] else []
    if not isinstance(plan, node.WindowJoin) or part.name == WAITING:
        return []
    if (plan.left_window, plan.right_window)[part.side].range is not None:
        return []
    computed = [c for c in conjuncts(plan.residual) if isinstance(c, Binary) and c.op == "="] if not plan.keys else []
    found = [f"make both sides of {computed[0]} columns of one type, in a subquery of FROM"] if computed else []
    prefix = (plan.left_prefix, plan.right_prefix)[part.side]
    moves = at.inputs[1 - part.side].offers.time is Time.MOVES
    if prefix is None:
        return [*found, f"give {named(plan.inputs[part.side], None)} windows"] if moves else found
    return [*found, f"give {prefix} a {'window' if moves else 'ROWS window'}"]


def _closing(plan: Plan, columns: Iterable[str], declarations: Declarations, class_: str = "#") -> Iterator[Remedy]:
    """Punctuation on each of the columns, wherever it comes from."""
    for column in columns:
        bases = base_columns(plan, column)
        if not bases or any(stream not in declarations.streams for stream, _ in bases):
            continue
        streams, texts = dict(declarations.streams), []
        for stream, base in dict.fromkeys(bases):
            definition = streams[stream]
            bound = base == definition.schema.time
            wanted = [Template(((base, "+" if bound else class_),))]
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
    for scan in dict.fromkeys(part for plan in plans for part in plan.walk() if isinstance(part, node.Scan)):
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
