"""Feedback to a running query, across its stages.

The topmost part receives the feedback. Each part below receives what its reader may omit, by the plans alone, in the
same batch: all shards of all stages act on the same records. A part that several queries read receives nothing that one
of them disclaims, since the others have not; what one of them desires it may well emit first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.algebra.feedback import Feedback, Intent, parse_feedback
from millstream.algebra.punctuation.pattern import Pattern
from millstream.control.mill.demand import send_prod
from millstream.control.mill.places import switches_of
from millstream.errors import PatternError
from millstream.logical.plan import Plan
from millstream.physical.plan.told import omitted_by_sources
from millstream.physical.wire.records import Send

if TYPE_CHECKING:
    from millstream.control.mill.base import Mill


def send_feedback(mill: Mill, name: str, text: str | Feedback) -> list[PatternError]:
    """Send feedback to all parts of a query that it concerns, and return the warnings about it."""
    if mill.query(name).plan.writes:
        raise PatternError("M4013", f"query '{name}' writes a table, and emits no rows")
    message = parse_feedback(text, mill.schema(name)) if isinstance(text, str) else text
    if message.intent is Intent.DEMANDED:
        return send_prod(mill, name, message.pattern)
    placement = mill.placement(name)
    if message.intent is Intent.ASSUMED:
        _check_room(mill, name)
    readers: dict[str, int] = {}
    for other in mill.placements.of.values():
        for part in other.parts:
            readers[part.name] = readers.get(part.name, 0) + 1
    said, end = {placement.parts[0].name: message.pattern}, 0
    for part in placement.parts:
        pattern = said.get(part.name)
        if pattern is None or (readers[part.name] > 1 and message.intent is Intent.ASSUMED):
            continue
        end = mill.placements.append(Send(mill.name, Feedback(message.intent, pattern), part.name), placement.job)
        said |= _sent_by(mill, name, part.started.plan, pattern)
    mill.query(name).hear(message, end)
    mill.journal.note("feedback", (name, message))
    mill.take_effect()
    return []


def _check_room(mill: Mill, name: str) -> None:
    """Raise an error if the guard of a query has as many patterns as it may. They are counted when it could be so; what
    the shards had not received then counts as well."""
    query, limit = mill.query(name), mill.options.guard_limit
    if not limit or query.guards + len(query.uncounted) < limit:
        return
    placement = mill.placement(name)
    sink = f"sink:{placement.parts[0].name}"
    heard = [status for _, _, status in placement.reports() if sink in status.operators]
    if heard:
        reached = min(status.position for status in heard)
        query.guards = max(sum(test.count for test in status.operators[sink].tests) for status in heard)
        query.uncounted = [end for end in query.uncounted if end > reached]
    if (held := query.guards + len(query.uncounted)) >= limit:
        what = f"query '{name}' holds {held:,} patterns of feedback, as many as guard_limit allows"
        hint = "send lists and ranges, or what ends by itself (EXPLAIN CONTRACT); DROP QUERY ends it all"
        raise PatternError("M4020", what, hint=f"{hint}; SET guard_limit = {10 * limit} allows more")


def _sent_by(mill: Mill, query: str, plan: Plan, pattern: Pattern) -> dict[str, Pattern]:
    """Return what the parts that a plan reads may omit, by the part, if results that match the pattern are not wanted.
    A part that is read several times may omit what all readers ignore."""
    found: dict[str, list[Pattern | None]] = {}
    for stream, omitted in omitted_by_sources(plan, pattern, switches_of(mill), query):
        if stream.exchanged:
            found.setdefault(stream.part, []).append(omitted)
    return {
        part: first for part, (first, *rest) in found.items() if first is not None and all(r == first for r in rest)
    }
