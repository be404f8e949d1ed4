"""Offers: what a stream promises about its future, and which declaration makes its source promise it.

| declaration | templates | time |
|---|---|---|
| `ORDER BY ts` | | moves with every tuple |
| `ORDER BY current_time` | | moves with every tuple |
| `WATERMARK FOR ts` | `(ts +)` | moves with the watermark |
| `PUNCTUATED ON (ts +)`, where `ts` is the time column | `(ts +)` | moves with the punctuation |
| `PUNCTUATED ON (…)`, any other | itself | by the other clauses; the order is no longer promised |
| `PUNCTUATED ON (…)`, of a source that sends no punctuation | | the order is no longer promised |
| `PRIMARY KEY (k)` | `(k #)`, of values that came | |
| `ASCENDING (k)` | `(k +)` | |
| `CLOSES s (k) BY (id)`, on another stream | `(k #)` on `s` (`nodes.closing`) | |
| `k REFERENCES s (id)` | none: each value of `k` comes in `s`, whose primary key closes it | |
| none of `ORDER BY`, `WATERMARK FOR` | | only when asked for; moves with heartbeats, never with `ets = 'none'` |

A template `+` promises bounds that rise past every value, for every value of its `#` columns. `#` promises that every
value is closed, whether or not a tuple has it. A primary key closes only values that come.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import TYPE_CHECKING, TypeVar

from millstream.algebra.punctuation.template import Template
from millstream.algebra.schema import Schema, TimeKind

if TYPE_CHECKING:
    from millstream.logical.catalog import Catalog, StreamDefinition
    from millstream.logical.nodes.scan import Scan


Promise = TypeVar("Promise")


class Time(IntEnum):
    """When a stream promises that time has passed."""

    STILL = 0
    ASKED = 1
    """Only when an operator that waits asks for it."""
    MOVES = 2


@dataclass(frozen=True, slots=True)
class Reference:
    """Columns paired with those of a stream's primary key. As a promise of its own it is a foreign key: each value
    comes in that stream, sooner or later."""

    stream: str
    columns: tuple[tuple[str, str], ...]
    origin: str = ""

    def renamed(self, names: Mapping[str, str]) -> Reference | None:
        """Return it over renamed columns; None if a column has no new name."""
        if not all(own in names for own, _ in self.columns):
            return None
        return replace(self, columns=tuple((names[own], there) for own, there in self.columns))

    @property
    def bare(self) -> Reference:
        return replace(self, columns=tuple(sorted(self.columns)), origin="")

    def __str__(self) -> str:
        own, there = (", ".join(names) for names in zip(*self.columns, strict=True))
        columns = own if len(self.columns) == 1 else f"FOREIGN KEY ({own})"
        return f"{columns} REFERENCES {self.stream} ({there})"


@dataclass(frozen=True, slots=True)
class Offer:
    """A template that a stream promises, and the declaration behind it. `seen`: only values that came are closed.
    `key`: all values that came in the primary key of this stream are, whether or not their tuples are left."""

    template: Template
    origin: str
    seen: bool = False
    key: Reference | None = None

    @property
    def attributes(self) -> frozenset[str]:
        return self.template.attributes

    def class_of(self, attribute: str) -> str:
        return self.template.class_of(attribute)

    def renamed(self, names: Mapping[str, str]) -> Offer | None:
        """Return the offer over renamed columns; None if a column has no new name, or two columns get the same."""
        template = self.template.renamed(names)
        key = None if self.key is None else self.key.renamed(names)
        return None if template is None else Offer(template, self.origin, self.seen, key)

    def order(self) -> tuple[object, ...]:
        """What puts offers in an order, the same for equal ones."""
        return sorted(self.template.classes), self.seen, str(self.key or "")

    @property
    def bare(self) -> Offer:
        """The offer without the declaration behind it."""
        return Offer(self.template, "", self.seen, None if self.key is None else self.key.bare)

    def __str__(self) -> str:
        return f"{self.template} of values that came" if self.seen else str(self.template)


@dataclass(frozen=True, slots=True)
class Offers:
    """Everything that a stream promises; `clocks` are the declarations that move its time, `references` its foreign
    keys."""

    time: Time = Time.STILL
    clocks: tuple[str, ...] = ()
    templates: tuple[Offer, ...] = ()
    references: tuple[Reference, ...] = ()

    def renamed(self, names: Mapping[str, str]) -> Offers:
        """Return the offers over renamed columns, without those that cannot be renamed."""
        templates = distinct(offer.renamed(names) for offer in self.templates)
        return Offers(self.time, self.clocks, templates, distinct(each.renamed(names) for each in self.references))

    @property
    def bare(self) -> Offers:
        """The scheme alone, without the declarations behind it; equal schemes are equal values."""
        found = {offer.bare for offer in self.templates}
        references = tuple(sorted({each.bare for each in self.references}, key=str))
        return Offers(self.time, templates=tuple(sorted(found, key=Offer.order)), references=references)

    def includes(self, other: Offers) -> bool:
        """True if it promises as much as another scheme."""
        if self.time < other.time or not (other.templates or other.references):
            return self.time >= other.time
        own, foreign = {offer.bare for offer in self.templates}, {key.bare for key in self.references}
        return all(o.bare in own for o in other.templates) and all(r.bare in foreign for r in other.references)

    def without(self, given_up: Offer | Reference) -> Offers:
        templates = tuple(own for own in self.templates if own != given_up)
        return replace(self, templates=templates, references=tuple(r for r in self.references if r != given_up))

    def at_most(self, time: Time) -> Offers:
        """Return the scheme with a time that promises no more than this."""
        return replace(self, time=min(self.time, time), clocks=() if time is Time.STILL else self.clocks)

    def joined(self, other: Offers) -> Offers:
        """Return a scheme that promises what either does."""
        faster = max(self, other, key=lambda offers: offers.time)
        templates = distinct((*self.templates, *other.templates))
        return Offers(faster.time, faster.clocks, templates, distinct((*self.references, *other.references)))

    @property
    def origins(self) -> tuple[str, ...]:
        """The declarations behind it."""
        templates, references = (o.origin for o in self.templates), (r.origin for r in self.references)
        return tuple(dict.fromkeys((*templates, *references, *self.clocks)))

    def __str__(self) -> str:
        whole = {offer.template for offer in self.templates if not offer.seen}
        texts = [str(offer) for offer in self.templates if not (offer.seen and offer.template in whole)]
        texts += map(str, self.references)
        texts += ["time"] if self.time is Time.MOVES else ["time when asked"] if self.time is Time.ASKED else []
        return ", ".join(dict.fromkeys(texts)) or "nothing"


def distinct(promises: Iterable[Promise | None]) -> tuple[Promise, ...]:
    return tuple(dict.fromkeys(promise for promise in promises if promise is not None))


def slowest(inputs: Iterable[Offers]) -> tuple[Time, tuple[str, ...]]:
    """Return the time of an operator with several inputs, which is that of the slowest, and all their clocks."""
    inputs = tuple(inputs)
    return min(i.time for i in inputs), tuple(dict.fromkeys(clock for i in inputs for clock in i.clocks))


@dataclass(frozen=True, slots=True)
class Declarations:
    """The declarations of all streams, and how silent sources promise time (`SET ets`). The sources of the streams
    `unpunctuated` send no punctuation, whatever is declared."""

    streams: Mapping[str, StreamDefinition]
    ets: str = "demand"
    unpunctuated: frozenset[str] = frozenset()

    @classmethod
    def of(cls, catalog: Catalog, ets: str = "demand", unpunctuated: frozenset[str] = frozenset()) -> Declarations:
        return cls({definition.name: definition for definition in catalog.streams}, ets, unpunctuated)

    def offers(self, scan: Scan) -> Offers:
        """Return what the source of a scan promises; a companion stream (`s__late`) declares nothing."""
        definition = self.streams.get(scan.stream)
        templates = () if definition is None else _declared(definition, sent=scan.stream not in self.unpunctuated)
        foreign = () if definition is None else foreign_keys(definition)
        references = tuple(key for key in foreign if all(own in scan.schema for own, _ in key.columns))
        return replace(self._time(scan.stream, scan.schema, templates), templates=templates, references=references)

    def _time(self, name: str, schema: Schema, templates: tuple[Offer, ...]) -> Offers:
        """Return what a stream promises about its time."""
        if schema.kind is TimeKind.EXTERNAL:
            if schema.ordered:
                return Offers(Time.MOVES, (f"{name} ORDER BY {schema.time}",))
            clocks = tuple(offer.origin for offer in templates if offer.template.classes == ((schema.time, "+"),))
            return Offers(Time.MOVES, clocks[:1]) if clocks else Offers()
        if schema.kind is TimeKind.INTERNAL and schema.ordered:
            return Offers(Time.MOVES, (f"{name} ORDER BY current_time",))
        if self.ets == "none":
            return Offers()
        if self.ets == "heartbeat":
            return Offers(Time.MOVES, (f"heartbeats of {name}",))
        return Offers(Time.ASKED, (f"the clock of {name}",))


def _declared(definition: StreamDefinition, *, sent: bool) -> tuple[Offer, ...]:
    """Return the templates that a definition promises; `sent`: its source sends punctuation."""
    offers = []
    for template in definition.templates:
        watermark = definition.watermark is not None and template.classes == ((definition.schema.time, "+"),)
        clause = f"WATERMARK FOR {definition.schema.time}" if watermark else f"PUNCTUATED ON {template}"
        if watermark or sent:
            offers.append(Offer(template, f"{definition.name} {clause}"))
    for name in definition.ascending:
        offers.append(Offer(Template(((name, "+"),)), f"{definition.name} ASCENDING ({name})"))
    if definition.primary_key:
        key = Template(tuple((name, "#") for name in definition.primary_key))
        origin = f"{definition.name} PRIMARY KEY ({', '.join(definition.primary_key)})"
        own = Reference(definition.name, tuple((name, name) for name in definition.primary_key))
        offers.append(Offer(key, origin, seen=True, key=own))
    return tuple(offers)


def foreign_keys(definition: StreamDefinition) -> tuple[Reference, ...]:
    made = (Reference(r.stream, tuple(zip(r.columns, r.key, strict=True))) for r in definition.references)
    return tuple(replace(each, origin=f"{definition.name} {each}") for each in made)
