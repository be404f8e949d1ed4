"""Schemas: the named, ordered, typed attributes of a stream, and the meaning of its timestamps.

Every tuple carries its timestamp in the hidden column `TS` (Int64: microseconds for TIMESTAMP time, the plain number
for BIGINT time), whatever the query selects. So order and windows survive projections.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from enum import Enum

import polars as pl

from millstream.algebra.types import MICROS, Type
from millstream.algebra.values import record, value
from millstream.errors import BindError, did_you_mean

TS = "__ts"
NEVER = -(1 << 63)
"""The lowest timestamp: a bound that promises nothing."""
FOREVER = (1 << 63) - 1
"""The highest timestamp: the bound of a stream that has ended."""


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
    """Attributes and time.

    `time` is the visible attribute that equals the hidden timestamp, if there is one. `unit` is the number of timestamp
    units per second (1,000,000 for TIMESTAMP, 1 for BIGINT time). `ordered`: tuples arrive in non-decreasing timestamp
    order. `moves`: tuples can be put into that order, because punctuation reports the progress of time.
    """

    attributes: tuple[Attribute, ...]
    kind: TimeKind = TimeKind.LATENT
    time: str | None = None
    unit: int = MICROS
    ordered: bool = True
    moves: bool = True

    @classmethod
    def of(cls, *attributes: tuple[str, Type], kind: TimeKind = TimeKind.LATENT, time: str | None = None) -> Schema:
        unit = 1 if time is not None and dict(attributes)[time].is_integer else MICROS
        return cls(tuple(Attribute(name, type_) for name, type_ in attributes), kind, time, unit)

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
        """Replace the attributes and keep the time; `time` becomes None if its attribute is gone."""
        chosen = tuple(attributes)
        time = self.time if self.time in {a.name for a in chosen} else None
        return replace(self, attributes=chosen, time=time)

    def empty(self) -> pl.DataFrame:
        return pl.DataFrame(schema=self.polars)

    def __str__(self) -> str:
        return f"({', '.join(map(str, self.attributes))})"
