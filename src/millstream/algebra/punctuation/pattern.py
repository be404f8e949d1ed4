"""Patterns: conjunctions of restrictions over named attributes.

A pattern is an immutable value; attributes that it does not name may have any value. One algebra serves punctuation,
guards, purging and prods.

>>> from millstream.algebra.punctuation.restriction import below, equal
>>> early, of_five = Pattern.of(ts=below(10)), Pattern.of(ts=below(4), auction=equal(5))
>>> early.covers(of_five), of_five.covers(early), str(early.intersect(of_five))
(True, False, '[auction = 5, ts < 4]')
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from millstream.algebra.punctuation.restriction import ANY, NOTHING, Restriction
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
        given = {**(restrictions or {}), **named}
        return cls(tuple(sorted((name, r) for name, r in given.items() if not r.is_any)))

    @property
    def attributes(self) -> frozenset[str]:
        """The names of the restricted attributes."""
        return frozenset(name for name, _ in self.items)

    @property
    def is_empty(self) -> bool:
        """Whether it surely matches nothing (as a punctuation: whether it is vacuous)."""
        return any(restriction.is_empty for _, restriction in self.items)

    def get(self, name: str) -> Restriction:
        for own, restriction in self.items:
            if own == name:
                return restriction
        return ANY

    def matches(self, row: Mapping[str, Any]) -> bool:
        return all(restriction.matches(row[name]) for name, restriction in self.items)

    def expression(self) -> pl.Expr:
        """Whether a row matches: true or false, never null. Without restrictions it is a literal."""
        parts = [restriction.expression(pl.col(name)) for name, restriction in self.items]
        if len(parts) == 1:
            return parts[0]
        return pl.all_horizontal(parts) if parts else pl.lit(True)

    def match(self, frame: pl.DataFrame) -> pl.Series:
        """Which rows of a page match."""
        if not self.items:
            return pl.repeat(True, frame.height, dtype=pl.Boolean, eager=True)
        if self.is_empty:
            return pl.repeat(False, frame.height, dtype=pl.Boolean, eager=True)
        return frame.select(self.expression().alias("match")).to_series()

    def covers(self, other: Pattern) -> bool:
        """Whether it surely matches everything that the other matches."""
        return other.is_empty or all(restriction.covers(other.get(name)) for name, restriction in self.items)

    def intersect(self, other: Pattern) -> Pattern:
        names = self.attributes | other.attributes
        return Pattern.of({name: self.get(name).intersect(other.get(name)) for name in names})

    def project(self, names: Iterable[str]) -> Pattern:
        """What it says about the named attributes: matches what some matching row has there."""
        wanted = set(names)
        kept = Pattern(tuple((name, r) for name, r in self.items if name in wanted))
        if self.is_empty and not kept.is_empty:
            # Nothing matches, although the attribute that says so is projected away.
            return Pattern.of({min(wanted, default=self.items[0][0]): NOTHING})
        return kept

    def rename(self, names: Mapping[str, str]) -> Pattern:
        """With other names (those not mentioned stay); attributes that fall together must match both restrictions."""
        made: dict[str, Restriction] = {}
        for name, restriction in self.items:
            target = names.get(name, name)
            made[target] = made.get(target, ANY).intersect(restriction)
        return Pattern.of(made)

    def format(self, schema: Schema, brackets: str = "[]") -> str:
        """By position, as transcripts write it: `[<= 10, *, 5]`."""
        return write_restrictions(dict(self.items), schema, brackets)

    def __str__(self) -> str:
        parts = (f"{name} {'= ' if restriction.is_value else ''}{restriction}" for name, restriction in self.items)
        return f"[{', '.join(parts)}]"

    def __repr__(self) -> str:
        return f"Pattern({self})"


def parse_pattern(text: str, schema: Schema, brackets: str = "[]") -> Pattern:
    """A pattern from its text, by position or by name; PatternError if it is malformed or does not fit the schema.

    >>> from millstream.algebra.types import Type
    >>> parse_pattern("[ts <= 10, auction in [2, 5)]", Schema.of(("ts", Type.BIGINT), ("auction", Type.BIGINT)))
    Pattern([auction [2, 5), ts <= 10])
    """
    return Pattern.of(read_restrictions(text, schema, brackets))
