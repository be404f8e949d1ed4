"""Patterns: conjunctions of restrictions over named attributes.

A pattern is an immutable value; attributes that it does not name may have any value. One algebra serves punctuation,
lateness, purging and propagation.

>>> from millstream.algebra.punctuation.restriction import below, equal
>>> early, of_five = Pattern.of(ts=below(10)), Pattern.of(ts=below(4), auction=equal(5))
>>> early.covers(of_five), of_five.covers(early), str(early.intersect(of_five))
(True, False, '[auction = 5, ts < 4]')
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from millstream.algebra.punctuation.restriction import ANY, Restriction
from millstream.algebra.punctuation.text import read_restrictions, write_restrictions
from millstream.algebra.schema import Schema
from millstream.algebra.values import value


@value("pattern")
@dataclass(frozen=True, slots=True, repr=False)
class Pattern:
    """Restrictions by attribute name, sorted, without `*`."""

    items: tuple[tuple[str, Restriction], ...] = ()

    @classmethod
    def of(cls, restrictions: Mapping[str, Restriction] | None = None, **named: Restriction) -> Pattern:
        chosen = {**(restrictions or {}), **named}
        return cls(tuple(sorted((name, r) for name, r in chosen.items() if not r.is_any)))

    @property
    def attributes(self) -> frozenset[str]:
        """Names of the restricted attributes."""
        return frozenset(name for name, _ in self.items)

    @property
    def is_empty(self) -> bool:
        """True if it surely matches nothing; such a punctuation is vacuous."""
        return any(restriction.is_empty for _, restriction in self.items)

    def get(self, name: str) -> Restriction:
        for own, restriction in self.items:
            if own == name:
                return restriction
        return ANY

    def matches(self, row: Mapping[str, Any]) -> bool:
        return all(restriction.matches(row[name]) for name, restriction in self.items)

    def expression(self) -> pl.Expr:
        """A predicate that is true or false for each row, never null; a literal if there are no restrictions."""
        parts = [restriction.expression(pl.col(name)) for name, restriction in self.items]
        if len(parts) == 1:
            return parts[0]
        return pl.all_horizontal(parts) if parts else pl.lit(True)

    def match(self, frame: pl.DataFrame) -> pl.Series:
        """Mask of the rows of a page that match."""
        if not self.items or self.is_empty:
            return pl.repeat(not self.items, frame.height, dtype=pl.Boolean, eager=True)
        return frame.select(self.expression().alias("match")).to_series()

    def covers(self, other: Pattern) -> bool:
        """True if it surely matches everything that the other matches."""
        return other.is_empty or all(restriction.covers(other.get(name)) for name, restriction in self.items)

    def intersect(self, other: Pattern) -> Pattern:
        names = self.attributes | other.attributes
        return Pattern.of({name: self.get(name).intersect(other.get(name)) for name in names})

    def union(self, other: Pattern) -> Pattern | None:
        """The pattern that matches exactly what one of both matches; None if none is known.

        >>> from millstream.algebra.punctuation.restriction import equal
        >>> print(Pattern.of(k=equal(1), n=equal(7)).union(Pattern.of(k=equal(2), n=equal(7))))
        [k {1, 2}, n = 7]
        """
        if len(self.items) != len(other.items):
            return None
        apart = [pair for pair in zip(self.items, other.items, strict=True) if pair[0] != pair[1]]
        if len(apart) != 1 or apart[0][0][0] != apart[0][1][0]:
            return None
        [((name, own), (_, others))] = apart
        both = own.union(others)
        return None if both is None else Pattern.of(dict(self.items) | {name: both})

    def rename(self, names: Mapping[str, str]) -> Pattern:
        """Rename attributes, by default to themselves; restrictions that get the same name are intersected."""
        renamed: dict[str, Restriction] = {}
        for name, restriction in self.items:
            target = names.get(name, name)
            renamed[target] = renamed.get(target, ANY).intersect(restriction)
        return Pattern.of(renamed)

    def format(self, schema: Schema) -> str:
        """The text by position, as in transcripts: `[<= 10, *, 5]`."""
        return write_restrictions(dict(self.items), schema)

    def __str__(self) -> str:
        parts = (f"{name} {'= ' if restriction.is_value else ''}{restriction}" for name, restriction in self.items)
        return f"[{', '.join(parts)}]"

    def __repr__(self) -> str:
        return f"Pattern({self})"


def parse_pattern(text: str, schema: Schema) -> Pattern:
    """Parse a pattern, by position or by name; raise PatternError if it is malformed or does not fit the schema.

    >>> from millstream.algebra.types import Type
    >>> parse_pattern("[ts <= 10, auction in [2, 5)]", Schema.of(("ts", Type.BIGINT), ("auction", Type.BIGINT)))
    Pattern([auction [2, 5), ts <= 10])
    """
    return Pattern.of(read_restrictions(text, schema))
