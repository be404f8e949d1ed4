"""Parts of an operator's state: what bounds each part, or what it lacks.

Each node names its own parts (`Plan.state_parts`). This module has what several nodes share.

A stored tuple of a join may have no partner on the other side. A template of the other side therefore bounds it only if
every value is closed. A primary key closes only values that came in its stream, which suffices if the stored side's key
REFERENCES that stream: then each of its values comes there. Selections on the way drop tuples, but not the punctuation.
A key that may be NaN cannot be closed, because no punctuation matches NaN. An operator that stores a stream's own
tuples needs punctuation that matches each of them, as the stream promises.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from millstream.algebra.schema import Schema
from millstream.algebra.types import Type
from millstream.logical.contract.names import base_streams, keeping_up
from millstream.logical.contract.offers import Offers, Time, slowest
from millstream.logical.plan import Plan

WAITING = "waiting"
GUARDS = "guards"
"""Guards of feedback that an operator sends by itself. This part alone is not monotone (`form`): an input that promises
more may make the operator send more."""
NONE_MOUNTED = "sending no feedback"


@dataclass(frozen=True, slots=True)
class StatePart:
    """A part of an operator's state. Each of `bounds` bounds it alone; without any, `lacks` is the reason.

    `purged`: every entry is purged sooner or later, so punctuation that waits for it is passed on. `delivers`: its
    results are emitted sooner or later, not only when the stream ends. `side` is the position of the input that the
    part belongs to. For capacity: it holds at most `rows` tuples, none if it consists of guards; or its tuples are kept
    for `length` units of time, until time passes it, `copies` of them for each tuple.
    """

    name: str
    bounds: tuple[str, ...] = ()
    lacks: str = ""
    purged: bool = True
    side: int = 0
    delivers: bool = True
    rows: int | None = None
    length: int | None = None
    copies: int = 1

    @property
    def bounded(self) -> bool:
        return bool(self.bounds)

    @property
    def drains(self) -> bool:
        """True if every entry is purged sooner or later under the current declarations."""
        return self.bounded and self.purged


def waiting(plan: Plan, inputs: tuple[Offers, ...]) -> StatePart:
    """The tuples that an operator in timestamp order holds back."""
    time, clocks = slowest(inputs)
    if time is not Time.STILL:
        return StatePart(WAITING, (" and ".join(clocks) + keeping_up(plan.inputs),), length=0)
    still = [stream_names(i) for i, offers in zip(plan.inputs, inputs, strict=True) if offers.time is Time.STILL]
    return StatePart(WAITING, lacks=time_stands(" and ".join(dict.fromkeys(still)), Time.STILL))


def stream_names(plan: Plan) -> str:
    """The base streams of an input, for messages."""
    return " and ".join(base_streams(plan))


def finite(schema: Schema, names: Iterable[str]) -> bool:
    """True if these columns have few possible values: all are BOOLEAN."""
    return all(schema.type_of(name) is Type.BOOLEAN for name in names)


def may_be_nan(schema: Schema, names: Iterable[str]) -> bool:
    return any(schema.type_of(name).is_numeric and not schema.type_of(name).is_integer for name in names)


def time_stands(stream: str, time: Time) -> str:
    """Why the time of a stream bounds nothing."""
    if time is Time.ASKED:
        return f"the time of {stream} moves only when asked for, and no operator asks"
    return f"the time of {stream} does not move"


def unclosed(stream: str, keys: Iterable[str], offers: Offers) -> str:
    """Why the punctuation of a stream closes no key."""
    names = tuple(keys)
    if not names:
        return f"no equality ties it to {stream}"
    seen = [o.origin for o in offers.templates if o.seen and o.attributes <= {*names}]
    if seen:
        return f"{seen[0]} closes only values that come"
    return f"no punctuation of {stream} closes {listed(names)}"


def listed(names: Iterable[str]) -> str:
    return f"({', '.join(dict.fromkeys(names))})"
