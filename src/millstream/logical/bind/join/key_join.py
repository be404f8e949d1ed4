"""KEY JOIN in FROM: where it may stand."""

from __future__ import annotations

from collections.abc import Sequence

from millstream.logical.bind.join.outer import OUTER
from millstream.logical.bind.scope import Entry
from millstream.logical.nodes.key_join import KeyJoin


def key_joined(streams: Sequence[Entry]) -> bool:
    """Return whether one of these streams has KEY JOIN."""
    return any(entry.window is not None and entry.window.key_join for entry in streams)


def check_key_join(plan: KeyJoin, streams: Sequence[Entry]) -> None:
    """Refuse KEY JOIN in an outer join, in a join of three streams, and where the order of tuples is not known."""
    entry = next(entry for entry in streams if key_joined([entry]))
    if any(other.written.kind in OUTER for other in streams):
        raise entry.fail("M3045", "KEY JOIN in an outer join is not available yet", "JOIN")
    if len(streams) > 2:
        hint = "join two streams in a subquery of FROM"
        raise entry.fail("M3045", "KEY JOIN in a join of three streams is not available yet", hint)
    if not plan.merges:
        hint = "declare ORDER BY on both streams, with WATERMARK FOR if tuples come in any order"
        raise entry.fail("M3045", "KEY JOIN needs streams in the order of time", hint)
