"""What is known of a column by its type agrees with what its conversion finds."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from millstream.algebra.types import ELEMENTS, Type
from millstream.ingest.coerce import coerce
from millstream.ingest.fitting import Fit, bounds, fit

BIG = 1 << 62
VALUES: list[tuple[pl.DataType, list[Any]]] = [
    (pl.Boolean(), [True, False]),
    (pl.Int8(), [-128, 127]),
    (pl.Int16(), [-(1 << 15), 32_767]),
    (pl.Int32(), [-(1 << 31), (1 << 31) - 1]),
    (pl.Int64(), [1, -(1 << 31) - 1, -BIG, BIG]),
    (pl.UInt8(), [0, 255]),
    (pl.UInt16(), [0, 65_535]),
    (pl.UInt32(), [0, (1 << 32) - 1]),
    (pl.UInt64(), [0, (1 << 64) - 1]),
    (pl.Float32(), [1.0, 2.5, float("inf"), 3e38]),
    (pl.Float64(), [1.0, 2.5, float("inf"), float("nan"), 1e300]),
    (pl.Decimal(10, 2), ["1.50", "2.00"]),
    (pl.String(), ["1", "x", "2024-01-01"]),
    (pl.Categorical(), ["1", "x"]),
    (pl.Binary(), [b"a", b"\xff"]),
    (pl.Date(), [0, -719_163, 1 << 30]),
    (pl.Time(), [0, 1]),
    (pl.Datetime("ms"), [0, BIG]),
    (pl.Datetime("us"), [0, BIG, -BIG]),
    (pl.Datetime("ns"), [0, BIG]),
    (pl.Datetime("us", "Europe/Berlin"), [0, BIG]),
    (pl.Duration("ms"), [0, BIG]),
    (pl.Duration("us"), [0, BIG]),
    (pl.Duration("ns"), [0, -BIG]),
]


def column(dtype: pl.DataType, values: list[Any]) -> pl.Series:
    if dtype.is_temporal():
        return pl.Series(values, dtype=pl.Int32 if dtype == pl.Date else pl.Int64).cast(dtype)
    return pl.Series(values).cast(dtype) if dtype.is_decimal() else pl.Series(values, dtype=dtype)


@pytest.mark.parametrize("type_", ELEMENTS, ids=str)
@pytest.mark.parametrize(("dtype", "values"), VALUES, ids=[str(dtype) for dtype, _ in VALUES])
def test_a_fit_agrees_with_the_conversion(dtype: pl.DataType, values: list[Any], type_: Type) -> None:
    known, given = fit(dtype, type_), column(dtype, values)
    made = coerce(given, type_)
    assert made.values.dtype == type_.polars
    made.values.to_list()  # no value is one that Python does not have
    wrong = set(made.wrong)
    if known is Fit.ALWAYS:
        assert not wrong
    elif known is Fit.NEVER:
        assert wrong == set(range(len(given)))
    elif known is Fit.IN_RANGE:
        within = bounds(dtype, type_)
        assert within is not None
        inside = given.to_physical().is_between(*within)
        assert wrong == set((~inside).arg_true())
