"""Base classes of joins of streams under windows: their time, and what bounds the tuples that they hold.

| held | bounded by |
|---|---|
| a side of two | its `ROWS` window; its `RANGE` window and the other side's time |
| | a condition that the other side's time excludes sooner or later (`time_limits`), like `l.ts >= r.ts - 5` |
| | a template of the other side over keys; with a `RANGE` window also over keys and time `+` |
| one of several inputs | each other input, like the other side of two |
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from millstream.algebra.expression import Binary, Column, Expression, Literal, conjuncts, rewrite
from millstream.algebra.names import key_names
from millstream.algebra.schema import TS, Schema, TimeKind
from millstream.algebra.time_limits import Limit, Partner, join_limits
from millstream.algebra.types import Type
from millstream.algebra.window import UNBOUNDED, Window
from millstream.logical.contract.names import keeping_up
from millstream.logical.contract.offers import Offer, Offers, Time
from millstream.logical.contract.requirements import Punctuated, Refers, Requirement, TimeMoves
from millstream.logical.contract.state_parts import (
    WAITING,
    StatePart,
    may_be_nan,
    time_stands,
    unclosed,
    waiting,
)
from millstream.logical.nodes.kinds.joining import Joining, Paired, Side, joined
from millstream.logical.plan import Plan


def in_time(schemas: Iterable[Schema], windows: Iterable[Window]) -> bool:
    """True if a join can process in timestamp order: its inputs are in order, or a window counts rows and they can be
    put in order."""
    counts = any(window.rows is not None for window in windows)
    return all(s.kind is not TimeKind.LATENT and (s.ordered or (counts and s.moves)) for s in schemas)


def _merges(sides: tuple[Side, ...]) -> bool:
    windows = [side.window for side in sides]
    counts = any(window.rows is not None for window in windows)
    return in_time((side.schema for side in sides), windows) and (counts or windows.count(UNBOUNDED) <= 1)


def _simultaneous(sides: tuple[Side, ...]) -> bool:
    """True if the parts of a result all have the same time, because it is among their keys."""
    times = [side.schema.time for side in sides]
    return None not in times and tuple(times) in zip(*(side.keys for side in sides), strict=True)


def _time(sides: tuple[Side, ...]) -> str | None:
    """Return the output column that equals the timestamp: the time of a side that is never padded."""
    if not _simultaneous(sides):
        return None
    never = (s for place, s in enumerate(sides) if not any(o.preserved for o in (*sides[:place], *sides[place + 1 :])))
    return next((side.names[str(side.schema.time)] for side in never), None)


def _followed(sides: tuple[Side, ...]) -> Iterator[tuple[str, Expression]]:
    """Yield the output columns that follow time: a part is older than a result by at most its age, or a RANGE
    window."""
    ages = _ages(sides)
    for place, side in enumerate(sides):
        older = side.window.range if ages is None else ages[place]
        if older is not None and side.schema.unit == sides[0].schema.unit:
            for name, value in side.schema.trails.items():
                yield side.names[name], _earlier(value, older)


def _earlier(value: Expression, older: int) -> Expression:
    """Return an expression over the hidden timestamp as one over a timestamp that is at most `older` newer."""

    def change(part: Expression) -> Expression | None:
        if not older or not isinstance(part, Column) or part.name != TS:
            return None
        timed = part.type is Type.TIMESTAMP
        lag = Literal(Type.INTERVAL, timedelta(microseconds=older)) if timed else Literal(Type.BIGINT, older)
        return Binary(part.type, "-", part, lag)

    return rewrite(value, change)


def _fixed(sides: tuple[Side, ...]) -> Iterator[tuple[str, int]]:
    """Yield the output columns that are the timestamp plus a constant. There are some if keys at one position are all
    at a fixed distance from the times of their sides, so that these times are at a fixed distance from each other."""
    ages = None if any(side.preserved for side in sides) else _ages(sides)
    for side, age in zip(sides, ages or (), strict=False):
        yield from ((side.names[name], offset - age) for name, offset in side.schema.times.items())


def _ages(sides: tuple[Side, ...]) -> list[int] | None:
    """Return how much older than a result each of its parts is, if keys fix that; a part without a partner is as old as
    its result. The newest part, whose time the result has, is the one with the least distance to its key."""
    if any(side.schema.unit != sides[0].schema.unit for side in sides):
        return None
    for keys in zip(*(side.keys for side in sides), strict=True):
        if all(key in side.schema.times for key, side in zip(keys, sides, strict=True)):
            distances = [side.schema.times[key] for key, side in zip(keys, sides, strict=True)]
            return [distance - min(distances) for distance in distances]
    return None


class Windowed(Joining):
    """A join whose sides all have windows."""

    __slots__ = ()

    @property
    def merges(self) -> bool:
        """True if it processes in timestamp order: all inputs are `in_time`, and at most one has no window. The same
        holds for a tree of binary joins in any order. A window that counts rows makes the second condition
        unnecessary: in arrival order the last n tuples would depend on arrival."""
        return _merges(self.sides)

    @property
    def schema(self) -> Schema:
        """A tuple without a partner is emitted late, and so out of order."""
        sides = self.sides
        moves = all(side.schema.moves for side in sides)
        ordered = self.merges and not any(side.preserved for side in sides)
        time = _time(sides)
        offsets = tuple(item for item in _fixed(sides) if item[0] != time)
        known = {time, *(name for name, _ in offsets)}
        return replace(
            sides[0].schema,
            attributes=joined(sides),
            time=time,
            ordered=ordered,
            moves=moves,
            follows=tuple(item for item in _followed(sides) if item[0] not in known),
            offsets=offsets,
        )

    def describe(self) -> str:
        return f"{type(self).__name__} {self._windows()}{self._on()}{self._where()} {self._order()}"

    def limits(self) -> dict[tuple[int, int], tuple[Limit, ...]]:
        """Return, for pairs of sides, what the time of the second excludes of the first."""
        return join_limits([Partner(side.schema, side.names, side.key_names) for side in self.sides], self.residual)

    def passes_on(self, inputs: tuple[Offers, ...], parts: tuple[StatePart, ...]) -> Offers:
        return self.joined_offers(inputs, [part.drains for part in parts[: len(inputs)]])

    def _windows(self) -> str:
        return ", ".join(f"{side.prefix or ''} {side.window_text}".lstrip() for side in self.sides)

    def _order(self) -> str:
        return "merging" if self.merges else "on arrival"


@dataclass(frozen=True, slots=True)
class TwoWindowed(Paired, Windowed):
    """A join of two streams: equality on `keys` (pairs of left and right input columns), `residual` over output
    columns."""

    left: Plan
    right: Plan
    left_window: Window
    right_window: Window
    keys: tuple[tuple[str, str], ...] = ()
    residual: Expression | None = None
    left_prefix: str | None = None
    right_prefix: str | None = None

    @property
    def sides(self) -> tuple[Side, Side]:
        kept = self.preserved
        return (
            Side(self.left, self.left.schema, self.left_prefix, self.keys_of(0), self.left_window, kept[0]),
            Side(self.right, self.right.schema, self.right_prefix, self.keys_of(1), self.right_window, kept[1]),
        )

    @property
    def preserved(self) -> tuple[bool, bool]:
        """True for each side, left and right, whose tuples are all emitted; the columns of the other side may
        then be NULL."""
        return False, False

    def state_parts(self, inputs: tuple[Offers, ...]) -> tuple[StatePart, ...]:
        left, right = self.sides
        limits, condition = self.limits(), keeping_up(self.inputs)
        one, other = (left, inputs[0]), (right, inputs[1])
        held = (
            held_side(f"left {left.label}", 0, one, other, limits.get((0, 1), ()), condition),
            held_side(f"right {right.label}", 1, other, one, limits.get((1, 0), ()), condition),
        )
        return (*held, waiting(self, inputs)) if self.merges else held

    def requirements(self, part: StatePart) -> Iterator[Requirement]:
        other = self.inputs[1 - part.side]
        if self.sides[part.side].window.range is not None:
            yield TimeMoves((other,))
        yield Punctuated(other, self.keys_of(1 - part.side))
        pairs = zip(self.keys_of(part.side), self.keys_of(1 - part.side), strict=True)
        yield Refers(self.inputs[part.side], other, tuple(pairs))

    def advice(self, part: StatePart, inputs: tuple[Offers, ...]) -> list[str]:
        own = self.sides[part.side]
        if part.name == WAITING or own.window.range is not None:
            return []
        conditions = [c for c in conjuncts(self.residual) if c.columns()] if not self.keys else []
        computed = [c for c in conditions if isinstance(c, Binary) and c.op == "="]
        found = [f"make both sides of {computed[0]} columns of one type, in a subquery of FROM"] if computed else []
        if not self.keys and not conditions:
            found = ["link the two sides by a condition"]
        moves = inputs[1 - part.side].time is Time.MOVES
        if own.prefix is None:
            return [*found, f"add windows to {own.label}"] if moves else found
        return [*found, f"add a {'window' if moves else 'ROWS window'} to {own.prefix}"]

    def parameters(self) -> dict[str, Any]:
        schemas = {"left": self.left.schema, "right": self.right.schema}
        return schemas | self.values("schema", "keys", "residual", "left_window", "right_window", "merges")


def held_side(
    name: str,
    place: int,
    held: tuple[Side, Offers],
    partner: tuple[Side, Offers],
    limits: tuple[Limit, ...],
    condition: str,
) -> StatePart:
    """Return the state part of the tuples of one side that wait for tuples of another; `condition`: that on which time
    bounds it."""
    (own, promised), (other, offers) = held, partner
    if own.rows is not None:
        return StatePart(name, (str(own.window),), side=place, rows=own.rows)
    bounds: list[str] = []
    clocks = " and ".join(offers.clocks) + condition
    if own.window.range is not None and offers.time is Time.MOVES:
        bounds.append(f"{own.window_text} and {clocks}")
    if offers.time is Time.MOVES:
        bounds += [f"{limit.reason} and {clocks}" for limit in limits]
    names = key_names(zip(other.keys, own.keys, strict=True)) if offers.templates else {}
    closing = [o for o in offers.templates if _closes_partners(o, own, other, names)]
    bounds += [f"{own.window_text} and {o.origin}" if not o.attributes <= names.keys() else o.origin for o in closing]
    bounds += _partners_come(own, promised, offers, names)
    if bounds:
        return StatePart(name, tuple(dict.fromkeys(bounds)), side=place, length=own.window.range)
    if own.window.range is None:
        lacks = unclosed(other.label, other.keys, offers)
    else:
        lacks = f"{time_stands(other.label, offers.time)}, and nothing closes its keys"
    return StatePart(name, lacks=lacks, side=place)


def _closes_partners(offer: Offer, own: Side, other: Side, names: Mapping[str, str]) -> bool:
    """True if punctuation of the other side makes every stored tuple of this side useless, sooner or later. `names`:
    the keys of the other side, mapped to those of this side."""
    others = offer.attributes - names.keys()
    if offer.seen or (others and own.window.range is None):
        return False
    if may_be_nan(own.schema, (names[a] for a in offer.attributes if a in names)):
        return False
    timed = others <= other.schema.times.keys() and len(offer.attributes) > len(others)
    return not others or (timed and all(offer.class_of(n) == "+" for n in others))


def _partners_come(own: Side, promised: Offers, offers: Offers, names: Mapping[str, str]) -> list[str]:
    """Return the primary keys of the other side that close every stored tuple of this side, whose key refers to
    them."""
    foreign = {reference.bare: reference.origin for reference in promised.references}
    found: list[str] = []
    for offer in offers.templates if foreign else ():
        key = None if offer.key is None else offer.key.renamed(names)
        if key is not None and key.bare in foreign and not may_be_nan(own.schema, (name for name, _ in key.columns)):
            found.append(f"{offer.origin} and {foreign[key.bare]}")
    return found
