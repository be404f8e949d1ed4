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
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

import polars as pl

from millstream.algebra.aggregate.reduction import Operation
from millstream.algebra.types import Type
from millstream.errors import BindError

ARGUMENT: Final = "argument"
TIME: Final = "time"


class Course(Enum):
    """How further tuples may move the result of an aggregate."""

    ANY = "up and down"
    RISES = "never down"
    FALLS = "never up"
    RISES_FROM_0 = "never down, if no argument is negative"


@dataclass(frozen=True, slots=True)
class Part:
    """One column of a partial result: `accumulate` reduces tuples to it, `merge` reduces partial results to it. The
    column is named after the call, followed by `suffix`. `inputs` are the columns that `accumulate` reads, the argument
    of the call or the timestamp. `beside` are the suffixes of other parts that `merge` reads."""

    type: Type
    accumulate: Operation
    merge: Operation
    suffix: str = ""
    inputs: tuple[str, ...] = (ARGUMENT,)
    beside: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Parameter:
    """A constant after the argument: its name and type in messages, what it means if it is absent (None: it must be
    given), and a condition that its values meet."""

    name: str
    type: Type
    default: Any = None
    valid: Callable[[Any], bool] = lambda _: True
    range: str = ""
    letter: str = "p"
    """Its name in hints."""
    hint: Callable[[Any], str] = lambda _: ""
    """What to write instead of a value that is not valid."""


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
    course: Course = Course.ANY
    """How a further tuple may move the result."""
    idempotent: bool = False
    """True if duplicates do not change the result, so that DISTINCT has no effect."""
    mergeable: bool = True
    """True if partial results of disjoint bags of tuples can be merged in any order."""
    ordered: bool = False
    """True if the result depends on the order of tuples, and then on their positions too where timestamps are equal;
    such a function is not mergeable."""
    sequential: bool = False
    """True if partial results of consecutive tuples can be merged in their order, as those that hold all values.
    A function that is neither mergeable nor sequential cannot run over windows and groups."""
    needs_over: bool = False
    """True if the function has a result per tuple only: it needs OVER."""
    over: bool = True
    """False if the aggregate of its name in the library takes its place with OVER."""
    takes: Type | None = None
    """The type that the argument is converted to; None: it is not converted."""
    within_group: bool = False
    """True if the argument may be written in WITHIN GROUP (ORDER BY x)."""
    argument: bool = True
    """False if the function has no argument."""
    parameters: tuple[Parameter, ...] = ()
    """The constants after the argument."""

    def check(self, argument: Type) -> None:
        """Raise BindError if the argument cannot have this type."""
        if self.numeric and not argument.is_numeric:
            raise BindError("M2006", f"{self.name} needs a number, not {argument.value}")
        if argument.is_array:
            raise BindError("M2006", f"{self.name} of an array is not possible")

    @property
    def example(self) -> str:
        """A call, for hints, with the constants that must be given."""
        required = (parameter.letter for parameter in self.parameters if parameter.default is None)
        return f"{self.name}({', '.join((*(('x',) if self.argument else ()), *required))})"

    def with_parameters(self, *_: Any) -> AggregateFunction:
        """The function with values of all its parameters."""
        return self

    def of(self, argument: Type) -> AggregateFunction:  # noqa: ARG002
        """The function for arguments of this type; itself unless its partial result depends on it."""
        return self

    def of_distinct(self) -> AggregateFunction | None:
        """The function of the distinct values only; None: it is computed from a list of them (`distinct.py`)."""
        return None

    def result_type(self, argument: Type) -> Type:
        return argument if self.type is None else self.type

    @abstractmethod
    def parts(self, type_: Type) -> tuple[Part, ...]:
        """The columns of the partial result, for a result of this type."""

    def result(self, *parts: pl.Expr) -> pl.Expr:
        """The result, in its type, from the columns of a partial result."""
        return parts[0]

    def quick_result(self, *parts: pl.Series) -> pl.Series | None:  # noqa: ARG002
        """The same result from the columns of a few partial results, without Polars' query planner; None if it must
        compute it."""
        return None

    def fits(self, *parts: pl.Expr) -> pl.Expr | None:  # noqa: ARG002
        """Whether the result fits its type, from the columns of a partial result; None: it always does."""
        return None

    def surely_fits(self, *parts: pl.Series) -> bool:  # noqa: ARG002
        """Whether all results fit, from the columns of partial results, if that is quick to tell; otherwise False."""
        return False

    def written(self, *parts: Any) -> str:
        """The result that does not fit, from the values of a partial result."""
        return str(parts[0])
