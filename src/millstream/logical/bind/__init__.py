"""The binder: statements to definitions and plans."""

from __future__ import annotations

from millstream.logical.bind.aggregate.definition import bind_aggregate
from millstream.logical.bind.derived import bind_derived
from millstream.logical.bind.runs import bind_select
from millstream.logical.bind.statements import bind_stream, bind_table

__all__ = ["bind_aggregate", "bind_derived", "bind_select", "bind_stream", "bind_table"]
