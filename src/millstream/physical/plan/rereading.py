"""Queries that read their streams from the beginning: each has readings of its own.

A reading is named after its stream, with a number. It has its own place in the source, its own judgement of what is
late, and its own operators; other queries read the stream itself at its current place.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from millstream.algebra.stream_id import StreamId
from millstream.logical.catalog import StreamDefinition
from millstream.logical.nodes.scan import Scan
from millstream.logical.plan import Plan
from millstream.optimizer.context import bottom_up


def reread(
    plan: Plan, streams: Mapping[str, StreamDefinition], number: int
) -> tuple[Plan, dict[str, StreamDefinition]]:
    """Return the plan over readings of these streams, and the definitions of the readings."""

    def renamed(part: Plan) -> Plan:
        if isinstance(part, Scan) and part.id.source in streams:
            return replace(part, stream=str(replace(part.id, reading=number)))
        return part

    names = {name: str(StreamId(name, number)) for name in streams}
    return bottom_up(plan, renamed), {names[name]: replace(d, name=names[name]) for name, d in streams.items()}
