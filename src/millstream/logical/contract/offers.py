"""What a stream promises of its future, and what a declaration makes a source promise.

| declaration | templates | time |
|---|---|---|
| `ORDER BY ts` | | moves with every tuple |
| `ORDER BY current_time` | | moves with every tuple |
| `WATERMARK FOR ts` | `(ts +)` | moves with the watermark |
| `PUNCTUATED ON (ts +)`, where `ts` is the time column | `(ts +)` | moves with the punctuation |
| `PUNCTUATED ON (…)`, any other | itself | as the other clauses say; it takes away the order |
| `PRIMARY KEY (k)` | `(k #)`, of values that came | |
| `ASCENDING (k)` | `(k +)` | |
| `CLOSES s (k) BY (id)`, on another stream | `(k #)` on `s` (`nodes.closing`) | |
| none of `ORDER BY`, `WATERMARK FOR` | | only when asked; moves with heartbeats, never with `ets = 'none'` |

A template `+` promises bounds that rise past every value, for every value of its `#` columns; `#` promises that every
value is closed, whether or not a tuple had it. A primary key closes no value that never comes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import TYPE_CHECKING

from millstream.algebra.punctuation.template import Template
from millstream.algebra.schema import Schema, TimeKind

if TYPE_CHECKING:
    from millstream.logical.catalog import Catalog, StreamDefinition
    from millstream.logical.nodes.scan import Scan


class Time(IntEnum):
    """Whether a reader learns that time passes."""

    STILL = 0
    ASKED = 1
    """The source tells when an operator that waits for it asks; nobody hears of it otherwise."""
    MOVES = 2


@dataclass(frozen=True, slots=True)
class Offer:
    """A template that a stream keeps to, and the declaration that it comes from. `seen`: only values that came are
    closed. `foreign`: its columns are a foreign key, of things that come in the stream that has their primary key."""

    template: Template
    origin: str
    seen: bool = False
    foreign: bool = False

    @property
    def attributes(self) -> frozenset[str]:
        return self.template.attributes

    def class_of(self, attribute: str) -> str:
        return dict(self.template.classes).get(attribute, "-")

    def renamed(self, names: Mapping[str, str]) -> Offer | None:
        """Under other names; None if it restricts a column without one, or two columns become one."""
        if not self.attributes <= names.keys() or len({names[a] for a in self.attributes}) < len(self.attributes):
            return None
        return replace(self, template=Template(tuple((names[name], class_) for name, class_ in self.template.classes)))

    def __str__(self) -> str:
        return f"{self.template} of values that came" if self.seen else str(self.template)


@dataclass(frozen=True, slots=True)
class Offers:
    """All that a stream promises; `clocks` are the declarations that move its time."""

    time: Time = Time.STILL
    clocks: tuple[str, ...] = ()
    templates: tuple[Offer, ...] = ()

    def renamed(self, names: Mapping[str, str]) -> Offers:
        """Under other names; what cannot be said there is left out."""
        return replace(self, templates=distinct(offer.renamed(names) for offer in self.templates))

    def __str__(self) -> str:
        whole = {offer.template for offer in self.templates if not offer.seen}
        said = [str(offer) for offer in self.templates if not (offer.seen and offer.template in whole)]
        said += ["time"] if self.time is Time.MOVES else ["time when asked"] if self.time is Time.ASKED else []
        return ", ".join(dict.fromkeys(said)) or "nothing"


def distinct(offers: Iterable[Offer | None]) -> tuple[Offer, ...]:
    return tuple(dict.fromkeys(offer for offer in offers if offer is not None))


def slowest(inputs: Iterable[Offers]) -> tuple[Time, tuple[str, ...]]:
    """The time of an operator with several inputs: it moves as far as all of theirs do."""
    inputs = tuple(inputs)
    return min(i.time for i in inputs), tuple(dict.fromkeys(clock for i in inputs for clock in i.clocks))


@dataclass(frozen=True, slots=True)
class Declarations:
    """What streams declare, and how silent ones promise time (`SET ets`)."""

    streams: Mapping[str, StreamDefinition]
    ets: str = "demand"

    @classmethod
    def of(cls, catalog: Catalog, ets: str = "demand") -> Declarations:
        return cls({definition.name: definition for definition in catalog.streams}, ets)

    def offers(self, scan: Scan) -> Offers:
        """What the source of a scan promises; a companion stream (`s__late`) declares nothing."""
        definition = self.streams.get(scan.stream)
        time, clock = self._time(scan.stream, scan.schema, definition)
        clocks = (clock,) if clock else ()
        return Offers(time, clocks, () if definition is None else declared(definition))

    def _time(self, name: str, schema: Schema, definition: StreamDefinition | None) -> tuple[Time, str]:
        if schema.kind is TimeKind.EXTERNAL:
            if schema.ordered:
                return Time.MOVES, f"{name} ORDER BY {schema.time}"
            for offer in () if definition is None else declared(definition):
                if offer.template.classes == ((schema.time, "+"),):
                    return Time.MOVES, offer.origin
            return Time.STILL, ""
        if schema.kind is TimeKind.INTERNAL and schema.ordered:
            return Time.MOVES, f"{name} ORDER BY current_time"
        if self.ets == "none":
            return Time.STILL, ""
        return (
            (Time.MOVES, f"heartbeats of {name}") if self.ets == "heartbeat" else (Time.ASKED, f"the clock of {name}")
        )


def declared(definition: StreamDefinition) -> tuple[Offer, ...]:
    """The templates that a definition promises."""
    made = []
    for template in definition.templates:
        marked = definition.watermark is not None and template.classes == ((definition.schema.time, "+"),)
        clause = f"WATERMARK FOR {definition.schema.time}" if marked else f"PUNCTUATED ON {template}"
        made.append(Offer(template, f"{definition.name} {clause}"))
    for name in definition.ascending:
        made.append(Offer(Template(((name, "+"),)), f"{definition.name} ASCENDING ({name})"))
    if definition.primary_key:
        key = Template(tuple((name, "#") for name in definition.primary_key))
        made.append(Offer(key, f"{definition.name} PRIMARY KEY ({', '.join(definition.primary_key)})", seen=True))
    return tuple(made)
