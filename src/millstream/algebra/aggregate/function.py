"""An aggregate function: its names, its types, its partial result and its final result, in one class.

The partial result of a group has one column or several. Each column defines how it is reduced from tuples, and how the
partial results of disjoint bags of tuples merge into that of their union. So pages, panes, windows and shards all roll
up the same way.

To add an aggregate function, derive a class and `register` an instance (`algebra/aggregate/functions.py`). SQL then
accepts it, and windows, panes, sources and shards compute it. Parts that use the operations of
`algebra/aggregate/reduction.py` are as fast as the built-in functions; a new operation needs only a Polars expression.

>>> from millstream.algebra.aggregate.reduction import GREATEST, LEAST
>>> class Spread(AggregateFunction):
...     name, numeric = "SPREAD", True
...     def parts(self, type_):
...         return Part(type_, LEAST, LEAST, "__least"), Part(type_, GREATEST, GREATEST, "__greatest")
...     def result(self, *parts):
...         return parts[1] - parts[0]
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import polars as pl

from millstream.algebra.aggregate.reduction import Operation
from millstream.algebra.types import Type
from millstream.errors import BindError


@dataclass(frozen=True, slots=True)
class Part:
    """One column of a partial result: `accumulate` reduces tuples to it, `merge` reduces partial results to it. The
    column is named after the call, followed by `suffix`."""

    type: Type
    accumulate: Operation
    merge: Operation
    suffix: str = ""


class AggregateFunction(ABC):
    name: str
    """Upper case, as in plans."""
    spellings: tuple[str, ...] = ()
    """Other names."""
    numeric: bool = False
    """True if the argument must be a number."""
    type: Type | None = None
    """The type of the result; None: that of the argument."""
    star: bool = False
    """True if the argument may be a constant or `*`; every part is then the number of tuples."""
    idempotent: bool = False
    """True if duplicates do not change the result, so that DISTINCT has no effect."""
    mergeable: bool = True
    """True if partial results of disjoint bags of tuples can be merged in any order."""
    ordered: bool = False
    """True if the result depends on the order of tuples; such a function is not mergeable."""

    def check(self, argument: Type) -> None:
        """Raise BindError if the argument cannot have this type."""
        if self.numeric and not argument.is_numeric:
            raise BindError("M2006", f"{self.name} needs a number, not {argument.value}")

    def result_type(self, argument: Type) -> Type:
        return argument if self.type is None else self.type

    @abstractmethod
    def parts(self, type_: Type) -> tuple[Part, ...]:
        """The columns of the partial result, for a result of this type."""

    def retractable(self, type_: Type) -> tuple[Part, ...] | None:
        """The partial result to hold where tuples also leave: `merge.retract` of each part subtracts the tuples that
        leave. None: the function has no such partial result."""
        parts = self.parts(type_)
        return parts if all(part.merge.retract for part in parts) else None

    def result(self, *parts: pl.Expr) -> pl.Expr:
        """The result, in its type, from the columns of a partial result (or of a retractable one)."""
        return parts[0]
