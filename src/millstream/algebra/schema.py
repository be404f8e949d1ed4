"""Schemas: the named, ordered, typed attributes of a stream, and what its timestamps mean.

Every tuple carries its timestamp in the hidden column `TS` (Int64: microseconds for TIMESTAMP time, the plain number
for BIGINT time), whatever the query selects, so that order and windows survive projections.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from enum import Enum

import polars as pl

from millstream.algebra.types import Type
from millstream.algebra.values import record, value
from millstream.errors import BindError, did_you_mean

TS = "__ts"
NEVER = -(1 << 63)
"""The lowest timestamp: a bound that promises nothing."""
FOREVER = (1 << 63) - 1
"""The highest timestamp: a bound that says the stream has ended."""


@value("time_kind")
class TimeKind(Enum):
    EXTERNAL = "external"
    INTERNAL = "internal"
    LATENT = "latent"


@record("attribute")
class Attribute:
    name: str
    type: Type

    def __str__(self) -> str:
        return f"{self.name} {self.type.value}"


@record("schema")
class Schema:
    """Attributes plus time. `time` names the visible attribute that equals the hidden timestamp, if one does;
    `unit` is how many timestamp units a second has (1,000,000 for TIMESTAMP, 1 for BIGINT time);
    `ordered` says whether tuples come in non-decreasing timestamp order, `moves` whether they can be put in that order
    where they do not: punctuation says how far time is."""

    attributes: tuple[Attribute, ...]
    kind: TimeKind = TimeKind.LATENT
    time: str | None = None
    unit: int = 1_000_000
    ordered: bool = True
    moves: bool = True

    @classmethod
    def of(cls, *attributes: tuple[str, Type], kind: TimeKind = TimeKind.LATENT, time: str | None = None) -> Schema:
        made = tuple(Attribute(name, type_) for name, type_ in attributes)
        types = dict(attributes)
        unit = 1 if time is not None and types[time].is_integer else 1_000_000
        return cls(made, kind, time, unit)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(a.name for a in self.attributes)

    @property
    def polars(self) -> dict[str, pl.DataType]:
        """The Polars schema of a page: the attributes, then the hidden timestamp."""
        return {a.name: a.type.polars for a in self.attributes} | {TS: pl.Int64()}

    def __len__(self) -> int:
        return len(self.attributes)

    def __iter__(self) -> Iterator[Attribute]:
        return iter(self.attributes)

    def __contains__(self, name: object) -> bool:
        return name in self.names

    def index(self, name: str) -> int:
        for i, attribute in enumerate(self.attributes):
            if attribute.name == name:
                return i
        raise BindError("M2001", f"unknown column '{name}'", hint=did_you_mean(name, self.names))

    def type_of(self, name: str) -> Type:
        return self.attributes[self.index(name)].type

    def with_attributes(self, attributes: Iterable[Attribute]) -> Schema:
        """Other attributes, same time; `time` is dropped if its attribute is gone."""
        made = tuple(attributes)
        kept = self.time if self.time in {a.name for a in made} else None
        return replace(self, attributes=made, time=kept)

    def empty(self) -> pl.DataFrame:
        return pl.DataFrame(schema=self.polars)

    def __str__(self) -> str:
        return f"({', '.join(map(str, self.attributes))})"
