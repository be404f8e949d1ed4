"""Aggregates of a query as Python source: what is kept for each, what a row adds to it, and the result.

| | kept | a row | result |
|---|---|---|---|
| COUNT of rows, or of values that are never NULL | a number | adds 1 | the number |
| MIN and MAX of integers, texts and times | the value so far | is compared with it | the value |
| others | a list of arguments | is appended | a function of the list |
"""

from __future__ import annotations

from collections.abc import Callable

from millstream.algebra.expression import Column
from millstream.algebra.program.program import Program
from millstream.algebra.program.query import Call
from millstream.algebra.python.definition import Declaration
from millstream.algebra.types import Type
from millstream.runtime.program import scalars
from millstream.runtime.program.code import on_column
from millstream.runtime.program.source import Frame

DISCRETE = (Type.INT, Type.BIGINT, Type.VARCHAR, Type.TIMESTAMP, Type.DATE)
"""Types whose equal values are the same."""
EXTREMES = {"MIN": "<", "MAX": ">"}
_INTEGERS = (Type.INT, Type.BIGINT)


class Accumulator:
    """The source of one aggregate of a query. `place`: where its state is kept."""

    def __init__(
        self, call: Call, place: str, frame: Frame, argument: Callable[[Call], str], *, begun: bool = False
    ) -> None:
        """`begun`: `add` is for rows after the first."""
        self.begun = begun
        self._call, self.place, self._frame, self._argument = call, place, frame, argument
        nullable = any(frame.module.facts.of(each).nullable for each in call.arguments)
        self._known = call.by is None and not nullable
        discrete = all(each.type in DISCRETE for each in call.arguments)
        plain = all(isinstance(each, Column) for each in call.arguments)
        self._counts = self._known and plain and not call.distinct and call.function == "COUNT"
        self._compares = call.by is None and discrete and call.function in EXTREMES

    @property
    def initial(self) -> str:
        return "0" if self._counts else "None" if self._compares else "[]"

    def first(self) -> str:
        """What is kept of the first row."""
        if self._counts:
            return "1"
        argument = self._argument(self._call)
        return argument if self._compares else f"[{argument}]"

    @property
    def is_listed(self) -> bool:
        """True if the arguments are kept."""
        return not self._counts and not self._compares

    def add(self) -> list[str]:
        """The lines for a row."""
        if self._counts:
            return [f"{self.place} += 1"]
        argument = self._argument(self._call)
        if not self._compares:
            return [f"{self.place}.append({argument})"]
        name, better = self._frame.temporary(), EXTREMES[self._call.function]
        if self._known and self.begun:
            return [f"if ({name} := {argument}) {better} {self.place}:", f"    {self.place} = {name}"]
        known = "" if self._known else f"{name} is not None and "
        test = f"{known}({self.place} is None or {name} {better} {self.place})"
        return [f"{name} = {argument}", f"if {test}:", f"    {self.place} = {name}"]

    def result(self) -> str:
        """The result, of a call that is no program."""
        return self.place if not self.is_listed else self.of_list()

    def of_list(self) -> str:
        """The result, if all arguments are kept in a list."""
        call, held, constant = self._call, self.place, self._frame.module.constant
        if self._counts:
            return f"len({held})"
        if self._compares and self._known:
            return f"({call.function.lower()}({held}) if {held} else None)"
        held = f"distinct({held})" if call.distinct else held
        if self._known and not call.distinct and call.function == "SUM" and call.arguments[0].type in _INTEGERS:
            return f"total_of_known({held})"
        assert not isinstance(call.by, Program | Declaration)
        made = scalars.AGGREGATES[call.function] if call.by is None else on_column(call.by, call.arguments)
        return f"{constant(made, 'f')}({held})"
