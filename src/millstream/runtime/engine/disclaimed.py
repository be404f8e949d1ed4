"""What all readers of a source have disclaimed: the tuples that the source need not deliver.

The buffer of a source remembers the feedback of its readers. So what has reached the source is known at any time, also
after a restart, and after a reader was added or removed.
"""

from __future__ import annotations

from collections.abc import Iterable

from millstream.algebra.feedback import Feedback, Intent
from millstream.algebra.punctuation.common import common, merged
from millstream.algebra.punctuation.pattern import Pattern
from millstream.runtime.engine.guarding import reader_name
from millstream.runtime.engine.nodes import Sink, Source
from millstream.runtime.engine.port import Port


def disclaimed(source: Source) -> tuple[Pattern, ...]:
    """Return patterns of tuples that no reader of a source wants."""
    buffer = source.buffer
    if not buffer.remembered:
        return ()
    found = [merged(_passed_on(reader)) for reader in buffer.readers()]
    return tuple(common(found)) if found and all(found) else ()


def _passed_on(reader: Port | Sink) -> list[Pattern]:
    """What a reader has disclaimed; nothing if it passes no feedback on."""
    if isinstance(reader, Port) and not reader.node.switch.propagate:
        return []
    return assumed(reader.buffer.remembered.get(reader_name(reader), ()))


def assumed(messages: Iterable[object]) -> list[Pattern]:
    """The patterns of assumed feedback among messages."""
    return [each.pattern for each in messages if isinstance(each, Feedback) and each.intent is Intent.ASSUMED]
