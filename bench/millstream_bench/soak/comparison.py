"""Rows of a disturbed run against those of an undisturbed one."""

from __future__ import annotations

import polars as pl


def difference(rows: pl.DataFrame, wanted: pl.DataFrame, *, whole: bool = True) -> str:
    """Describe how two bags of rows differ; empty if they do not. Without `whole`, rows may be missing.

    >>> one, two = pl.DataFrame({"k": [1, 1, 2]}), pl.DataFrame({"k": [1, 2, 2, 3]})
    >>> difference(one, two)
    'of 4 rows 2 are missing and 1 are too many'
    >>> difference(one, one), difference(one.head(2), one, whole=False), difference(pl.DataFrame(), one, whole=False)
    ('', '', '')
    """
    if not rows.height or not wanted.height:
        missing, excess = wanted.height if whole else 0, rows.height
    else:
        names = rows.columns
        counted, expected = (
            frame.select(names).group_by(names).agg(pl.len().cast(pl.Int64)) for frame in (rows, wanted)
        )
        both = counted.join(expected, on=names, how="full", nulls_equal=True, suffix="_wanted")
        more = both.select(pl.col("len").fill_null(0) - pl.col("len_wanted").fill_null(0)).to_series()
        missing, excess = int(-more.clip(upper_bound=0).sum()) if whole else 0, int(more.clip(lower_bound=0).sum())
    if not missing and not excess:
        return ""
    return f"of {wanted.height:,} rows {missing:,} are missing and {excess:,} are too many"
