"""The versions of the aggregate that a call names, ready to run. Each kind of call registers its own."""

from __future__ import annotations

from functools import singledispatch

from millstream.algebra.aggregate.row_call import RowCall
from millstream.algebra.program.call import ProgramCall
from millstream.errors import PlanError
from millstream.runtime.over.row_aggregate import Inwindow, Versions
from millstream.runtime.program.compile import compiled


@singledispatch
def versions_of(call: RowCall) -> Versions:
    raise PlanError("M3090", f"no way to run {type(call).__name__}")


@versions_of.register
def _compiled(call: ProgramCall) -> Versions:
    base, window = (None if program is None else compiled(program) for program in (call.base, call.window))
    return Versions(
        base,
        window,
        len(call.outputs),
        call.program.ignore_nulls,
        call.window is not None and call.window.algebraic,
        call.window is None or call.window.reads_window or bool(call.window.expire),
        Inwindow if window is None else window.new_inwindow,
    )
