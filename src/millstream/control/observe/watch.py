"""What a connection warns of while its queries run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.control.observe.capacity import CapacityWatch
from millstream.control.observe.losses import LossWatch
from millstream.control.observe.promises import PromiseWatch

if TYPE_CHECKING:
    from millstream.control.mill.base import Mill


class Watch:
    """Lost rows, broken promises, and state that passes its bound."""

    def __init__(self, mill: Mill) -> None:
        self._watches = LossWatch(mill), PromiseWatch(mill), CapacityWatch(mill)

    def check(self) -> None:
        """Warn of what is new since the last call."""
        for watch in self._watches:
            watch.check()
