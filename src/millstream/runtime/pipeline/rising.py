"""Punctuation on a column as punctuation on an expression that rises with it (`algebra/monotone`).

| restriction of x | of f(x), which rises strictly | of f(x), which may stand still |
|---|---|---|
| `< v`, `> v` | `< f(v)`, `> f(v)` | the same |
| `<= v`, `>= v` | `<= f(v)`, `>= f(v)` | `< f(v)`, `> f(v)` |
| `= v` | `= f(v)` | none: other values may give f(v) too |
| a set | the set of f(v) | none |
| from v to w | from f(v) to f(w) | strictly between f(v) and f(w) |
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from functools import reduce
from typing import Any

import numpy as np
import polars as pl

from millstream.algebra.arrays import Mask, Places
from millstream.algebra.expression import Binary, Column, Expression, Literal
from millstream.algebra.monotone import Rises
from millstream.algebra.punctuation.group import Group
from millstream.algebra.punctuation.grouping import Parts, by_shape
from millstream.algebra.punctuation.pattern import Pattern
from millstream.algebra.punctuation.punctuations import Punctuations
from millstream.algebra.punctuation.restriction import Form, Restriction, between, compare, equal, one_of
from millstream.algebra.schema import NEVER, Schema
from millstream.algebra.types import Type, micros
from millstream.runtime.operator.time_closing import FAR, values_of

_STANDING = {"<": "<", "<=": "<", ">": ">", ">=": ">"}
"""The comparison of a result that may stand still, for each comparison of its argument."""


class Rising:
    """`copied` maps columns to their new names; `computed` maps others to what rises with them."""

    def __init__(self, schema: Schema, copied: Mapping[str, str], computed: Mapping[str, Rises]) -> None:
        self._types = schema.polars
        self._copied, self._computed = copied, computed
        self._steps = {column: _step(rises.expression) for column, rises in computed.items()}
        """For columns whose expression adds a constant, the constant as a number; None for others."""

    @property
    def names(self) -> frozenset[str]:
        """The computed columns that may be restricted."""
        return frozenset(rises.name for rises in self._computed.values())

    def __call__(self, punctuations: Punctuations) -> Punctuations:
        """Return the punctuations over copied and computed columns, in their order."""
        copied = punctuations.select(self._copied)
        if self._computed and len(copied) < len(punctuations):
            found = self._found(punctuations)
            if found:
                return Punctuations.merge([(copied, self._copied_places(punctuations)), *found], punctuations.progress)
        return copied

    def computed(self, punctuations: Punctuations) -> Punctuations | None:
        """Return the punctuations over computed columns alone, without progress; None if there are none."""
        found = self._found(punctuations)
        return Punctuations.merge(found, NEVER) if found else None

    def _found(self, punctuations: Punctuations) -> list[tuple[Punctuations, Places]]:
        """Return the punctuations over computed columns, with the places of those that they come from."""
        groups, odd = punctuations.parts
        found = [self._translated(group) for group in groups if self._concerns(group.attributes)]
        found += [self._translated_odd(at, pattern) for at, pattern in odd if self._concerns(pattern.attributes)]
        return [one for one in found if one is not None]

    def _copied_places(self, punctuations: Punctuations) -> Places:
        groups, odd = punctuations.parts
        names = self._copied.keys()
        places = [group.positions for group in groups if group.attributes <= names]
        return np.sort(np.concatenate([*places, [at for at, p in odd if p.attributes <= names]])).astype(np.int64)

    def _concerns(self, names: frozenset[str]) -> bool:
        return not names.isdisjoint(self._computed) and names <= self._copied.keys() | self._computed.keys()

    def _translated(self, group: Group) -> tuple[Punctuations, Places] | None:
        """Return the punctuations for those of a group, and the places of these."""
        comparisons: list[tuple[str, str, pl.Series]] = []
        for column, op in group.shape:
            values = group.columns[column]
            if column in self._copied:
                name = self._copied[column]
            else:
                _, name, expression, strict = self._computed[column]
                changed = self._changed(column, values, expression)
                if changed is None or not (strict or op in _STANDING):
                    return None
                values, op = changed, op if strict else _STANDING[op]
            comparisons.append((name, op, values))
        known = np.logical_and.reduce([_known(values) for _, _, values in comparisons])
        if not known.any():
            return None
        places, kept = group.positions, comparisons
        if not known.all():
            places = places[known]
            kept = [(name, op, values.filter(pl.Series(known))) for name, op, values in comparisons]
        if len({name for name, _, _ in kept}) == len(kept):
            whole = Group.of({name: (op, values) for name, op, values in kept})
            return Punctuations(len(places), NEVER, parts=Parts((whole,), ())), places
        # Two columns become one: both restrictions hold for it.
        alone = [[Pattern.of({name: compare(op, value)}) for value in values] for name, op, values in kept]
        return Punctuations.of(reduce(Pattern.intersect, row) for row in zip(*alone, strict=True)), places

    def _translated_odd(self, at: int, pattern: Pattern) -> tuple[Punctuations, Places] | None:
        """Return the punctuation for one that has no shape, and its place."""
        whole = Pattern.of({name: r for name, r in pattern.items if name in self._copied}).rename(self._copied)
        for column, restriction in pattern.items:
            if column not in self._copied:
                changed = self._restriction(self._computed[column], restriction)
                if changed is None:
                    return None
                whole = whole.intersect(Pattern.of({self._computed[column].name: changed}))
        return Punctuations.of([whole]), np.array([at], dtype=np.int64)

    def _restriction(self, rises: Rises, restriction: Restriction) -> Restriction | None:
        """Return the restriction of a computed column for one of its argument; None if there is none."""
        ends = [end for end in (restriction.lo, restriction.hi) if end is not None]
        results = self._results(rises, restriction.values or ends)
        if restriction.form is Form.ONE_OF:
            known = [value for value in results if value is not None]
            return one_of(known) if rises.strict and known else None
        if restriction.form is not Form.INTERVAL or None in results:
            return None
        low = results[0] if restriction.lo is not None else None
        high = results[-1] if restriction.hi is not None else None
        return between(low, high, restriction.lo_closed and rises.strict, restriction.hi_closed and rises.strict)

    def _results(self, rises: Rises, values: Sequence[Any]) -> list[Any]:
        """Return the results for these values of the argument, None where there is none."""
        groups, odd = by_shape([(at, Pattern.of({rises.column: equal(value)})) for at, value in enumerate(values)])
        if odd or len(groups) != 1:
            return [None] * len(values)
        changed = self._changed(rises.column, groups[0].columns[rises.column], rises.expression)
        if changed is None:
            return [None] * len(values)
        return [value if known else None for value, known in zip(changed, _known(changed), strict=True)]

    def _changed(self, column: str, values: pl.Series, expression: Expression) -> pl.Series | None:
        """Return the results for the values of a restriction; NULL where arithmetic could overflow."""
        type_ = self._types[column]
        if values.dtype != type_ and not (values.dtype.is_integer() and type_.is_integer()):
            return None
        if values.dtype.is_integer() or values.dtype.is_temporal():
            numbers = values.cast(pl.Int64)  # `to_physical` takes ten times as long
            ends = numbers.to_numpy() if not values.null_count() else None
            step = self._steps.get(column)
            if ends is None or not (int(ends.min(initial=0)) > -FAR and int(ends.max(initial=0)) < FAR):
                values = values.set((numbers <= -FAR) | (numbers >= FAR), None)
            elif step is not None and values.dtype == type_:
                return pl.Series(column, ends + step).cast(type_)
        return values_of(expression, pl.DataFrame({column: values}))


def _step(expression: Expression) -> int | None:
    """Return the constant that an expression adds to a BIGINT or a time; None if it does anything else. Such a bound is
    by far the most common one, and needs no query planner."""
    match expression:
        case Binary(op="+" | "-" as op, left=Column(type=one), right=Literal(value=step), type=type_) if one is type_:
            number = micros(step) if isinstance(step, timedelta) else step
            whole = type_ is (Type.TIMESTAMP if isinstance(step, timedelta) else Type.BIGINT)
            if whole and isinstance(number, int) and abs(number) < FAR:
                return number if op == "+" else -number
    return None


def _known(values: pl.Series) -> Mask:
    if not values.null_count() and not values.dtype.is_float():
        return np.ones(len(values), dtype=np.bool_)
    known = values.is_not_null()
    return (known & values.is_not_nan().fill_null(False) if values.dtype.is_float() else known).to_numpy()
