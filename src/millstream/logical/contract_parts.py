"""The state of each operator, part by part: what bounds it, or what it lacks.

| operator | part | bounded by |
|---|---|---|
| join | a side | its `ROWS` window; its `RANGE` window and the other side's time |
| | | a template of the other side over keys; with a `RANGE` window also over keys and time `+` |
| join of several | an input | each other input, as the other side of a join |
| sequence | `RECENT` | without keys: it is one tuple; with keys: as `CHRONICLE`, or if keys have finitely many values |
| | `CHRONICLE` | a template of the second stream over keys |
| aggregate | windows, panes | time; a template over groups, or over groups and the windowing column `+` |
| | groups | a template over groups; groups that have finitely many values |
| duplicate elimination | tuples seen | any template; time, if it is a column; columns that have finitely many values |
| union, merging join, closing, sequence | what waits | the time of all inputs, each when asked at least |

A tuple of the other side of a join need not have a partner, so there a template counts only if every value is closed; a
primary key closes those that came; that is enough if CLOSES says that the stored side's key is a foreign one, so that
each of its values comes there. Nor can a key be closed that may be NaN, which no punctuation matches. An operator
that keeps a stream's own tuples needs no more than that each of them is matched, as the stream promises.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from millstream.algebra.schema import Schema, TimeKind
from millstream.algebra.types import Type
from millstream.logical import plan as node
from millstream.logical.closing import Closing
from millstream.logical.contract_names import base_streams, key_names
from millstream.logical.contract_offers import Offer, Offers, Time, slowest
from millstream.logical.multi_join import MultiJoin
from millstream.logical.outer_join import OuterJoin
from millstream.logical.plan import PANE_END, Plan, Window
from millstream.logical.windows import written

Aggregate = node.WindowAggregate | node.PaneAggregate
WAITING = "waiting"


@dataclass(frozen=True, slots=True)
class Part:
    """A part of an operator's state: what bounds it, each enough by itself; if nothing does, what it lacks. `leaves`:
    every piece goes sooner or later, so that punctuation that waits for it goes on. `side` is the input it is of."""

    name: str
    bounds: tuple[str, ...] = ()
    lacks: str = ""
    leaves: bool = True
    side: int = 0

    @property
    def bounded(self) -> bool:
        return bool(self.bounds)


def parts_of(plan: Plan, inputs: tuple[Offers, ...]) -> tuple[Part, ...]:
    """The parts of the state of a plan's topmost operator, given what its inputs promise."""
    match plan:
        case node.WindowJoin():
            sides = tuple(_join_side(plan, side, inputs[1 - side], inputs[side]) for side in (0, 1))
            return (*sides, _waiting(plan, inputs)) if plan.merges else sides
        case OuterJoin():
            return parts_of(plan.inner, inputs)
        case MultiJoin():
            members = tuple(_member(plan, place, inputs) for place in range(len(inputs)))
            return (*members, _waiting(plan, inputs)) if plan.merges else members
        case node.Sequence():
            return _first(plan, inputs[1]), _waiting(plan, inputs)
        case node.WindowAggregate() | node.PaneAggregate():
            return (_groups(plan, inputs[0]),)
        case node.Distinct():
            return (_seen(plan, inputs[0]),)
        case node.Union() if plan.schema.kind is not TimeKind.LATENT:
            return (_waiting(plan, inputs),)
        case Closing(merges=True):
            return (_waiting(plan, inputs),)
    return ()


def named(plan: Plan, prefix: str | None) -> str:
    """An input as a reader knows it: by its alias, or by the streams in it."""
    return prefix or " and ".join(base_streams(plan))


