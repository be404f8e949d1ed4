"""Parts of an operator's state: what bounds each, or what it lacks, and what would cure that.

Each node tells its own (`Plan.parts`, `Plan.cures`); here is what several of them say alike.

A tuple of the other side of a join need not have a partner, so there a template counts only if every value is closed; a
primary key closes those that came; that is enough if CLOSES says that the stored side's key is a foreign one, so that
each of its values comes there. Nor can a key be closed that may be NaN, which no punctuation matches. An operator
that keeps a stream's own tuples needs no more than that each of them is matched, as the stream promises.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from millstream.algebra.schema import Schema
from millstream.algebra.types import Type
from millstream.logical.contract.names import base_streams
from millstream.logical.contract.offers import Offers, Time, slowest
from millstream.logical.plan import Plan

WAITING = "waiting"


@dataclass(frozen=True, slots=True)
class StatePart:
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

    @property
    def empties(self) -> bool:
        """Whether every piece goes sooner or later, as things are."""
        return self.bounded and self.leaves


@dataclass(frozen=True, slots=True)
class Moving:
    """Time that moves on all of these inputs."""

    inputs: tuple[Plan, ...]


@dataclass(frozen=True, slots=True)
class Closed:
    """Punctuation of an input on one of its columns, whichever helps."""

    input: Plan
    columns: tuple[str, ...]
    class_: str = "#"


@dataclass(frozen=True, slots=True)
class Together:
    """Punctuation of several inputs, of each on the first of its columns that can have it."""

    parts: tuple[Closed, ...]


Cure = Moving | Closed | Together
"""What inputs would have to promise."""


def waiting(plan: Plan, inputs: tuple[Offers, ...]) -> StatePart:
    """What an operator that works in the order of time holds back."""
    time, clocks = slowest(inputs)
    if time is not Time.STILL:
        return StatePart(WAITING, (" and ".join(clocks),))
    still = [named(i, None) for i, offers in zip(plan.inputs, inputs, strict=True) if offers.time is Time.STILL]
    return StatePart(WAITING, lacks=stands(" and ".join(dict.fromkeys(still)), Time.STILL))


def named(plan: Plan, prefix: str | None) -> str:
    """An input as a reader knows it: by its alias, or by the streams in it."""
    return prefix or " and ".join(base_streams(plan))


def finite(schema: Schema, names: Iterable[str]) -> bool:
    """Whether there are finitely many values of these columns. Other types have too many to count on."""
    return all(schema.type_of(name) is Type.BOOLEAN for name in names)


def fractional(schema: Schema, names: Iterable[str]) -> bool:
    """Whether one of these columns may be NaN."""
    return any(schema.type_of(name).is_numeric and not schema.type_of(name).is_integer for name in names)


def stands(stream: str, time: Time) -> str:
    if time is Time.ASKED:
        return f"the time of {stream} is known only to who asks, and nobody does"
    return f"the time of {stream} does not move"


def unclosed(stream: str, keys: list[str], offers: Offers) -> str:
    if not keys:
        return f"no equality ties it to {stream}"
    seen = [o.origin for o in offers.templates if o.seen and o.attributes <= set(keys)]
    if seen:
        return f"{seen[0]} closes only values that come"
    return f"no punctuation of {stream} closes {listed(keys)}"


def listed(names: Iterable[str]) -> str:
    return f"({', '.join(dict.fromkeys(names))})"
