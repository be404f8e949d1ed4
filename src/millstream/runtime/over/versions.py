"""The versions of the aggregate that a call names, ready to run. Each kind of call registers its own."""

from __future__ import annotations

from functools import singledispatch

from millstream.algebra.aggregate.row_call import RowCall
from millstream.algebra.program.call import ProgramCall
from millstream.errors import PlanError
from millstream.runtime.over.row_aggregate import Versions
from millstream.runtime.program.compile import compiled


@singledispatch
def versions_of(call: RowCall) -> Versions:
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
