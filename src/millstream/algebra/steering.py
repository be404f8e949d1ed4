"""The lead that keeps the accuracy of early answers: found from the windows that are compared, one after the other.

Leads are multiples of 5 % of the slide, their *levels*. After `SETTLED` windows at a level their mean accuracy decides:

| mean | next level |
|---|---|
| below the target | lower: in proportion to the error that is allowed, and by one at least |
| else | higher, in the same proportion: at most twice as high, and below the level that has failed last |

After `patience` windows without a change the next higher level is tried, even if it has failed before; each time it
fails again, patience doubles. Windows that were asked for at another lead do not count.

>>> from millstream.algebra.windower import tumbling
>>> held = Steering(target=95.0, level=4, most=19, windows=tumbling(100))
>>> for end in range(100, 1300, 100):  # accuracy falls in proportion to the lead, as that of a sum does
...     held = held.seen(end, held.share, 100 * held.share)
>>> held.level, held.lead, held.failed
(1, 5, 4)
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from millstream.algebra.schema import NEVER
from millstream.algebra.values import record
from millstream.algebra.windower import Windower

STEPS = 20
"""Levels in a slide."""
FIRST, SETTLED, RECENT, PATIENCE, LONGEST = 4, 4, 40, 16, 512
"""`FIRST`: the level to begin with. `RECENT`: about the number of windows that a mean is over."""


@record("steering")
class Steering:
    """`target`: the accuracy to keep. `level`: the lead in steps; `most`: the highest. `count`, `total`: windows at it,
    and the sum of their accuracies. `failed`: the level that has failed last; 0: none. `waited`: windows since
    the last change. `last`: the end of the last window that was taken."""

    target: float
    level: int
    most: int
    windows: Windower
    count: float = 0.0
    total: float = 0.0
    failed: int = 0
    waited: int = 0
    patience: int = PATIENCE
    last: int = NEVER

    @classmethod
    def begun(cls, target: float, windows: Windower) -> Steering:
        most = max(1, STEPS * windows.length // windows.step - 1)
        return cls(target, min(FIRST, most), most, windows)

    @property
    def lead(self) -> int:
        """The lead, in units of the timestamps."""
        return self.level * self.windows.step // STEPS

    @property
    def share(self) -> float:
        """The share of a window that an answer at this lead has seen."""
        return 1 - self.lead / self.windows.length

    def seen(self, end: int, share: float, accuracy: float) -> Steering:
        """Take the mean accuracy of a window that was asked for when a share of it had passed."""
        if end <= self.last or abs(share - self.share) > self.windows.step / (2 * STEPS * self.windows.length):
            return self
        fade = 1 - 1 / RECENT if self.count >= RECENT else 1.0
        made = replace(
            self,
            count=self.count * fade + 1,
            total=self.total * fade + accuracy,
            waited=self.waited + 1,
            last=end,
        )
        return made._decided() if made.count >= SETTLED else made

    def _decided(self) -> Steering:
        mean = self.total / self.count
        wrong, allowed = 100 - mean, 100 - self.target
        fitting = int(self.level * allowed / wrong) if wrong > 0 else self.most
        if mean < self.target:
            lower = max(0, min(fitting, self.level - 1))
            again = self.failed == self.level
            patience = min(2 * self.patience, LONGEST) if again else self.patience
            return self._at(lower, failed=self.level, patience=patience) if self.level else self
        bound = min(2 * self.level + 1, self.failed - 1 if self.failed else self.most, self.most)
        higher = min(fitting, bound)
        if higher <= self.level and self.waited >= self.patience:
            higher = min(self.level + 1, self.most)
        return self._at(higher) if higher > self.level else self

    def _at(self, level: int, **changed: Any) -> Steering:
        return replace(self, level=level, count=0.0, total=0.0, waited=0, **changed)
