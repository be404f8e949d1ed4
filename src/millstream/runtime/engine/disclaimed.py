"""What all readers of a source have disclaimed: the tuples that the source need not deliver.

The buffer of a source remembers the feedback of its readers. So what has reached the source is known at any time, also
after a restart, and after a reader was added or removed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from millstream.algebra.feedback import Feedback, Intent
from millstream.algebra.punctuation.common import common, merged
from millstream.algebra.punctuation.pattern import Pattern
from millstream.algebra.upstream import Upstream
from millstream.runtime.engine.guarding import reader_name
from millstream.runtime.engine.nodes import Sink, Source
from millstream.runtime.engine.port import Port


def disclaimed(source: Source) -> tuple[Pattern, ...]:
    """Return patterns of tuples that no reader of a source wants."""
    buffer = source.buffer
    if not buffer.remembered:
        return ()
    sent = [_passed_on(reader) for reader in buffer.readers()]
    known, found = source.disclaimed
    if len(known) != len(sent) or any(one is not other for one, other in zip(known, sent, strict=True)):
        sets = [merged(assumed(messages)) for messages in sent]
        found = tuple(common(sets)) if sets and all(sets) else ()
        source.disclaimed = sent, found
    return found


def _passed_on(reader: Port | Sink) -> Sequence[Upstream]:
    """What a reader has said, a list that is replaced and not changed; nothing if it passes no feedback on."""
    if isinstance(reader, Port) and not reader.node.switch.propagate:
        return ()
    return reader.buffer.remembered.get(reader_name(reader), ())


def assumed(messages: Iterable[object]) -> list[Pattern]:
    """The patterns of assumed feedback among messages."""
    return [each.pattern for each in messages if isinstance(each, Feedback) and each.intent is Intent.ASSUMED]
