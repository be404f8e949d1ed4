"""An aggregate function: its names, its types, its partial result and its final result, in one class.

The partial result of a group is one column or several. Each says how it is reduced from tuples and how partial results
of disjoint bags of tuples merge into that of their union; so pages, panes, windows and shards all roll up the same way.

Adding an aggregate function: derive a class, and `register` an instance (`algebra/aggregate/functions.py`). SQL knows
it from then on, and windows, panes, sources and shards compute it. Parts made of the operations of
`algebra/aggregate/reduction.py` are as fast as the functions that are built in; an operation of its own needs no more
than a Polars expression.

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
    """One column of a partial result: what it is of tuples, and of partial results. Its name is that of the call and
    `suffix`."""

    type: Type
    accumulate: Operation
    merge: Operation
    suffix: str = ""


class AggregateFunction(ABC):
    name: str
    """In upper case, as plans have it."""
    spellings: tuple[str, ...] = ()
    """Other names."""
    numeric: bool = False
    """Whether the argument must be a number."""
    type: Type | None = None
    """The type of the result; None: that of the argument."""
    star: bool = False
    """Whether a constant, or `*`, may be the argument: every part is the number of tuples then."""
    idempotent: bool = False
    """Whether a value that comes twice counts once, so that DISTINCT changes nothing."""
    mergeable: bool = True
    """Whether partial results of disjoint bags of tuples may be merged, in any order."""
    ordered: bool = False
    """Whether the result depends on the order of tuples; then it is not mergeable."""

    def check(self, argument: Type) -> None:
        """Raise BindError if the argument cannot have this type."""
        if self.numeric and not argument.is_numeric:
            raise BindError("M2006", f"{self.name} needs a number, not {argument.value}")

    def result_type(self, argument: Type) -> Type:
        return argument if self.type is None else self.type

    @abstractmethod
    def parts(self, type_: Type) -> tuple[Part, ...]:
        """The partial result, if the result has this type."""

    def retractable(self, type_: Type) -> tuple[Part, ...] | None:
        """The partial result to hold where tuples also leave: `merge.retract` of each part takes out that of the tuples
        that leave. None: the function has no such partial result."""
        parts = self.parts(type_)
        return parts if all(part.merge.retract for part in parts) else None

    def result(self, *parts: pl.Expr) -> pl.Expr:
        """The result, in its type, of a partial result (or of a retractable one), given as one column a part."""
        return parts[0]
