"""What each operator passes on of what its inputs promise.

| operator | templates out | time out |
|---|---|---|
| scan | what the declaration promises | likewise |
| select, duplicate elimination | all | the same |
| closing | all of the closed stream, and one over the key; none if only of late tuples | the slower, if it merges |
| project | those over columns put out as they are, renamed | the same |
| table join | all, under the stream's names | the same |
| union | those that every other input promises too, by a template that says as much or by its time | the slowest |
| join, of two or several | those of a side whose tuples all leave; a right key goes out as the left one | the slower |
| outer join | those of the only kept side, if its tuples all leave | the slower, if those of the kept sides all leave |
| sequence | those of the second; those of the first, if its tuples all leave | the slower |
| aggregate over time | over groups; over groups and time, as `window_end +` | the same |
| other aggregates | over groups; over groups and the windowing column, as `window_end +` | if all groups are closed |

A template of values that came (a primary key) does not pass a union: another input need not bring them. Where tuples
wait for ever, so does the punctuation behind them, and nothing is passed on.
"""

from __future__ import annotations

from dataclasses import replace

from millstream.algebra.template import Template
from millstream.errors import OptionError
from millstream.logical import plan as node
from millstream.logical.closing import Closing
from millstream.logical.contract_names import base_streams, joined_names, member_names, names_under, projected_names
from millstream.logical.contract_offers import Declarations, Offer, Offers, Time, distinct, slowest
from millstream.logical.contract_parts import WAITING, Aggregate, Part, closes_groups, timed, windowing
from millstream.logical.multi_join import MultiJoin
from millstream.logical.outer_join import OuterJoin
from millstream.logical.plan import PANE_END, WINDOW_END, Plan


def passed_on(plan: Plan, inputs: tuple[Offers, ...], parts: tuple[Part, ...], declarations: Declarations) -> Offers:
    """What a plan's topmost operator promises its reader, given its inputs' promises and its state."""
    if any(part.name == WAITING and not part.bounded for part in parts):
        return Offers()
    match plan:
        case node.Scan():
            return declarations.offers(plan)
        case node.Select() | node.Distinct():
            return inputs[0]
        case Closing():
            return _closing(plan, inputs)
        case node.Project():
            return inputs[0].renamed(projected_names(plan))
        case node.TableJoin():
            return inputs[0].renamed(names_under(plan.input, plan.stream_prefix))
        case node.Union():
            return _union(plan, inputs)
        case node.WindowJoin():
            leave = [_leaves(parts, side) for side in (0, 1)]
            return _joined(plan, inputs, leave)
        case MultiJoin():
            return _of_several(plan, inputs, [_leaves(parts, place) for place in range(len(inputs))])
        case OuterJoin():
            return _padded(plan, inputs, [_leaves(parts, side) for side in (0, 1)])
        case node.Sequence():
            return _joined(plan, inputs, [_leaves(parts, 0), True])
        case node.WindowAggregate() | node.PaneAggregate():
            return _aggregated(plan, inputs[0], parts[0])
    kind = type(plan).__name__
    raise OptionError("M6005", f"EXPLAIN CONTRACT is not available yet for {kind}", hint="EXPLAIN OPTIMIZED is")


def _closing(plan: Closing, inputs: tuple[Offers, ...]) -> Offers:
    time, clocks = slowest(inputs if plan.merges else inputs[:1])
    if plan.only_late:
        return Offers(time, clocks)
    columns = ", ".join(own for own, _ in plan.keys)
    origin = f"{base_streams(plan.closing)[0]} CLOSES {base_streams(plan.input)[0]} ({columns})"
    made = Offer(Template(tuple((own, "#") for own, _ in plan.keys)), origin, foreign=True)
    return Offers(time, clocks, distinct((*inputs[0].templates, made)))


def _leaves(parts: tuple[Part, ...], side: int) -> bool:
    part = parts[side]
    return part.bounded and part.leaves


def _joined(plan: node.WindowJoin | node.Sequence, inputs: tuple[Offers, ...], leave: list[bool]) -> Offers:
    sides = zip(inputs, joined_names(plan), leave, strict=True)
    found = [offers.renamed(names).templates for offers, names, free in sides if free]
    time, clocks = slowest(inputs)
    return Offers(time, clocks, distinct(offer for offers in found for offer in offers))


def _padded(plan: OuterJoin, inputs: tuple[Offers, ...], leave: list[bool]) -> Offers:
    """Padded rows escape the templates of the other side, and wait for a tuple of a kept side to leave."""
    names = names_under(plan.left, plan.left_prefix), names_under(plan.right, plan.right_prefix)
    found = [
        inputs[side].renamed(names[side]).templates
        for side in (0, 1)
        if plan.preserved[side] and not plan.preserved[1 - side] and leave[side]
    ]
    time, clocks = slowest(inputs)
    if not all(free for free, kept in zip(leave, plan.preserved, strict=True) if kept):
        time, clocks = Time.STILL, ()
    return Offers(time, clocks, distinct(offer for offers in found for offer in offers))


def _of_several(plan: MultiJoin, inputs: tuple[Offers, ...], leave: list[bool]) -> Offers:
    sides = zip(inputs, member_names(plan), leave, strict=True)
    found = [offers.renamed(names).templates for offers, names, free in sides if free]
    time, clocks = slowest(inputs)
    return Offers(time, clocks, distinct(offer for offers in found for offer in offers))


def _union(plan: node.Union, inputs: tuple[Offers, ...]) -> Offers:
    names = plan.schema.names
    offered = [
        offers.renamed(dict(zip(member.schema.names, names, strict=True)))
        for member, offers in zip(plan.members, inputs, strict=True)
    ]
    found: list[Offer] = []
    for place, own in enumerate(offered):
        others = [other for index, other in enumerate(offered) if index != place]
        found += [o for o in own.templates if not o.seen and all(_promises(other, o, plan) for other in others)]
    time, clocks = slowest(inputs)
    return Offers(time, clocks, _named_by_all(found))


def _promises(other: Offers, offer: Offer, plan: node.Union) -> bool:
    """Whether another input promises as much as the template says: by a template that restricts nothing else, and
    nothing more narrowly, or by its time."""
    if plan.schema.time is not None and other.time is Time.MOVES and offer.class_of(plan.schema.time) == "+":
        return True
    return any(not own.seen and _says_as_much(own, offer) for own in other.templates)


def _says_as_much(own: Offer, offer: Offer) -> bool:
    return all(class_ in ("+", offer.class_of(name)) for name, class_ in own.template.classes) and (
        own.attributes <= offer.attributes
    )


def _named_by_all(offers: list[Offer]) -> tuple[Offer, ...]:
    """Each template once, with all declarations that it comes from."""
    origins: dict[Offer, list[str]] = {}
    for offer in offers:
        origins.setdefault(replace(offer, origin=""), []).append(offer.origin)
    return tuple(replace(offer, origin=" and ".join(dict.fromkeys(o))) for offer, o in origins.items())


def _aggregated(plan: Aggregate, source: Offers, part: Part) -> Offers:
    names = {name: name for name in plan.group}
    if (time := windowing(plan)) is not None:
        names[time] = PANE_END if isinstance(plan, node.PaneAggregate) else WINDOW_END
    closing = distinct(offer.renamed(names) for offer in source.templates if closes_groups(offer, plan))
    moves = timed(plan) or (part.bounded and part.leaves)
    return Offers(source.time if moves else Time.STILL, source.clocks if moves else (), closing)
