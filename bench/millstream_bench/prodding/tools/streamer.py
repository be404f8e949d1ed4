"""The Streamer delivers a stored stream by its own time, with random delays, and the elements that control it.

| element | is delivered |
|---|---|
| tuple | at its time, plus a random delay |
| punctuation | at its time, or later: after all tuples that it covers; `with_next`: with the first tuple behind it |
| prod | at its time, without delay; it may overtake tuples |

`in_order`: a delayed tuple delays those behind it. Otherwise tuples overtake each other. At the same time prods come
first, then tuples, then punctuations.

Time is virtual unless `paced` is used, which waits until each delivery is due by the system's clock.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

PROD, TUPLES, PUNCTUATION = range(3)
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Control:
    """A prod or a punctuation: when it is delivered, and the end of the windows that it speaks of."""

    at: float
    end: int
    kind: int = PROD

    def text(self, time: str) -> str:
        return f"{{{time} = {self.end}}}" if self.kind == PROD else f"[{time} < {self.end}]"


@dataclass(frozen=True, slots=True)
class Delivery:
    """Rows, or an element that controls the stream, at the time of the last of them."""

    at: float
    rows: pl.DataFrame | None = None
    control: Control | None = None


@dataclass(frozen=True, slots=True)
class Streamer:
    """`delay`: the longest delay of a tuple, in seconds, or the mean delay if `mean`."""

    delay: float = 0.0
    mean: bool = False
    in_order: bool = True
    with_next: bool = False
    seed: int = 0
    time: str = "ts"

    def due(self, rows: pl.DataFrame) -> Floats:
        """The time at which each tuple is delivered."""
        times = rows.get_column(self.time).to_numpy().astype(np.float64)
        longest = 2 * self.delay if self.mean else self.delay
        due = times + np.random.default_rng(self.seed).uniform(0, longest, len(times)) if longest else times
        return np.maximum.accumulate(due) if self.in_order and len(due) else due

    def deliveries(self, rows: pl.DataFrame, controls: Iterable[Control] = ()) -> list[Delivery]:
        """Everything in the order of delivery; tuples between two controls are delivered together."""
        due = self.due(rows)
        order = np.argsort(due, kind="stable")
        rows, arrived, times = rows[order], due[order], rows.get_column(self.time).to_numpy()[order]
        placed = sorted((self._placed(control, times, arrived) for control in controls), key=lambda c: (c.at, c.kind))
        made: list[Delivery] = []
        taken = 0
        for control in placed:
            before = arrived < control.at if control.kind == PROD else arrived <= control.at
            until = max(taken, int(np.count_nonzero(before)))
            if until > taken:
                made.append(Delivery(float(arrived[until - 1]), rows[taken:until]))
            made.append(Delivery(control.at, control=control))
            taken = until
        if taken < rows.height:
            made.append(Delivery(float(arrived[-1]), rows[taken:]))
        return made

    def _placed(self, control: Control, times: npt.NDArray[np.int64], arrived: Floats) -> Control:
        """The control at the time of its delivery."""
        if control.kind == PROD:
            return control
        covered = arrived[times < control.end]
        last = float(covered.max()) if len(covered) else control.at
        following = arrived[times >= control.end] if self.with_next else ()
        if len(following):
            last = max(last, float(min(following)))
        return Control(max(control.at, last), control.end, control.kind)


def chopped(deliveries: Iterable[Delivery], seconds: float = 1.0) -> Iterator[Delivery]:
    """Deliveries with tuples in pages of about as many seconds, by their own time; for streams without delays."""
    for delivery in deliveries:
        if delivery.rows is None:
            yield delivery
            continue
        slots = (pl.col("ts") // seconds).alias("slot")
        for (slot,), rows in delivery.rows.group_by(slots, maintain_order=True):
            yield Delivery(float(slot) * seconds, rows)


def paced(
    deliveries: Sequence[Delivery],
    *,
    scale: float = 1.0,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Iterator[Delivery]:
    """Yield each delivery when it is due by the system's clock; `scale`: seconds of the stream in a second."""
    begun = clock()
    for delivery in deliveries:
        wait = begun + delivery.at / scale - clock()
        if wait > 0:
            sleep(wait)
        yield delivery
