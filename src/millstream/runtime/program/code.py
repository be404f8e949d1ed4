"""Code that programs call: functions and aggregates written in Python, and built-in functions of whole columns.

The code of a reference is looked up when it is called: a resumed job may provide it later, and other code in its place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import polars as pl

from millstream.algebra.aggregate.call import AggregateCall
from millstream.algebra.expression import Expression, PythonCall
from millstream.algebra.python.code import code_of
from millstream.algebra.python.definition import VALUE, Declaration
from millstream.algebra.schema import TS
from millstream.runtime.python.function import RAISED, apply, called, failed
from millstream.runtime.python.results import fitting


def python_function(node: PythonCall) -> Callable[..., Any]:
    """A function of the values of the arguments; it raises CodeError if the code fails."""
    reference, type_ = node.function, node.type
    types = [argument.type.polars for argument in node.arguments]

    def call(*values: Any) -> Any:
        definition = code_of(reference)
        if definition.declaration.style != VALUE:
            columns = [pl.Series([value], dtype=given) for value, given in zip(values, types, strict=True)]
            return apply(reference, columns, 1, type_)[0]
        try:
            returned = definition.code(*values)
        except RAISED as error:
            raise failed(f"function {called(reference.name, values)}", error) from error
        return fitting(returned, type_, f"function {called(reference.name, values)}")

    return call


def python_aggregate(declared: Declaration) -> Callable[[], Any]:
    """Makes instances of the base version of an aggregate."""

    def made() -> Any:
        from millstream.runtime.python.aggregate import BaseVersion  # it runs over the tables of this package
        from millstream.runtime.python.paged import PagedVersion

        return BaseVersion(declared) if declared.style == VALUE else PagedVersion(declared)

    return made


def on_column(call: AggregateCall, arguments: Sequence[Expression]) -> Callable[[list[Any]], Any]:
    """A built-in function of the rows of its argument and its filter, in their order."""
    named = zip(("argument", "filter"), arguments, strict=False)
    types = {name: argument.type.polars for name, argument in named}
    reductions, result = [each.expression() for each in call.reductions()], call.result()

    def computed(rows: list[tuple[Any, ...]]) -> Any:
        frame = pl.DataFrame(rows, schema=types, orient="row").with_row_index(TS)
        found = frame.select(reductions).select(result).to_series()[0]
        return found.to_list() if isinstance(found, pl.Series) else found

    return computed
