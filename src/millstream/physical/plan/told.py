"""What the sources of a plan may omit, if some of its results are not wanted: the responses of all its operators."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from millstream.algebra.punctuation.pattern import Pattern
from millstream.algebra.stream_id import StreamId
from millstream.logical.nodes.scan import Scan
from millstream.logical.plan import Plan
from millstream.physical.plan.compile import chain_of, labels, responded

if TYPE_CHECKING:
    from millstream.switches import Switches


def omitted_by_sources(
    plan: Plan, pattern: Pattern, switches: Switches, query: str
) -> Iterator[tuple[StreamId, Pattern | None]]:
    """Yield the streams that a plan reads, each with the tuples that it may omit; None: no tuples. Switches may stop
    feedback on its way."""
    shown = labels(plan)

    def below(part: Plan, unwanted: Pattern | None) -> Iterator[tuple[StreamId, Pattern | None]]:
        if isinstance(part, Scan):
            yield part.id, unwanted
            return
        chain = chain_of(part)
        omitted: tuple[Pattern | None, ...] = (None,) * len(chain[-1].inputs)
        if unwanted is not None:
            response, switch = responded(chain, unwanted), switches.of([(query, shown[part])])
            if switch.propagate and (response.rule.relays or switch.exploit == "on"):
                omitted = response.omitted
        for input_, own in zip(chain[-1].inputs, omitted, strict=True):
            yield from below(input_, own)

    yield from below(plan, pattern)
