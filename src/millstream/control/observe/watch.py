"""What a connection warns of while its queries run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.control.observe.losses import LossWatch
from millstream.control.observe.promises import PromiseWatch

if TYPE_CHECKING:
    from millstream.control.mill.base import Mill


class Watch:
    """Lost rows and broken promises."""

    def __init__(self, mill: Mill) -> None:
        self._watches = LossWatch(mill), PromiseWatch(mill)

    def check(self) -> None:
        """Warn of what is new since the last call."""
        for watch in self._watches:
            watch.check()
