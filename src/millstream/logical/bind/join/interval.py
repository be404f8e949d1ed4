"""`a.ts BETWEEN b.ts - X AND b.ts + Y` is a pair of windows.

The condition bounds the difference d = a.ts - b.ts to [low, high]. The windows of a join say that a is at most W_a
older (d >= -W_a) and b at most W_b older (d <= W_b), so W_a = max(0, -low) and W_b = max(0, high) admit every pair that
the condition admits. A bound that the windows do not imply stays a condition. A condition on columns at a fixed
distance from the times, such as the ends of windows, bounds d too.

The result r of a join is as new as its newest part, so a part p is at most its *lag* older than r. A condition on p and
a further stream c then bounds r and c too: c is newer than r by at most as much as it is newer than p, and r is newer
than c by at most as much as p is, plus the lag of p. Such windows are weaker than the condition, which stays.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta

from millstream.algebra.expression import Binary, Cast, Column, Expression, Literal
from millstream.algebra.types import micros
from millstream.algebra.window import Window

Times = Mapping[str, int]
"""The columns of a stream that are its time plus a constant, with the constants: `window_end` is its time plus 1."""
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "="}


@dataclass(frozen=True, slots=True)
class Bound:
    """The bound low <= d <= high of one conjunct; None is no bound."""

    conjunct: Expression
    low: int | None
    high: int | None


def interval_windows(
    found: list[Expression], left_times: Times, right_times: Times, left: Window | None, right: Window | None
) -> tuple[Window, Window, list[Expression]]:
    """Return the windows of both sides and the conjuncts that remain. A written window is not changed."""
    bounds = [bound for c in found if (bound := _bound(c, left_times, right_times)) is not None]
    lows = [bound.low for bound in bounds if bound.low is not None]
    highs = [bound.high for bound in bounds if bound.high is not None]
    if not lows or not highs:
        return left or Window(), right or Window(), found
    left, right = left or Window(range=max(0, -max(lows))), right or Window(range=max(0, min(highs)))
    implied = [bound.conjunct for bound in bounds if _implied(bound, left, right)]
    return left, right, [c for c in found if c not in implied]


def result_windows(
    found: list[Expression], parts: Iterable[tuple[Times, int]], right_times: Times, left: Window, right: Window | None
) -> tuple[Window, Window]:
    """Return the windows of a join's result, given the times of its parts and their lags, and of a further stream."""
    lefts: list[int] = []
    rights: list[int] = []
    for times, lag in parts:
        bounds = [bound for c in found if (bound := _bound(c, times, right_times)) is not None]
        lefts += [max(0, -bound.low) for bound in bounds if bound.low is not None]
        rights += [max(0, lag + bound.high) for bound in bounds if bound.high is not None]
    if not lefts or not rights:
        return left, right or Window()
    return Window(range=min(lefts)) if left == Window() else left, right or Window(range=min(rights))


def lags(left: dict[str, int], right: dict[str, int], windows: tuple[Window, Window]) -> dict[str, int]:
    """Return how much older than a result its parts may be, where bounded, given the lags of both sides."""
    if any(window.rows is not None for window in windows):
        return {}
    sides = zip((left, right), (window.range for window in windows), strict=True)
    return {name: lag + range_ for parts, range_ in sides if range_ is not None for name, lag in parts.items()}


def _implied(bound: Bound, left: Window, right: Window) -> bool:
    low = bound.low is None or (left.range is not None and -left.range >= bound.low)
    high = bound.high is None or (right.range is not None and right.range <= bound.high)
    return low and high


def _bound(conjunct: Expression, left_times: Times, right_times: Times) -> Bound | None:
    if not (isinstance(conjunct, Binary) and conjunct.op in _MIRRORED):
        return None
    one, other = _linear(conjunct.left), _linear(conjunct.right)
    if one is None or other is None:
        return None
    op = conjunct.op
    if one[0] in right_times and other[0] in left_times:
        op, one, other = _MIRRORED[op], other, one
    elif one[0] not in left_times or other[0] not in right_times:
        return None
    difference = other[1] + right_times[other[0]] - one[1] - left_times[one[0]]
    match op:
        case ">=":
            return Bound(conjunct, difference, None)
        case ">":
            return Bound(conjunct, difference + 1, None)
        case "<=":
            return Bound(conjunct, None, difference)
        case "<":
            return Bound(conjunct, None, difference - 1)
    return Bound(conjunct, difference, difference)


def _linear(expression: Expression) -> tuple[str, int] | None:
    """Match a column plus a constant; return its name and the constant in timestamp units."""
    match expression:
        case Column(name=name):
            return name, 0
        case Cast(type=type_, operand=operand) if type_.is_integer and operand.type.is_integer:
            return _linear(operand)
        case Binary(op="+" | "-" as op, left=left, right=right):
            base, offset = _linear(left), _constant(right)
            if op == "+" and base is None:
                base, offset = _linear(right), _constant(left)
            if base is None or offset is None:
                return None
            return base[0], base[1] + (offset if op == "+" else -offset)
    return None


def _constant(expression: Expression) -> int | None:
    match expression:
        case Literal(value=timedelta() as value):
            return micros(value)
        case Literal(value=int() as value):
            return value
    return None
