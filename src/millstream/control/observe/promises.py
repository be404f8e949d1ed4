"""Streams that do not keep what they declare: counted, and each reported once.

| | reported |
|---|---|
| punctuation that conforms to no declared template | M5063 |
| tuples that match a punctuation sent before them, unless many rows are late (M5060) | M5064 |
| no punctuation of a template for longer than its `EVERY`, although tuples wait for one | M5065, once per silence |

Rows and punctuations from before a restart do not count.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from millstream.algebra.types import MICROS
from millstream.amounts import amount
from millstream.control.observe.loss_reports import interval_text
from millstream.control.observe.losses import WARNED, losses
from millstream.errors import InputError, MillstreamError
from millstream.ingest.losses import Losses
from millstream.logical.catalog import StreamDefinition

if TYPE_CHECKING:
    from millstream.control.mill.base import Mill

LOG = logging.getLogger("millstream")


@dataclass(frozen=True, slots=True)
class Conduct:
    """How a stream keeps its scheme: punctuations of no declared template, tuples that break a punctuation, and for
    templates with a period the seconds by which their punctuation is overdue."""

    strange: int = 0
    broken: int = 0
    overdue: tuple[tuple[str, float], ...] = ()

    @property
    def kept(self) -> bool:
        return not self.strange and not self.broken and not self.overdue

    def __str__(self) -> str:
        counts = (self.strange, "punctuations not declared"), (self.broken, "rows break a punctuation")
        late = [f"{template} overdue by {seconds:,.0f} s" for template, seconds in self.overdue]
        return ", ".join([*(f"{number:,} {what}" for number, what in counts if number), *late])


def conduct(stream: StreamDefinition, held: Losses, now: int) -> Conduct:
    """Return how a stream has kept its scheme by now."""
    broken = held.causes.get("punctuation", 0) if stream.sent and not stream.primary_key else 0
    return Conduct(held.kept.strange, broken, tuple(_overdue(stream, held, now)))


def _overdue(stream: StreamDefinition, held: Losses, now: int) -> Iterator[tuple[str, float]]:
    for template, period in stream.periods:
        waiting = held.kept.since.get(str(template))
        if waiting is not None and now - waiting[1] > period:
            yield str(template), (now - waiting[1] - period) / MICROS


class PromiseWatch:
    """Warns of streams that break a promise."""

    def __init__(self, mill: Mill) -> None:
        self._mill = mill
        self._warned: dict[tuple[str, str], StreamDefinition] = {}
        """The streams warned of, by name and kind of breach; one of the same name may be created later."""
        self._checking = threading.Lock()

    def check(self) -> None:
        """Warn of breaches since the last call."""
        with self._checking:
            now = self._mill.clock.now()
            for name, held in losses(self._mill).items():
                if name in self._mill.catalog and self._mill.options.contracts != "off":
                    self._check(self._mill.catalog.stream(name), held, now)

    def _check(self, stream: StreamDefinition, held: Losses, now: int) -> None:
        found = conduct(stream, held, now)
        self._tell(stream, "strange", found.strange > 0, lambda: _strange(stream, held))
        few = held.late <= WARNED * held.rows  # of many late rows `losses` warns
        self._tell(stream, "broken", found.broken > 0 and few, lambda: _broken(stream, found.broken))
        late = dict(found.overdue)
        for template, period in stream.periods:
            name = str(template)
            self._tell(stream, name, name in late, partial(_silent, stream, name, period))

    def _tell(self, stream: StreamDefinition, kind: str, breach: bool, report: Callable[[], MillstreamError]) -> None:
        key = stream.name, kind
        if not breach:
            self._warned.pop(key, None)
        elif self._warned.get(key) is not stream:
            self._warned[key] = stream
            LOG.warning("%s", report())


def _strange(stream: StreamDefinition, held: Losses) -> MillstreamError:
    declared = " ".join(f"PUNCTUATED ON {template}" for template in stream.sent)
    message = f"stream '{stream.name}' sends punctuation that it does not declare"
    detail = f"{held.kept.strange:,} so far, the first {held.kept.example}; it declares {declared}."
    return InputError("M5063", message, detail=detail, hint="declare PUNCTUATED ON for it, or send what is declared")


def _broken(stream: StreamDefinition, number: int) -> MillstreamError:
    rows = f"{amount(number, 'row')} {'matches' if number == 1 else 'match'} punctuation that it had sent"
    message = f"stream '{stream.name}' breaks its promise: {rows}"
    hint = f"send a punctuation only after the rows that it matches; {stream.id.late} has the rows"
    return InputError("M5064", message, hint=hint)


def _silent(stream: StreamDefinition, template: str, period: int) -> MillstreamError:
    every = interval_text(period)
    message = f"stream '{stream.name}' has sent no punctuation on {template} for longer than {every}"
    detail = f"It declares PUNCTUATED ON {template} EVERY {every.upper()}, and rows have come since the last one."
    return InputError("M5065", message, detail=detail, hint="state that waits for it grows; check the source")
