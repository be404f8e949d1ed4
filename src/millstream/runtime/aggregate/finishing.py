"""Output rows of partial results, column by column: only what is computed goes through Polars' query planner.

>>> from millstream.algebra.windower import tumbling
>>> groups = pl.DataFrame({"end": [20, 30], "n": [4, 5], "m": [2, 2]})
>>> mean = (pl.col("n") / pl.col("m")).alias("mean")
>>> Finishing([Moved("start", "end", tumbling(10).start), pl.col("n"), mean, pl.lit("a").alias("l")])(groups).rows()
[(10, 4, 2.0, 'a'), (20, 5, 2.5, 'a')]
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import polars as pl

from millstream.algebra.aggregate.call import AggregateCall
from millstream.algebra.aggregate.function import AggregateFunction
from millstream.runtime.operator.frames import beside

_HEIGHT = "__height"


@dataclass(frozen=True, slots=True)
class Moved:
    """A column `name` of times computed of those in another one, as integers or of a type."""

    name: str
    column: str
    change: Callable[[pl.Series], pl.Series]
    type: pl.DataType | None = None

    def __call__(self, groups: pl.DataFrame) -> pl.Series:
        column = groups.get_column(self.column)
        if column.dtype.is_temporal():
            column = column.to_physical() if column.dtype == pl.Date else column.cast(pl.Int64)
        moved = self.change(column).alias(self.name)
        return moved if self.type is None else moved.cast(self.type)


@dataclass(frozen=True, slots=True)
class Result:
    """The column of an aggregate's results."""

    call: AggregateCall

    def __call__(self, groups: pl.DataFrame) -> pl.Series:
        quick = self.call.quick_result(groups)
        return groups.select_seq(self.call.result()).to_series() if quick is None else quick


Column = pl.Expr | Moved | Result


def result_of(call: AggregateCall) -> Column:
    """The column of an aggregate's results; an expression if Polars computes it in any case."""
    quick = type(call.computed).quick_result is not AggregateFunction.quick_result
    return Result(call) if quick else call.result()


class Finishing:
    """`columns` of the output, in order."""

    def __init__(self, columns: Sequence[Column]) -> None:
        self._columns: list[Moved | Result | pl.Series | tuple[str, str] | str] = []
        self._computed: list[pl.Expr] = []
        for column in columns:
            if isinstance(column, Moved | Result):
                self._columns.append(column)
            elif column.meta.is_literal(allow_aliasing=True):
                self._columns.append(pl.select(column).to_series())
            elif column.meta.undo_aliases().meta.is_column():
                self._columns.append((column.meta.root_names()[0], column.meta.output_name()))
            else:
                self._columns.append(column.meta.output_name())
                self._computed.append(column)

    def __call__(self, groups: pl.DataFrame) -> pl.DataFrame:
        """Return the rows of these groups."""
        computed, made = groups, []
        if self._computed:
            computed = groups.select_seq(*self._computed, pl.first().alias(_HEIGHT))
        for column in self._columns:
            if isinstance(column, Moved | Result):
                made.append(column(groups))
            elif isinstance(column, pl.Series):
                made.append(column.new_from_index(0, groups.height))
            elif isinstance(column, str):
                made.append(computed.get_column(column))
            else:
                made.append(groups.get_column(column[0]).alias(column[1]))
        return beside(made)
