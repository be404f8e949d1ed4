"""The interface between running aggregates and an aggregate that takes one tuple at a time, in SQL or in Python.

| method | called |
|---|---|
| `initialize` | with the first tuple of a partition |
| `iterate` | with each later tuple |
| `terminate` | after the last tuple, where a base version is used: at the end of a slot or a frame |
| `expire` | with a tuple that leaves the window, which is still the oldest in `inwindow`; window versions only |

Each returns the rows of its result, none or many. An instance serves one call in one partition; `save` returns what it
holds, as values, and `load` restores that in a new instance. `inwindow` is set before the first call.

An aggregate in Python may have two more: `result` returns further rows after `expire`, where expiry has results and the
window is not empty; `whole` takes several tuples at once, and returns the rows of the last one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import singledispatch
from typing import Any, Protocol

from millstream.algebra.aggregate.row_call import RowCall
from millstream.algebra.program.call import ProgramCall
from millstream.errors import PlanError
from millstream.runtime.program.compile import compiled
from millstream.runtime.program.index import Row
from millstream.runtime.program.inwindow import Inwindow

__all__ = ["NO_ROWS", "Inwindow", "Row", "RowAggregate", "Rows", "Versions", "quiet_expiry", "rows_of", "versions_of"]

Rows = Sequence[Row]
NO_ROWS: Rows = ()


class RowAggregate(Protocol):
    inwindow: Inwindow

    def initialize(self, *arguments: Any) -> Sequence[Row]: ...

    def iterate(self, *arguments: Any) -> Sequence[Row]: ...

    def terminate(self) -> Sequence[Row]: ...

    def expire(self, *arguments: Any) -> Sequence[Row]: ...

    def save(self) -> Any: ...

    def load(self, saved: Any, /) -> None: ...


Factory = Callable[[], RowAggregate]


def quiet_expiry(aggregate: RowAggregate) -> Callable[..., Any]:
    """`expire`, where its rows are not used: a compiled body has a method that does not compute them."""
    return getattr(aggregate, "leave", aggregate.expire)


@dataclass(frozen=True, slots=True)
class Versions:
    """The versions of one aggregate; at least one is there.

    `width` is the number of columns of a result. `keeps_window`: the window version reads inwindow or has to be told
    which tuples leave; without that no tuples are held. `indexes`: the columns of each index of inwindow. `reads`: a
    statement reads inwindow, whose columns are therefore in the order of the arguments. `deletes`: a statement deletes
    from inwindow, which therefore is its own.
    """

    base: Factory | None = None
    window: Factory | None = None
    width: int = 1
    ignore_nulls: bool = False
    algebraic: bool = False
    keeps_window: bool = True
    indexes: tuple[tuple[int, ...], ...] = ()
    reads: bool = False
    deletes: bool = False


@singledispatch
def versions_of(call: RowCall) -> Versions:
    """The versions of the aggregate that a call names. Each kind of call registers its own."""
    raise PlanError("M3090", f"no way to run {type(call).__name__}")


@versions_of.register
def _compiled(call: ProgramCall) -> Versions:
    base, window = (None if program is None else compiled(program) for program in (call.base, call.window))
    body = call.window
    return Versions(
        base,
        window,
        len(call.outputs),
        call.program.ignore_nulls,
        body is not None and body.algebraic,
        body is None or body.reads_window or bool(body.expire),
        () if window is None else window.WINDOW_INDEXES,
        body is not None and body.reads_window,
        body is not None and body.deletes_from_window,
    )


def rows_of(saved: Iterable[Sequence[Any]] | None) -> Rows:
    """Rows as a checkpoint has returned them."""
    return NO_ROWS if saved is None else [tuple(row) for row in saved]
