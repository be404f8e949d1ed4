"""Switches of operators that receive feedback: whether they act on it themselves, and whether they pass it on.

| `exploit` | an operator |
|---|---|
| `on` | guards its inputs and purges what it holds of unwanted results |
| `guard` | guards its inputs and keeps what it holds |
| `off` | does neither |

| `propagate` | |
|---|---|
| `on` | it passes on what its inputs may omit |
| `off` | feedback stops at it |

An operator that does not act on feedback may still pass it on, if its results stay correct whatever its inputs omit
(`Rule.relays`). An aggregate may not: a group that lacks some of its tuples has a wrong value.

>>> switches = Switches.parse("on; union: off; q.select 2: guard", "off; q.union: on")
>>> switches.of([("q", "Union")]), switches.of([("p", "Select 2")])
(Switch(exploit='off', propagate=True), Switch(exploit='on', propagate=False))
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from millstream.errors import OptionError
from millstream.strategies import Owner, Place

EXPLOIT = ("on", "guard", "off")
PROPAGATE = ("on", "off")


@dataclass(frozen=True, slots=True)
class Switch:
    """The switches of one operator."""

    exploit: str = "on"
    propagate: bool = True

    @property
    def relays_only(self) -> bool:
        return self.propagate and self.exploit == "off"

    def __str__(self) -> str:
        told = [] if self.exploit == "on" else [f"exploit {self.exploit}"]
        return ", ".join([*told, *([] if self.propagate else ["propagate off"])])


@dataclass(frozen=True, slots=True)
class Placed:
    """A value for all operators, then values of some."""

    default: str
    rules: tuple[tuple[Place, str], ...] = ()

    @classmethod
    def parse(cls, text: str, known: Collection[str]) -> Placed:
        first, *rest = text.split(";")
        rules: list[tuple[Place, str]] = []
        for rule in filter(str.strip, rest):
            place, colon, given = rule.rpartition(":")
            if not colon:
                raise OptionError("M6035", f"'{rule.strip()}' switches no operator", hint="such as union: off")
            rules.append((Place.parse(place), _value(given, known)))
        return cls(_value(first, known), tuple(rules))

    def of(self, owners: Collection[Owner]) -> str:
        """The value of an operator that these queries share: that of the last rule which covers it."""
        return next((given for place, given in reversed(self.rules) if any(map(place.covers, owners))), self.default)


def _value(text: str, known: Collection[str]) -> str:
    given = text.strip().lower()
    if given not in known:
        raise OptionError("M6035", f"'{text.strip()}' is not one of {', '.join(known)}")
    return given


@dataclass(frozen=True, slots=True)
class Switches:
    """The switches of all operators."""

    exploit: Placed
    propagate: Placed

    @classmethod
    def parse(cls, exploit: str = "on", propagate: str = "on") -> Switches:
        """Parse a value for all operators, then values of some (`place: value`), separated by `;`, for each switch."""
        return cls(Placed.parse(exploit, EXPLOIT), Placed.parse(propagate, PROPAGATE))

    def of(self, owners: Collection[Owner]) -> Switch:
        return Switch(self.exploit.of(owners), self.propagate.of(owners) == "on")

    @property
    def places(self) -> tuple[Place, ...]:
        return tuple(place for placed in (self.exploit, self.propagate) for place, _ in placed.rules)

    def new_places(self, before: Switches) -> list[Place]:
        """Return the places that other switches do not name."""
        return [place for place in self.places if place not in before.places]


ON = Switch()