def _join_side(plan: node.WindowJoin, side: int, other: Offers, own: Offers) -> Part:
    own_window = (plan.left_window, plan.right_window)[side]
    name = f"{('left', 'right')[side]} {named(plan.inputs[side], (plan.left_prefix, plan.right_prefix)[side])}"
    if own_window.rows is not None:
        return Part(name, (str(own_window),), side=side)
    kept = written(own_window, plan.inputs[side].schema.unit)
    bounds: list[str] = []
    if own_window.range is not None and other.time is Time.MOVES:
        bounds.append(f"{kept} and {_all(other.clocks)}")
    keys = {pair[1 - side]: pair[side] for pair in plan.keys}
    closing = [o for o in other.templates if closes_partners(o, plan, side, own_window)]
    bounds += [f"{kept} and {o.origin}" if not o.attributes <= keys.keys() else o.origin for o in closing]
    bounds += _partners_come(plan, side, other, own)
    if bounds:
        return Part(name, tuple(dict.fromkeys(bounds)), side=side)
    partner = named(plan.inputs[1 - side], (plan.right_prefix, plan.left_prefix)[side])
    if own_window.range is not None:
        return Part(name, lacks=f"{_stands(partner, other.time)}, and nothing closes its keys", side=side)
    return Part(name, lacks=_unclosed(partner, list(keys), other), side=side)


def _member(plan: MultiJoin, place: int, inputs: tuple[Offers, ...]) -> Part:
    """An input of a join of several: each of the others has to do what one other side would."""
    name = f"input {named(plan.members[place], plan.prefixes[place])}"
    others = [other for other in range(len(inputs)) if other != place]
    parts = [_join_side(plan.pair(place, other), 0, inputs[other], inputs[place]) for other in others]
    for part in parts:
        if not part.bounded:
            return Part(name, lacks=part.lacks, side=place)
    return Part(name, (" and ".join(dict.fromkeys(part.bounds[0] for part in parts)),), side=place)


def closes_partners(offer: Offer, plan: node.WindowJoin, side: int, window: Window) -> bool:
    """Whether punctuation of the other side makes useless every stored tuple of this side, sooner or later."""
    names = key_names((pair[1 - side], pair[side]) for pair in plan.keys)
    if offer.seen or _fractional(plan.inputs[side].schema, (names[a] for a in offer.attributes if a in names)):
        return False
    others = offer.attributes - names.keys()
    time = plan.inputs[1 - side].schema.time
    timed = bool(others) and others == {time} and len(offer.attributes) > 1
    return not others or (timed and window.range is not None and offer.class_of(str(time)) == "+")


def _partners_come(plan: node.WindowJoin, side: int, other: Offers, own: Offers) -> list[str]:
    """Primary keys of the other side that close every stored tuple of this side, since its key is a foreign one."""
    names = key_names((pair[1 - side], pair[side]) for pair in plan.keys)
    foreign = {offer.attributes: offer.origin for offer in own.templates if offer.foreign}
    found: list[str] = []
    for offer in other.templates:
        columns = frozenset(names.get(name, "") for name in offer.attributes)
        if offer.seen and columns in foreign and not _fractional(plan.inputs[side].schema, columns):
            found.append(f"{offer.origin}, to which {foreign[columns]} refers")
    return found


def _first(plan: node.Sequence, second: Offers) -> Part:
    name = f"first {named(plan.first, plan.first_prefix)}"
    if plan.mode == "RECENT" and not plan.keys:
        return Part(name, ("keeping one tuple",))
    names = key_names((b, a) for a, b in plan.keys)
    usable = [o for o in second.templates if not o.seen and o.attributes <= names.keys()]
    closing = [o.origin for o in usable if not _fractional(plan.first.schema, (names[a] for a in o.attributes))]
    if closing:
        return Part(name, tuple(dict.fromkeys(closing)))
    if plan.mode == "RECENT" and _finite(plan.first.schema, (a for a, _ in plan.keys)):
        return Part(name, ("keys that have finitely many values",), leaves=False)
    return Part(name, lacks=_unclosed(named(plan.second, plan.second_prefix), [b for _, b in plan.keys], second))


