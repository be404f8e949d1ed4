"""Rows in timestamp order.

>>> by_time(pl.DataFrame({"x": ["b", "a", "c"], TS: [2, 1, 2]}))["x"].to_list()
['a', 'b', 'c']
"""

from __future__ import annotations

import numpy as np
import polars as pl

from millstream.algebra.schema import TS
from millstream.runtime.operator.frames import take


def by_time(rows: pl.DataFrame) -> pl.DataFrame:
    """Return the rows by timestamp; rows with equal timestamps keep their order. Ordered runs, as of several inputs,
    are merged in linear time."""
    times = rows.get_column(TS)
    if times.is_sorted():
        return rows
    order = np.argsort(times.to_numpy(), kind="stable")
    return take(rows, order)
