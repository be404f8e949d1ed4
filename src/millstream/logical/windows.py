"""Durations and windows in timestamp units.

With TIMESTAMP time (1,000,000 units per second) a plain number counts seconds; with BIGINT time it is in the column's
own unit, and one second is one unit.
"""

from __future__ import annotations

from millstream.algebra.types import MICROS
from millstream.algebra.window import UNBOUNDED, Window
from millstream.algebra.windower import Hopping, tumbling
from millstream.errors import BindError, PlanError
from millstream.lang import ast

MOST_WINDOWS = 1_000_000
"""Most windows of a tuple: it has a result row in each of them."""
_LIMIT = 1 << 62


def units(duration: ast.Duration, unit: int, what: str, *, zero: bool = False) -> int:
    """Return a duration in timestamp units; it must be a whole number, and positive (or 0, if `zero`)."""
    exact = duration.total * unit
    if exact < 0 or (exact == 0 and not zero):
        now = what == "RANGE" and exact == 0
        hint = "[NOW] is the window of simultaneous tuples" if now else "Write a duration such as 10 SECONDS."
        message = f"{what} must be positive, found {duration}"
        raise BindError("M2024", message, hint=hint, **duration.place)
    if exact.denominator != 1 or exact >= _LIMIT:
        hint = "A BIGINT timestamp counts whole units; one unit is one second." if unit == 1 else ""
        message = f"{what} {duration} is not a whole number of time units" if exact < _LIMIT else f"{what} is too long"
        raise BindError("M2024", message, hint=hint, **duration.place)
    return int(exact)


def check_units(window: ast.WindowClause | ast.OverClause) -> None:
    """Refuse `RANGE 5 MINUTES SLIDE 1`, which could mean a second or a minute."""
    lengths = [length for length in (window.range, window.slide) if length is not None]
    bare = [length for length in lengths if length.unit is None]
    named = [length.unit for length in lengths if length.unit is not None]
    if bare and named and named != ["SECONDS"]:
        message = "RANGE and SLIDE mix units: one has a unit, the other has none"
        raise BindError("M2025", message, hint=f"write {bare[0]} {named[0]}", **bare[0].place)


def aggregate_window(window: ast.WindowClause, unit: int) -> Hopping | None:
    """Return the windows of a grouped aggregate; None if unbounded."""
    if window.rows is not None:
        message = "a ROWS window with an aggregate is not available yet"
        raise PlanError("M3014", message, hint="use RANGE", **window.place)
    if window.now:
        raise PlanError("M3014", "a NOW window is too short for an aggregate", hint="use RANGE", **window.place)
    if window.range is None:
        return None
    check_units(window)
    range_ = units(window.range, unit, "RANGE")
    if window.slide is None:
        return tumbling(range_)
    made = Hopping(range_, units(window.slide, unit, "SLIDE"))
    if made.most > MOST_WINDOWS:
        message = f"a tuple would be in {made.most:,} windows, with a result row in each; the most is {MOST_WINDOWS:,}"
        shortest = spelled(_rounded_up(-(-range_ // MOST_WINDOWS), unit), unit)
        hint = f"SLIDE {shortest} or longer; OVER (RANGE {spelled(range_, unit)} PRECEDING) has one a tuple"
        raise PlanError("M3041", message, hint=hint, **window.slide.place)
    return made


def _rounded_up(length: int, unit: int) -> int:
    """Return a length of time of whole seconds if it is longer than one."""
    return -(-length // unit) * unit if length > unit else length


def join_window(window: ast.WindowClause | None, unit: int) -> Window:
    """Return the window on one input of a join."""
    if window is None:
        return UNBOUNDED
    if window.function is not None:
        message = f"{window.function} in a join is not available yet"
        raise PlanError("M3014", message, hint="use a window in brackets: s [RANGE 10 SECONDS]", **window.place)
    if window.slide is not None:
        refuse_slide(window.slide)
    if window.rows is not None:
        return Window(rows=window.rows)
    if window.now:
        return Window(range=0)
    return UNBOUNDED if window.range is None else Window(range=units(window.range, unit, "RANGE", zero=True))


def written(window: Window, unit: int) -> str:
    """Return a window of a join in its written form.

    >>> written(Window(range=90_000_000), 1_000_000), written(Window(range=90), 1), written(Window(rows=3), 1)
    ('[RANGE 90 SECONDS]', '[RANGE 90]', '[ROWS 3]')
    """
    return str(window) if window.range is None else f"[RANGE {spelled(window.range, unit)}]"


def spelled(length: int, unit: int) -> str:
    """Return a length of time in its written form, given the units per second."""
    if unit == 1:
        return str(length)
    sizes = ((MICROS, "SECOND"), (1000, "MILLISECOND"), (1, "MICROSECOND"))
    size, name = next(known for known in sizes if length % known[0] == 0)
    return f"{length // size} {name}{'' if length == size else 'S'}"


def refuse_slide(slide: ast.Duration) -> None:
    hint = "SLIDE sets when an aggregate emits its windows: add one, such as COUNT(*)."
    raise PlanError("M3015", "SLIDE needs an aggregate", hint=hint, **slide.place)


def attribute_unit(integer: bool) -> int:
    """Return the units per second of a windowing attribute."""
    return 1 if integer else MICROS