def windowed(plan: Aggregate) -> bool:
    return isinstance(plan, node.PaneAggregate) or plan.range is not None


def windowing(plan: Aggregate) -> str | None:
    """The input column whose upper bounds close windows, if there are windows and it is visible."""
    if not windowed(plan):
        return None
    if isinstance(plan, node.WindowAggregate) and plan.over_panes:
        return PANE_END
    return plan.attribute or plan.input.schema.time


def timed(plan: Aggregate) -> bool:
    """Whether the windows are over the hidden timestamp, so that time closes them."""
    return windowed(plan) and plan.attribute in (None, plan.input.schema.time)


def closes_groups(offer: Offer, plan: Aggregate) -> bool:
    """Whether punctuation of the input closes every group, or every window of it, sooner or later."""
    time = windowing(plan)
    if not offer.attributes <= {*plan.group, time}:
        return False
    return time not in offer.attributes or offer.class_of(str(time)) == "+"


def _groups(plan: Aggregate, source: Offers) -> Part:
    name = "panes" if isinstance(plan, node.PaneAggregate) else "windows" if windowed(plan) else "groups"
    bounds = [_all(source.clocks)] if timed(plan) and source.time is not Time.STILL else []
    bounds += [offer.origin for offer in source.templates if closes_groups(offer, plan)]
    if bounds:
        return Part(name, tuple(dict.fromkeys(bounds)))
    if not windowed(plan) and _finite(plan.input.schema, plan.group):
        return Part(name, ("groups that have finitely many values",), leaves=False)
    if timed(plan):
        return Part(name, lacks=_stands(named(plan, None), source.time))
    closing = (f"{plan.attribute} +",) if windowed(plan) else ()
    return Part(name, lacks=f"no punctuation closes {_columns((*plan.group, *closing))}")


def _seen(plan: node.Distinct, source: Offers) -> Part:
    time = plan.schema.time
    bounds = [_all(source.clocks)] if time is not None and source.time is Time.MOVES else []
    bounds += [offer.origin for offer in source.templates]
    if bounds:
        return Part("seen", tuple(dict.fromkeys(bounds)))
    if _finite(plan.schema, plan.schema.names):
        return Part("seen", ("columns that have finitely many values",), leaves=False)
    return Part("seen", lacks=f"no punctuation closes {_columns(plan.schema.names)}")


def _waiting(plan: Plan, inputs: tuple[Offers, ...]) -> Part:
    time, clocks = slowest(inputs)
    if time is not Time.STILL:
        return Part(WAITING, (_all(clocks),))
    still = [named(i, None) for i, offers in zip(plan.inputs, inputs, strict=True) if offers.time is Time.STILL]
    return Part(WAITING, lacks=_stands(" and ".join(dict.fromkeys(still)), Time.STILL))


def _finite(schema: Schema, names: Iterable[str]) -> bool:
    """Whether there are finitely many values of these columns. Other types have too many to count on."""
    return all(schema.type_of(name) is Type.BOOLEAN for name in names)


def _fractional(schema: Schema, names: Iterable[str]) -> bool:
    return any(schema.type_of(name).is_numeric and not schema.type_of(name).is_integer for name in names)


def _all(clocks: tuple[str, ...]) -> str:
    return " and ".join(clocks)


def _stands(stream: str, time: Time) -> str:
    if time is Time.ASKED:
        return f"the time of {stream} is known only to who asks, and nobody does"
    return f"the time of {stream} does not move"


def _unclosed(stream: str, keys: list[str], offers: Offers) -> str:
    if not keys:
        return f"no equality ties it to {stream}"
    seen = [o.origin for o in offers.templates if o.seen and o.attributes <= set(keys)]
    if seen:
        return f"{seen[0]} closes only values that come"
    return f"no punctuation of {stream} closes {_columns(keys)}"


def _columns(names: Iterable[str]) -> str:
    return f"({', '.join(dict.fromkeys(names))})"
