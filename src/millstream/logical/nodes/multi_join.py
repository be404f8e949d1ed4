"""Join of several streams on common keys, in one operator."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from millstream.algebra.expression import Expression
from millstream.algebra.window import Window
from millstream.logical.contract.names import keeping_up
from millstream.logical.contract.offers import Offers, Time
from millstream.logical.contract.requirements import AllPunctuated, Punctuated, Requirement, TimeMoves
from millstream.logical.contract.state_parts import WAITING, StatePart, waiting
from millstream.logical.nodes.kinds.joining import Side
from millstream.logical.nodes.kinds.windowed import Windowed, held_side
from millstream.logical.plan import Plan


@dataclass(frozen=True, slots=True)
class MultiJoin(Windowed):
    """Combinations of one tuple from each member, each within its own window of the newest. `keys[i]` are columns of
    member i; keys at the same position are equal over all members. `residual` is over output columns."""

    stem = "multi_join"

    members: tuple[Plan, ...]
    windows: tuple[Window, ...]
    keys: tuple[tuple[str, ...], ...]
    residual: Expression | None = None
    prefixes: tuple[str | None, ...] = ()

    @property
    def sides(self) -> tuple[Side, ...]:
        parts = zip(self.members, self.prefixes, self.windows, self.keys, strict=True)
        return tuple(Side(member, member.schema, prefix, keys, window) for member, prefix, window, keys in parts)

    def state_parts(self, inputs: tuple[Offers, ...]) -> tuple[StatePart, ...]:
        held = list(zip(self.sides, inputs, strict=True))
        members, limits, condition = [], self.limits(), keeping_up(self.members)
        for place, own in enumerate(held):
            others = ((at, other) for at, other in enumerate(held) if at != place)
            towards = (held_side("", place, own, other, limits.get((place, at), ()), condition) for at, other in others)
            members.append(_member(f"input {own[0].label}", place, towards))
        return (*members, waiting(self, inputs)) if self.merges else tuple(members)

    def requirements(self, part: StatePart) -> Iterator[Requirement]:
        others = [place for place in range(len(self.members)) if place != part.side]
        if self.windows[part.side].range is not None:
            yield TimeMoves(tuple(self.members[place] for place in others))
        yield AllPunctuated(tuple(Punctuated(self.members[place], self.keys[place]) for place in others))

    def advice(self, part: StatePart, inputs: tuple[Offers, ...]) -> list[str]:
        if part.name == WAITING:
            return []
        moves = all(offers.time is Time.MOVES for place, offers in enumerate(inputs) if place != part.side)
        prefix, bare = self.prefixes[part.side], self.windows[part.side].range is None
        return [f"add a window to {prefix}"] if moves and bare and prefix else []

    def parameters(self) -> dict[str, Any]:
        inputs = [member.schema for member in self.members]
        return {"inputs": inputs} | self.values("schema", "keys", "windows", "residual", "merges")


def _member(name: str, place: int, towards: Iterable[StatePart]) -> StatePart:
    """Return the state part of an input: every other input must bound it, as the other side of two would."""
    found: list[StatePart] = []
    for part in towards:
        if not part.bounded:
            return StatePart(name, lacks=part.lacks, side=place)
        found.append(part)
    bounds = " and ".join(dict.fromkeys(part.bounds[0] for part in found))
    return StatePart(name, (bounds,), side=place, rows=found[0].rows, length=found[0].length)
