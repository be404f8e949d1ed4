"""An aggregate written in Python, as one that takes a tuple at a time (`runtime/over/row_aggregate.py`).

| version | results of a tuple |
|---|---|
| base | what `initialize` or `iterate` returns; where the host asks for it, what `terminate` returns |
| window | the same, with `terminate` after each tuple; on expiry those of `expire`; `terminate` if tuples are left |

The state is the attributes of the instance, saved by name. They must be values that checkpoints can hold.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

from millstream.algebra.python.aggregate_call import PythonAggregateCall
from millstream.algebra.python.code import code_of
from millstream.algebra.python.definition import VALUE, Declaration
from millstream.algebra.ranges import LIMITS
from millstream.algebra.types import Type
from millstream.algebra.values import decode, encode
from millstream.errors import CodeError
from millstream.runtime.over.row_aggregate import NO_ROWS, Inwindow, Row, Versions, versions_of
from millstream.runtime.python.function import RAISED, called, failed
from millstream.runtime.python.results import fitting


@versions_of.register
def _python_versions(call: PythonAggregateCall) -> Versions:
    declared = call.declared
    if declared.style != VALUE:
        from millstream.runtime.python.paged import PagedVersion

        return Versions(lambda: PagedVersion(declared), None, len(declared.returns))
    window = (lambda: WindowVersion(declared)) if "expire" in declared.methods else None
    return Versions(lambda: BaseVersion(declared), window, len(declared.returns), declared.ignore_nulls)


_PLAIN: dict[Type, type] = {
    Type.BOOLEAN: bool,
    Type.DOUBLE: float,
    Type.DECIMAL: float,
    Type.VARCHAR: str,
    Type.INTERVAL: timedelta,
}


class BaseVersion:
    """The base version."""

    inwindow: Inwindow

    def __init__(self, declared: Declaration) -> None:
        self._name, self._types = declared.name, [type_ for _, type_ in declared.returns]
        self._plain = _PLAIN.get(self._types[0]) if len(self._types) == 1 else None
        """The type of values that are a row by themselves and always fit."""
        own = len(self._types) == 1 and self._types[0].is_integer
        self._limits = LIMITS[self._types[0]] if own else None
        """The least and the greatest value, of integers that are a row by themselves."""
        self._class: Any = code_of(declared.reference).code
        self._held: Any = self._guarded("__init__", self._class)
        self._begin()

    def _begin(self) -> None:
        held = self._held
        self._iterate: Callable[..., Any] = held.iterate
        self._initialize: Callable[..., Any] = getattr(held, "initialize", held.iterate)
        self._terminate: Callable[..., Any] | None = getattr(held, "terminate", None)
        self._expire: Callable[..., Any] | None = getattr(held, "expire", None)

    # --- methods ----------------------------------------------------------------------------------------------------

    def initialize(self, *arguments: Any) -> Sequence[Row]:
        return self._rows("initialize", self._initialize, arguments)

    def iterate(self, *arguments: Any) -> Sequence[Row]:
        return self._rows("iterate", self._iterate, arguments)

    def terminate(self) -> Sequence[Row]:
        return NO_ROWS if self._terminate is None else self._rows("terminate", self._terminate, ())

    def expire(self, *arguments: Any) -> Sequence[Row]:
        return NO_ROWS if self._expire is None else self._rows("expire", self._expire, arguments)

    def _rows(self, method: str, code: Callable[..., Any], arguments: Row) -> Sequence[Row]:
        try:
            returned = code(*arguments)
        except RAISED as error:
            raise failed(self._described(method, arguments), error) from error
        if returned is None:
            return NO_ROWS
        kind = type(returned)
        if kind is self._plain or (kind is int and self._in_range(returned, returned)):
            return ((returned,),)
        if kind is list and self._fit(returned):
            return [*zip(returned, strict=True)]
        return self._checked(method, arguments, returned)

    def _in_range(self, least: int, greatest: int) -> bool:
        limits = self._limits
        return limits is not None and limits[0] <= least and greatest <= limits[1]

    def _fit(self, values: list[Any]) -> bool:
        """True if each value is a row by itself and fits its type."""
        kinds = set(map(type, values))
        if kinds == {int}:
            return self._in_range(min(values), max(values))
        return kinds == {self._plain}

    def _checked(self, method: str, arguments: Row, returned: Any) -> Sequence[Row]:
        try:
            if type(returned) is not list and not hasattr(returned, "__next__"):
                return (self._row(returned),)
            return [self._row(each) for each in returned]
        except CodeError:
            raise
        except RAISED as error:  # a generator runs here
            raise failed(self._described(method, arguments), error) from error

    def _row(self, returned: Any) -> Row:
        types = self._types
        if len(types) == 1:
            value = returned[0] if type(returned) is tuple and len(returned) == 1 else returned
            return (fitting(value, types[0], f"aggregate {self._name}"),)
        if not isinstance(returned, tuple) or len(returned) != len(types):
            message = f"aggregate {self._name} returned {returned!r}, not a tuple of {len(types)} values"
            raise CodeError("M6054", message)
        return tuple(
            fitting(value, type_, f"aggregate {self._name}") for value, type_ in zip(returned, types, strict=True)
        )

    def _guarded(self, method: str, code: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return code(*arguments)
        except RAISED as error:
            raise failed(self._described(method, arguments), error) from error

    def _described(self, method: str, arguments: Row) -> str:
        return f"aggregate {called(f'{self._name}.{method}', arguments)}"

    # --- state ------------------------------------------------------------------------------------------------------

    def save(self) -> dict[str, bytes]:
        return {name: self._encoded(name, value) for name, value in _attributes(self._held).items()}

    def load(self, saved: dict[str, bytes]) -> None:
        self._held = self._class.__new__(self._class)
        for name, value in saved.items():
            object.__setattr__(self._held, name, decode(value, f"attribute '{name}' of aggregate {self._name}"))
        self._begin()

    def _encoded(self, name: str, value: Any) -> bytes:
        try:
            return encode(value)
        except TypeError as error:
            message = f"attribute '{name}' of aggregate {self._name} cannot be stored: {error}"
            raise CodeError("M6054", message) from error


class WindowVersion(BaseVersion):
    """The window version."""

    def initialize(self, *arguments: Any) -> Sequence[Row]:
        return self._with_result(self._rows("initialize", self._initialize, arguments))

    def iterate(self, *arguments: Any) -> Sequence[Row]:
        return self._with_result(self._rows("iterate", self._iterate, arguments))

    def result(self) -> Sequence[Row]:
        """The rows of a window from which a tuple has expired, after those of `expire`."""
        return self.terminate()

    def _with_result(self, found: Sequence[Row]) -> Sequence[Row]:
        if self._terminate is None:
            return found
        result = self._rows("terminate", self._terminate, ())
        return [*found, *result] if found else result


def _attributes(held: Any) -> dict[str, Any]:
    """The attributes of an object, with those of `__slots__`."""
    found = dict(getattr(held, "__dict__", {}))
    for kind in type(held).__mro__:
        names = kind.__dict__.get("__slots__", ())
        for name in (names,) if isinstance(names, str) else names:
            if name not in ("__dict__", "__weakref__") and hasattr(held, name):
                found[name] = getattr(held, name)
    return found
