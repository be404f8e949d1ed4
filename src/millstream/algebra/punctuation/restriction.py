"""The restriction of one attribute by a pattern: any value, none, one of some values, or an interval.

Only `*` matches NULL, and NaN matches no comparison. The algebra treats every domain as dense: `(2, 3)` counts as
non-empty although no integer lies in it. So "is empty" and "covers" are always safe to act on.

>>> str(below(5)), str(between(2, 5, hi_closed=False)), str(one_of([3, 1])), str(equal("x"))
('< 5', '[2, 5)', '{1, 3}', 'x')
>>> below(5).intersect(above(2, closed=True))
Restriction([2, 5))
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Any

import polars as pl

from millstream.algebra.punctuation.value_text import write_value
from millstream.algebra.values import value

Written = Callable[[Any], str]
"""A function that formats a value."""


@value("form")
class Form(Enum):
    ANY = "*"
    NOTHING = "∅"
    ONE_OF = "{}"
    INTERVAL = "[]"


@value("restriction")
@dataclass(frozen=True, slots=True, repr=False)
class Restriction:
    """Created by the functions below, which give equal restrictions one canonical form."""

    form: Form
    values: tuple[Any, ...] = ()
    lo: Any = None
    lo_closed: bool = False
    hi: Any = None
    hi_closed: bool = False

    @property
    def is_any(self) -> bool:
        return self.form is Form.ANY

    @property
    def is_empty(self) -> bool:
        """True if it surely matches nothing."""
        return self.form is Form.NOTHING

    @property
    def is_value(self) -> bool:
        """True if it is `= v` for a single v."""
        return len(self.values) == 1

    @property
    def is_upper(self) -> bool:
        """True if it is `< v` or `<= v`."""
        return self.form is Form.INTERVAL and self.lo is None

    @property
    def starts(self) -> bool:
        """True if it is an interval that is bounded from below."""
        return self.form is Form.INTERVAL and self.lo is not None

    @property
    def simple(self) -> tuple[str, Any] | None:
        """Operator and value, if it is a single comparison: `=`, `<`, `<=`, `>` or `>=`."""
        if self.is_value:
            return "=", self.values[0]
        if self.is_upper:
            return ("<=" if self.hi_closed else "<"), self.hi
        if self.form is Form.INTERVAL and self.hi is None:
            return (">=" if self.lo_closed else ">"), self.lo
        return None

    def matches(self, value: Any) -> bool:
        if self.form is Form.ANY:
            return True
        if _absent(value) or self.form is Form.NOTHING:
            return False
        if self.form is Form.ONE_OF:
            return value in self.values
        if self.lo is not None and not (value > self.lo or (self.lo_closed and value == self.lo)):
            return False
        return self.hi is None or bool(value < self.hi or (self.hi_closed and value == self.hi))

    def covers(self, other: Restriction) -> bool:
        """True if it surely matches everything that the other matches."""
        if self.is_any or other.is_empty:
            return True
        if self.is_empty or other.is_any:
            return False
        if other.form is Form.ONE_OF and self.form is Form.ONE_OF:
            return self.values == other.values or set(self.values).issuperset(other.values)
        if other.form is Form.ONE_OF:
            return all(self.matches(value) for value in other.values)
        return self.form is Form.INTERVAL and self.intersect(other) == other

    def intersect(self, other: Restriction) -> Restriction:
        if self.is_any or other.is_empty:
            return other
        if other.is_any or self.is_empty:
            return self
        if self.form is Form.ONE_OF and other.form is Form.ONE_OF:
            return one_of(set(self.values).intersection(other.values))
        if self.form is Form.ONE_OF:
            return one_of(value for value in self.values if other.matches(value))
        if other.form is Form.ONE_OF:
            return other.intersect(self)
        lo, lo_closed = self.lo, self.lo_closed
        if lo is None or (other.lo is not None and other.lo >= lo):
            lo_closed = other.lo_closed and (lo is None or other.lo > lo or lo_closed)
            lo = other.lo
        hi, hi_closed = self.hi, self.hi_closed
        if hi is None or (other.hi is not None and other.hi <= hi):
            hi_closed = other.hi_closed and (hi is None or other.hi < hi or hi_closed)
            hi = other.hi
        return between(lo, hi, lo_closed, hi_closed)

    def union(self, other: Restriction) -> Restriction | None:
        """The restriction that matches exactly what one of both matches; None if there is none.

        >>> between(1, 5, hi_closed=False).union(between(5, 9)), equal(1).union(equal(3)), below(3).union(above(2))
        (Restriction([1, 9]), Restriction({1, 3}), None)
        """
        if self.covers(other) or other.covers(self):
            return self if self.covers(other) else other
        if self.form is not other.form:
            return None
        if self.form is Form.ONE_OF:
            return one_of((*self.values, *other.values))
        first, second = (other, self) if self._starts_after(other) else (self, other)
        if second.lo is None or first.hi is None or first.hi < second.lo:
            return None
        if first.hi == second.lo and not (first.hi_closed or second.lo_closed):
            return None
        if first.lo is None and second.hi is None:
            return None  # all values, but neither NULL nor NaN
        return between(first.lo, second.hi, first.lo_closed, second.hi_closed)

    def _starts_after(self, other: Restriction) -> bool:
        """True if an interval starts after another one, neither of which covers the other."""
        if self.lo is None or other.lo is None:
            return other.lo is None
        return bool(self.lo > other.lo or (self.lo == other.lo and other.lo_closed and not self.lo_closed))

    def expression(self, column: pl.Expr) -> pl.Expr:
        """A predicate on a column: true or false, never null."""
        if self.form is Form.ANY:
            return pl.lit(True)
        if self.form is Form.NOTHING:
            return pl.lit(False)
        if self.form is Form.ONE_OF:
            return self._member(column).fill_null(False)
        parts: list[pl.Expr] = []
        if self.lo is not None:
            parts.append(column >= self.lo if self.lo_closed else column > self.lo)
        if self.hi is not None:
            parts.append(column <= self.hi if self.hi_closed else column < self.hi)
        elif isinstance(self.lo, int | float) and not isinstance(self.lo, bool):
            parts.append(column.is_not_nan())  # Polars sorts NaN above every number
        return pl.all_horizontal(parts).fill_null(False) if len(parts) > 1 else parts[0].fill_null(False)

    def _member(self, column: pl.Expr) -> pl.Expr:
        if self.is_value:
            return column.eq(self.values[0])
        if isinstance(self.values[0], bool) or not isinstance(self.values[0], int | float):
            return column.is_in(list(self.values))
        # The column may hold integers or floats, which Polars does not mix in is_in. Numbers are equal if they are
        # equal as floats and, where the values are integers, also as integers.
        as_floats = column.cast(pl.Float64).is_in([float(value) for value in self.values])
        if not all(isinstance(value, int) for value in self.values):
            return as_floats
        return as_floats & column.cast(pl.Int64, strict=False).is_in(list(self.values))

    def format(self, written: Written = write_value) -> str:
        """The written form; `= v` is the bare value."""
        if self.form in (Form.ANY, Form.NOTHING):
            return str(self.form.value)
        if self.form is Form.ONE_OF:
            texts = [written(value) for value in self.values]
            return texts[0] if len(texts) == 1 else "{" + ", ".join(texts) + "}"
        if (comparison := self.simple) is not None:
            return f"{comparison[0]} {written(comparison[1])}"
        opening, closing = "[" if self.lo_closed else "(", "]" if self.hi_closed else ")"
        return f"{opening}{written(self.lo)}, {written(self.hi)}{closing}"

    def __str__(self) -> str:
        return self.format()

    def __repr__(self) -> str:
        return f"Restriction({self})"


ANY = Restriction(Form.ANY)
NOTHING = Restriction(Form.NOTHING)


def _absent(value: Any) -> bool:
    """True for NULL and NaN, which compare with nothing."""
    return value is None or bool(value != value)


def equal(value: Any) -> Restriction:
    """`= value`; `∅` if the value is NULL or NaN."""
    return NOTHING if _absent(value) else Restriction(Form.ONE_OF, (value,))


def one_of(values: Iterable[Any]) -> Restriction:
    """One of the values; NULL and NaN are left out."""
    kept = tuple(sorted({value for value in values if not _absent(value)}))
    return Restriction(Form.ONE_OF, kept) if kept else NOTHING


def below(value: Any, closed: bool = False) -> Restriction:
    """`< value`, or `<= value` if closed."""
    return NOTHING if _absent(value) else Restriction(Form.INTERVAL, hi=value, hi_closed=closed)


def above(value: Any, closed: bool = False) -> Restriction:
    """`> value`, or `>= value` if closed."""
    return NOTHING if _absent(value) else Restriction(Form.INTERVAL, lo=value, lo_closed=closed)


def between(lo: Any, hi: Any, lo_closed: bool = True, hi_closed: bool = True) -> Restriction:
    """An interval; None is an unbounded end, and `*` if both ends are unbounded."""
    if lo is None:
        return ANY if hi is None else below(hi, hi_closed)
    if hi is None:
        return above(lo, lo_closed)
    if _absent(lo) or _absent(hi) or lo > hi or (lo == hi and not (lo_closed and hi_closed)):
        return NOTHING
    return equal(lo) if lo == hi else Restriction(Form.INTERVAL, (), lo, lo_closed, hi, hi_closed)


def compare(op: str, value: Any) -> Restriction:
    """The restriction `op value` for one of the five comparisons."""
    if op == "=":
        return equal(value)
    return below(value, op == "<=") if op in ("<", "<=") else above(value, op == ">=")
