"""A user-defined aggregate of the tuples of a group and window, whose arguments have been collected in arrays."""

from __future__ import annotations

from millstream.algebra.aggregate.row_call import RowCall
from millstream.algebra.expression import CodeCall, Expression
from millstream.algebra.values import record


@record("fold_call")
class FoldCall(CodeCall):
    """The last row that the aggregate returns for the values of the arrays, in their order; `result`: the position of
    the result column that is meant. NULL if it returns none."""

    call: RowCall
    arguments: tuple[Expression, ...]
    result: int = 0

    def __str__(self) -> str:
        outputs = self.call.outputs
        column = f".{outputs[self.result].name.removeprefix(self.call.name + '_')}" if len(outputs) > 1 else ""
        return f"{self.call.function}({', '.join(map(str, self.arguments))}){column}"
