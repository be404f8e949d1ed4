"""One Python aggregate of a query, under the names of its result columns."""

from __future__ import annotations

from millstream.algebra.aggregate.row_call import RowCall
from millstream.algebra.frame import Frame
from millstream.algebra.python.definition import Declaration
from millstream.algebra.schema import Attribute
from millstream.algebra.values import record


@record("python_aggregate_call")
class PythonAggregateCall(RowCall):
    """An aggregate over input columns. It has a base version, and a window version if it has the method `expire`."""

    name: str
    arguments: tuple[str, ...]
    declared: Declaration

    @property
    def function(self) -> str:
        return self.declared.name

    def remembers(self, frame: Frame) -> bool:
        anew = "expire" not in self.declared.methods or frame.tumbles
        return not anew or self.declared.ignore_nulls

    @property
    def outputs(self) -> tuple[Attribute, ...]:
        returns = self.declared.returns
        if len(returns) == 1:
            return (Attribute(self.name, returns[0][1]),)
        return tuple(Attribute(f"{self.name}_{name}", type_) for name, type_ in returns)

    def __str__(self) -> str:
        return f"{self.declared.name}({', '.join(self.arguments)}) AS {self.name}, Python"
