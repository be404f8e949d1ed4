"""Schemas: the named, ordered, typed attributes of a stream, and the meaning of its timestamps.

Every tuple carries its timestamp in the hidden column `TS` (Int64: microseconds for TIMESTAMP time, the plain number
for BIGINT time), whatever the query selects. So order and windows survive projections.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import timedelta
from enum import Enum

import polars as pl

from millstream.algebra.expression import Binary, Column, Expression, Literal
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
    order. `moves`: tuples can be put into that order, because punctuation reports the progress of time. `offsets` has
    further attributes that are the hidden timestamp plus a constant, in timestamp units: a window ends one unit after
    the time of its row. `follows` has other attributes that time closes: none of them is ever below the expression
    beside it, which is over the hidden timestamp and rises with it.
    """

    attributes: tuple[Attribute, ...]
    kind: TimeKind = TimeKind.LATENT
    time: str | None = None
    unit: int = MICROS
    ordered: bool = True
    moves: bool = True
    follows: tuple[tuple[str, Expression], ...] = ()
    offsets: tuple[tuple[str, int], ...] = ()

    @classmethod
    def of(cls, *attributes: tuple[str, Type], kind: TimeKind = TimeKind.LATENT, time: str | None = None) -> Schema:
        unit = 1 if time is not None and dict(attributes)[time].is_integer else MICROS
        return cls(tuple(Attribute(name, type_) for name, type_ in attributes), kind, time, unit)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(a.name for a in self.attributes)

    @property
    def times(self) -> dict[str, int]:
        """The attributes that are the hidden timestamp plus a constant, with the constants; the time itself first."""
        return ({} if self.time is None else {self.time: 0}) | dict(self.offsets)

    @property
    def trails(self) -> dict[str, Expression]:
        """The attributes that time closes: each is at least the expression over the hidden timestamp."""
        if self.kind is TimeKind.LATENT and not self.offsets:
            return {}
        return dict(self.follows) | {name: self._after(name, offset) for name, offset in self.times.items()}

    def _after(self, name: str, offset: int) -> Expression:
        """Return the hidden timestamp plus a constant, as a value of an attribute."""
        stamp = Column(self.type_of(name), TS)
        if not offset:
            return stamp
        timed = stamp.type is Type.TIMESTAMP
        length = Literal(Type.INTERVAL, timedelta(microseconds=offset)) if timed else Literal(Type.BIGINT, offset)
        return Binary(stamp.type, "+", stamp, length)

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
        names = {a.name for a in chosen}
        follows = tuple(item for item in self.follows if item[0] in names)
        offsets = tuple(item for item in self.offsets if item[0] in names)
        time = self.time if self.time in names else None
        return replace(self, attributes=chosen, time=time, follows=follows, offsets=offsets)

    def empty(self) -> pl.DataFrame:
        return pl.DataFrame(schema=self.polars)

    def __str__(self) -> str:
        return f"({', '.join(map(str, self.attributes))})"
