"""Which answers of windows and groups are still to come, behind punctuation and progress."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from millstream.algebra.punctuation.punctuations import Punctuations
from millstream.algebra.schema import FOREVER, NEVER
from millstream.algebra.window import WINDOW_END
from millstream.runtime.operator.contract import Input


def reached_by(port: Input) -> int:
    """The time that a port has reached."""
    return max(port.bound, NEVER if port.punctuations is None else port.punctuations.progress)


def still_open(
    held: pl.DataFrame, keys: Sequence[str], closed: Punctuations | None, reached: int, *, timed: bool
) -> pl.Series:
    """Return a mask of what is held by window and group. `timed`: the windows are over the stream's time, which has
    `reached` a time; the time of a window's row is one tick before its end."""
    kept = pl.repeat(reached < FOREVER, held.height, eager=True)
    if closed is not None and len(closed):
        kept &= ~closed.select({name: name for name in keys}).match(held)
    if timed and WINDOW_END in keys:
        kept &= held.get_column(WINDOW_END).to_physical() > reached
    return kept
