"""Early answers: a prod demands the results so far, and sweeps them through the plan as early rows.

A prod is an element of a stream. It keeps its position: every operator has taken the tuples before it and none after
it. An aggregate that answers gives it the results so far of the open windows and groups that it asks for. They travel
with the prod, as its rows, to the operator above, which computes what it would make of them, and keeps nothing: so
neither state nor final results change. The prod itself goes on whatever happens.

| a prod of | speaks of | is answered by |
|---|---|---|
| a stream, `{ts <= 20, k = 5}` | the columns of the stream, under new names as it passes operators | all aggregates |
| a query (`reader`), `{window_end = 20}` | the output of the query's topmost aggregate | this one; others give all |

>>> from millstream.algebra.types import Type
>>> schema = Schema.of(("ts", Type.BIGINT), ("k", Type.BIGINT), time="ts")
>>> prod = stream_prod(parse_prod("{<= 20, 5}", schema), schema)
>>> print(prod)
{k = 5, ts <= 20}
>>> print(prod.renamed({"k": ("key",)}), "lost" if prod.renamed({}).lost else "")
{key = 5, time <= 20} lost
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import Any
from uuid import uuid4

import polars as pl

from millstream.algebra.element import Element
from millstream.algebra.punctuation.pattern import Pattern, parse_pattern
from millstream.algebra.punctuation.restriction import Form, Restriction, between, one_of
from millstream.algebra.schema import NEVER, Schema
from millstream.algebra.values import record, value
from millstream.algebra.windower import Windower
from millstream.errors import PatternError

FINALITY, REVISION = "finality", "revision"
"""Columns of an aggregate: the one tells early rows from final ones, the other counts the answers."""
ESTIMATE, LOW, HIGH, COMPLETE = ESTIMATES = ("estimate", "low", "high", "complete")
"""Columns of an aggregate: the final value that an early row predicts, an interval for it, and the share of its window
that has passed."""
FINAL, EARLY, FINAL_SHED = "final", "early", "final-shed"
"""Values of `finality`; the last one: of a final row that may lack tuples, since an operator has shed some."""
EVERYTHING = Pattern()


@record("asked")
class Asked:
    """What a prod asks of one column of its stream. `names`: the columns that have its values here. `time`: it is the
    stream's time, and the restriction is one of integers, as the hidden timestamp is. `windowed`: an aggregate below
    has answered for the windows that it asks for. `windows`: columns that have the ends of these or, where the last
    item is true, their starts."""

    names: tuple[str, ...]
    restriction: Restriction
    time: bool = False
    windowed: bool = False
    windows: tuple[tuple[str, Windower, bool], ...] = ()

    def renamed(self, names: Mapping[str, tuple[str, ...]]) -> Asked:
        """The same behind an operator; `names`: the columns of its output that copy a column of its input."""
        found = tuple(new for old in self.names for new in names.get(old, ()))
        windows = tuple((new, own, starts) for old, own, starts in self.windows for new in names.get(old, ()))
        return self if (found, windows) == (self.names, self.windows) else replace(self, names=found, windows=windows)

    def of(self, columns: Collection[str]) -> tuple[str, Restriction] | None:
        """One of some columns, and what it asks of it; None if it asks nothing of them."""
        for name in self.names:
            if name in columns:
                return name, self.restriction
        for name, windows, starts in self.windows:
            if name in columns:
                ends = ends_asked(self.restriction, windows)
                return name, mapped(ends, windows.start) if starts else ends
        return None


@value("prod")
@dataclass(frozen=True, slots=True, eq=False)
class Prod(Element):
    """A demand for the results so far, and the early rows that answer it at its place in the plan.

    `number` is the same for all copies of a prod, in whichever stream, shard or branch of a plan. `lost`: it asks for
    something that no column has here, so no aggregate answers. `time`: that of the stream at its place; None if it is
    not known."""

    number: str
    asked: tuple[Asked, ...] = ()
    reader: str = ""
    pattern: Pattern = EVERYTHING
    lost: bool = False
    rows: pl.DataFrame | None = None
    time: int | None = None

    overtakes = True
    punctuation_count = 0

    def __bool__(self) -> bool:
        return True

    def select(self, names: Mapping[str, str]) -> Prod:
        return self.renamed({old: (new,) for old, new in names.items()})

    def renamed(self, names: Mapping[str, tuple[str, ...]]) -> Prod:
        """The prod behind an operator; `names`: the columns of its output that copy a column of its input."""
        passed = tuple(each.renamed(names) for each in self.asked)
        if passed == self.asked:
            return self
        lost = any(not each.names and not each.time for each in passed)
        return replace(self, asked=passed, lost=self.lost or lost)

    def with_rows(self, rows: pl.DataFrame | None) -> Prod:
        """The prod with other early rows."""
        return replace(self, rows=None if rows is None or not rows.height else rows)

    def at(self, time: int) -> Prod:
        """The prod at a time of the stream; NEVER if it is not known."""
        return self if self.time is not None or time == NEVER else replace(self, time=time)

    def concerns(self, query: str) -> bool:
        """Return whether a query gets its answer."""
        return self.reader in ("", query)

    def __str__(self) -> str:
        columns = {name for each in self.asked for name in (*each.names, *(name for name, *_ in each.windows))}
        named = dict(each.of(columns) or ("time", each.restriction) for each in self.asked)
        pattern = Pattern.of(named) if self.asked else self.pattern
        return f"{{{str(pattern)[1:-1]}}}"


def parse_prod(text: str, schema: Schema) -> Pattern:
    """Parse a prod `{…}` on these columns; raise PatternError if it is malformed or does not fit."""
    check_braces(text)
    inner = text.strip()[1:-1].strip()
    return parse_pattern(f"[{inner}]", schema) if inner not in ("", "*") else Pattern()


def check_braces(text: str) -> None:
    """Raise PatternError if a prod is not in braces."""
    written = text.strip()
    if not (written.startswith("{") and written.endswith("}")):
        raise PatternError("M4011", "a prod is a pattern in braces", detail=f"In {text}", hint="such as {k = 5}, or {}")


def stream_prod(pattern: Pattern, schema: Schema) -> Prod:
    """A prod of a stream, for a pattern over its columns."""
    asked = [Asked((name,), _timed(r) if name == schema.time else r, name == schema.time) for name, r in pattern.items]
    return Prod(uuid4().hex, tuple(asked), lost=pattern.is_empty)


def query_prod(pattern: Pattern, reader: str) -> Prod:
    """A prod of a query, for a pattern over the output of its topmost aggregate."""
    return Prod(uuid4().hex, reader=reader, pattern=pattern)


def as_integer(held: Any) -> Any:
    """A time as the integer for window arithmetic: microseconds, or the plain number."""
    if isinstance(held, date):
        moment = held if isinstance(held, datetime) else datetime(held.year, held.month, held.day)
        return int(pl.Series([moment], dtype=pl.Datetime("us")).cast(pl.Int64)[0])
    return held


def _timed(restriction: Restriction) -> Restriction:
    return mapped(restriction, as_integer)


def mapped(restriction: Restriction, change: Callable[[Any], Any]) -> Restriction:
    """The restriction with other values."""
    if restriction.form is Form.ONE_OF:
        return one_of(map(change, restriction.values))
    if restriction.form is not Form.INTERVAL:
        return restriction
    low, high = (None if end is None else change(end) for end in (restriction.lo, restriction.hi))
    return between(low, high, restriction.lo_closed, restriction.hi_closed)


def ends_asked(restriction: Restriction, windows: Windower) -> Restriction:
    """The ends of windows that a restriction of time, as integers, asks for. A bound from above includes the end at it
    and is rounded down to the last end before it, as `=` is.

    >>> from millstream.algebra.punctuation.restriction import below, equal
    >>> from millstream.algebra.windower import tumbling
    >>> [str(ends_asked(asked, tumbling(20))) for asked in (below(239), equal(120), equal(19))]
    ['<= 220', '120', '0']
    """

    def rounded(held: Any) -> int:
        return windows.closed(int(held // 1))

    if restriction.form is Form.ONE_OF:
        return one_of(map(rounded, restriction.values))
    if restriction.form is not Form.INTERVAL or restriction.hi is None:
        return restriction
    return between(restriction.lo, rounded(restriction.hi), restriction.lo_closed, hi_closed=True)
