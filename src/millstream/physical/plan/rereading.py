"""Queries that read their streams from the beginning: each has readings of its own.

A reading is named after its stream, with a number. It has its own place in the source, its own judgement of what is
late, and its own operators; other queries read the stream itself at its current place.

>>> reading("bids", 7), declared("bids^7"), declared("bids^7__late"), declared("bids")
('bids^7', 'bids', 'bids', 'bids')
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from millstream.logical.catalog import BAD, LATE, StreamDefinition
from millstream.logical.nodes.scan import Scan
from millstream.logical.plan import Plan
from millstream.optimizer.context import bottom_up

MARK = "^"
"""Follows the name of the stream in the name of a reading; declared streams have no such names."""


def reading(stream: str, number: int) -> str:
    return f"{stream}{MARK}{number}"


def declared(stream: str) -> str:
    """The declared stream that a reading is of; any other stream's own name."""
    return stream.partition(MARK)[0]


def reread(
    plan: Plan, streams: Mapping[str, StreamDefinition], number: int
) -> tuple[Plan, dict[str, StreamDefinition]]:
    """Return the plan over readings of these streams, and the definitions of the readings."""
    names = {name + end: reading(name, number) + end for name in streams for end in ("", LATE, BAD)}

    def renamed(part: Plan) -> Plan:
        return replace(part, stream=names.get(part.stream, part.stream)) if isinstance(part, Scan) else part

    made = {reading(name, number): replace(d, name=reading(name, number)) for name, d in streams.items()}
    return bottom_up(plan, renamed), made
