"""Union of inputs of equal types, in timestamp order, under the first input's column names.

A template is passed on if every other input promises as much, by a template or by its time. A template of values that
came (a primary key) is not passed on: they need not come in the other inputs. A condition is pushed into every member.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from millstream.algebra.names import renamed
from millstream.algebra.response import Reach, Rule
from millstream.algebra.schema import Schema, TimeKind
from millstream.logical.contract.offers import Offer, Offers, Reference, Time, slowest
from millstream.logical.contract.state_parts import StatePart, waiting
from millstream.logical.plan import Conditions, Key, Names, Need, Plan, Pushed

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Merging(Plan):
    """A union of any members; it processes in timestamp order if it `merges`."""

    members: tuple[Plan, ...]

    rules = (Rule("any column", Reach.EVERY, passes="the same, under the names of each input"),)
    stateless = False
    positional = False
    holds_time = False
    holds_punctuation = False
    punctuates = Names()
    equal_columns = ()

    @property
    def merges(self) -> bool:
        return self.schema.kind is not TimeKind.LATENT

    def describe(self) -> str:
        return type(self).__name__

    def push(self, conditions: Conditions) -> Pushed:
        names = self.schema.names
        own = [(dict(zip(names, member.schema.names, strict=True)), member.schema) for member in self.members]
        return Pushed(self, tuple(tuple(renamed(c, *member) for c in conditions) for member in own))

    def pruned(self, kept: Names) -> tuple[Plan, tuple[Need, ...]]:
        """Drop the same positions of all members."""
        positions = sorted(self.schema.index(name) for name in kept) or [0]
        named = (frozenset(member.schema.names[position] for position in positions) for member in self.members)
        return self, tuple(Need(names, exact=True) for names in named)

    def copied(self, column: str) -> tuple[tuple[int, str], ...]:
        position = self.schema.index(column)
        return tuple((place, member.schema.names[position]) for place, member in enumerate(self.members))

    def reads_punctuation(self, place: int, columns: Names) -> bool:
        return False

    def hash_keys(self) -> Iterable[Key]:
        return [(name,) for name in self.schema.names]

    def keys_below(self, key: Key) -> list[Key] | None:
        positions = [self.schema.names.index(name) for name in key]
        return [tuple(member.schema.names[position] for position in positions) for member in self.members]

    def state_parts(self, inputs: tuple[Offers, ...]) -> tuple[StatePart, ...]:
        return (waiting(self, inputs),) if self.merges else ()

    def passes_on(self, inputs: tuple[Offers, ...], parts: tuple[StatePart, ...]) -> Offers:
        names = self.schema.names
        offered = [
            offers.renamed(dict(zip(member.schema.names, names, strict=True)))
            for member, offers in zip(self.members, inputs, strict=True)
        ]
        found: list[Offer] = []
        for place, own in enumerate(offered):
            others = [index for index in range(len(offered)) if index != place]
            found += [o for o in own.templates if not o.seen and all(self._promises(i, offered[i], o) for i in others)]
        time, clocks = slowest(inputs)
        return Offers(time, clocks, _with_all_origins(found), _references(offered))

    def _promises(self, place: int, other: Offers, offer: Offer) -> bool:
        """True if another input promises as much as the offer, by its time or by a template."""
        member = self.members[place].schema
        timed = [self.schema.names[member.index(name)] for name in member.times]
        if other.time is Time.MOVES and any(offer.class_of(name) == "+" for name in timed):
            return True
        return any(not own.seen and _covers(own, offer) for own in other.templates)

    def parameters(self) -> dict[str, Any]:
        return {"members": [m.schema for m in self.members]} | self.values("schema", "merges")


@dataclass(frozen=True, slots=True)
class Union(Merging):
    stem = "union"

    @property
    def schema(self) -> Schema:
        schemas = [member.schema for member in self.members]
        first = schemas[0]
        kind = TimeKind.LATENT if any(s.kind is TimeKind.LATENT for s in schemas) else first.kind
        position = first.index(first.time) if first.time else None
        same = position is not None and all(s.time and s.index(s.time) == position for s in schemas)
        moves, time = all(s.moves for s in schemas), first.time if same else None
        offsets = {n: offset for n, offset in _common([s.times for s in schemas], schemas).items() if n != time}
        trails = _common([s.trails for s in schemas], schemas)
        follows = tuple((n, value) for n, value in trails.items() if n != time and n not in offsets)
        return replace(
            first,
            kind=kind,
            time=time,
            ordered=kind is not TimeKind.LATENT,
            moves=moves,
            follows=follows,
            offsets=tuple(offsets.items()),
        )


def _common(known: Sequence[Mapping[str, T]], schemas: Sequence[Schema]) -> dict[str, T]:
    """Return what is known of the columns of the first schema and, alike, of those at their positions in all others."""
    by_place = [{s.index(name): value for name, value in own.items()} for s, own in zip(schemas, known, strict=True)]
    first = schemas[0]
    return {n: v for n, v in known[0].items() if all(own.get(first.index(n)) == v for own in by_place)}


def _covers(own: Offer, offer: Offer) -> bool:
    """True if `own` restricts no further column than `offer`, and none more narrowly."""
    classes = own.template.classes
    return own.attributes <= offer.attributes and all(c in ("+", offer.class_of(name)) for name, c in classes)


def _references(inputs: list[Offers]) -> tuple[Reference, ...]:
    """The foreign keys that all inputs have; each is named with the declarations of all."""
    found: list[Reference] = []
    for own in inputs[0].references:
        same = [[each for each in other.references if each.bare == own.bare] for other in inputs]
        if all(same):
            origins = dict.fromkeys(each.origin for alike in same for each in alike)
            found.append(replace(own, origin=" and ".join(origins)))
    return tuple(found)


def _with_all_origins(offers: list[Offer]) -> tuple[Offer, ...]:
    """Return each template once, with all declarations behind it."""
    origins: dict[Offer, list[str]] = {}
    for offer in offers:
        origins.setdefault(replace(offer, origin=""), []).append(offer.origin)
    return tuple(replace(offer, origin=" and ".join(dict.fromkeys(o))) for offer, o in origins.items())
