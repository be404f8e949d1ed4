"""Results of aggregates that do not fit their types: an error that names the aggregate, the group and the window, if an
operator above uses the result.

So is the bound of a window that starts before the first or ends after the last TIMESTAMP.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from millstream.algebra.aggregate.call import AggregateCall
from millstream.algebra.ranges import LIMITS
from millstream.algebra.types import Type, format_value
from millstream.algebra.window import WINDOW_START
from millstream.algebra.windower import INSTANTS, Windower


class ResultCheck:
    """Checks the complete partial results of groups. `windows`: the column of their ends, and what they are."""

    def __init__(
        self, calls: Sequence[AggregateCall], group: Sequence[str], windows: tuple[str, Windower] | None = None
    ) -> None:
        self._checks = [
            (call, fits, call.computed.surely_fits, [part.name for part in call.partials])
            for call in calls
            if (fits := call.fits()) is not None
        ]
        self._group, self._end = group, None if windows is None else windows[0]
        self._windows = INSTANTS if windows is None else windows[1]

    def __call__(self, groups: pl.DataFrame) -> pl.DataFrame | None:
        """Return the reasons why results do not fit, by result column; None if all of them fit."""
        reasons: dict[str, pl.Series] = {}
        if self._end is not None and groups.get_column(self._end).dtype == Type.TIMESTAMP.polars:
            reasons = self._of_windows(groups.get_column(self._end).cast(pl.Int64), self._end)
        for call, fits, surely_fits, parts in self._checks:
            if surely_fits(*map(groups.get_column, parts)):
                continue
            known = groups.select(fits).to_series()
            if not known.all():
                texts: list[str | None] = [None] * groups.height
                for at in (~known).arg_true():
                    texts[at] = self._reason(call, groups.slice(at, 1))
                reasons[call.name] = pl.Series(texts, dtype=pl.String)
        return pl.DataFrame(reasons) if reasons else None

    def _reason(self, call: AggregateCall, found: pl.DataFrame) -> str:
        text = f"{call.text} does not fit {call.type.value}: {call.written(found)}"
        return text + self._of_group(found) + self._in_window(found)

    def _of_windows(self, ends: pl.Series, end: str) -> dict[str, pl.Series]:
        """Return the reasons why bounds of windows do not fit, by column."""
        first, last = ends.min(), ends.max()
        assert isinstance(first, int) and isinstance(last, int)  # no group is without an end
        least, most = LIMITS[Type.TIMESTAMP]
        reasons: dict[str, pl.Series] = {}
        if last > most:
            reasons[end] = _reasons(ends, ends > most, "end")
        if self._windows.start(first) < least:
            starts = self._windows.start(ends)
            reasons[WINDOW_START] = _reasons(starts, starts < least, "start")
        return reasons

    def _of_group(self, found: pl.DataFrame) -> str:
        values = ", ".join(f"{name} = {format_value(found.get_column(name)[0])}" for name in self._group)
        return f", group ({values})" if values else ""

    def _in_window(self, found: pl.DataFrame) -> str:
        if self._end is None:
            return ""
        column = found.get_column(self._end)
        end = int(column.cast(pl.Int64)[0])
        return f", window [{_written(self._windows.start(end), column.dtype)}, {_written(end, column.dtype)})"


def _written(bound: int, dtype: pl.DataType) -> str:
    """A bound of a window; one that is no TIMESTAMP in microseconds."""
    least, most = LIMITS[Type.TIMESTAMP]
    return format_value(pl.Series([bound]).cast(dtype)[0] if least <= bound <= most else bound)


def _reasons(bounds: pl.Series, outside: pl.Series, side: str) -> pl.Series:
    texts: list[str | None] = [None] * len(bounds)
    for at in outside.arg_true():
        texts[at] = f"the {side} of a window is out of range for TIMESTAMP: {bounds[at]} microseconds"
    return pl.Series(texts, dtype=pl.String)
