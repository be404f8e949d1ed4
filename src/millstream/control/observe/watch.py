"""What a connection warns of while its queries run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.algebra.types import MICROS
from millstream.amounts import time_text
from millstream.control.observe.capacity import CapacityWatch
from millstream.control.observe.losses import LOG, LossWatch
from millstream.control.observe.promises import PromiseWatch
from millstream.errors import InputError

if TYPE_CHECKING:
    from millstream.control.mill.base import Mill


class ClockWatch:
    """Warns of a machine's clock that goes back, once each time."""

    def __init__(self, mill: Mill) -> None:
        self._clock, self._told = mill.clock, MICROS

    def check(self) -> None:
        ahead = self._clock.ahead
        if ahead > self._told + MICROS:
            message = f"the machine's clock has gone back by {time_text(ahead // MICROS)}"
            detail = "Streams that it stamps go on from the time that they had reached, as time passes."
            hint = "if the earlier time was wrong, a new checkpoint begins at the right one"
            LOG.warning("%s", InputError("M5050", message, detail=detail, hint=hint))
        self._told = max(MICROS, ahead)


class Watch:
    """Lost rows, broken promises, state that passes its bound, and a clock that goes back."""

    def __init__(self, mill: Mill) -> None:
        self._watches = LossWatch(mill), PromiseWatch(mill), CapacityWatch(mill), ClockWatch(mill)

    def check(self) -> None:
        """Warn of what is new since the last call."""
        for watch in self._watches:
            watch.check()
