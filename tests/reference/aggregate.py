"""Aggregate functions over the tuples of one group, all of them at hand: as a textbook defines them."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from millstream.algebra.aggregate.call import AggregateCall
from millstream.algebra.schema import TS

Row = dict[str, Any]


def apply(call: AggregateCall, members: list[Row]) -> Any:
    """The result for tuples in the order of arrival, each with its timestamp."""
    taken = [row for row in members if call.filter is None or row[call.filter] is True]
    if call.argument is None:
        return len(taken)
    values = [row[call.argument] for row in sorted(taken, key=lambda row: row[TS])]
    if call.function not in KEEPS_NULL:
        values = [value for value in values if value is not None]
    if call.distinct is not None:
        values = list(dict.fromkeys(values))
    if call.function == "COUNT":
        return len(values)
    return MEANT[call.function](values, *call.parameters) if values else None


def _squares(values: list[Any]) -> Fraction:
    exact = [Fraction(value) for value in values]
    mean = sum(exact, Fraction()) / len(exact)
    return sum(((value - mean) ** 2 for value in exact), Fraction())


def _sample(values: list[Any]) -> float | None:
    return float(_squares(values) / (len(values) - 1)) if len(values) > 1 else None


def _population(values: list[Any]) -> float:
    return float(_squares(values) / len(values))


def _root(variance: Callable[[list[Any]], float | None]) -> Callable[[list[Any]], float | None]:
    def root(values: list[Any]) -> float | None:
        found = variance(values)
        return None if found is None else math.sqrt(found)

    return root


def _between(values: list[Any], p: float = 0.5) -> float:
    ranked, place = sorted(values), Fraction(p) * (len(values) - 1)
    low = math.floor(place)
    return float(ranked[low] + (ranked[min(low + 1, len(ranked) - 1)] - ranked[low]) * (place - low))


def _among(values: list[Any], p: float) -> Any:
    """The first value with at least p * n values up to it."""
    ranked = sorted(values)
    return next(value for n, value in enumerate(ranked, 1) if n >= p * len(ranked) or n == len(ranked))


KEEPS_NULL = ("FIRST", "LAST", "ARRAY_AGG")
MEANT: dict[str, Callable[..., Any]] = {
    "SUM": sum,
    "AVG": lambda values: sum(values) / len(values),
    "MIN": min,
    "MAX": max,
    "BOOL_AND": all,
    "BOOL_OR": any,
    "VAR_SAMP": _sample,
    "VAR_POP": _population,
    "STDDEV_SAMP": _root(_sample),
    "STDDEV_POP": _root(_population),
    "MEDIAN": _between,
    "QUANTILE_CONT": _between,
    "QUANTILE_DISC": _among,
    "FIRST": lambda values: values[0],
    "LAST": lambda values: values[-1],
    "ARRAY_AGG": list,
    "STRING_AGG": lambda values, separator: separator.join(values),
}
