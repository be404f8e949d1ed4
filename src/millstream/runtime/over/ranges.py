"""Ranges of tuples: the frames of some tuples, as the first and the last place in an array arranged by partition.

Merging a range takes two steps, whatever its length. A partition is cut into blocks as long as the frame (k + 1 tuples,
or d + 1 units of time), so that a frame reaches into one block before its own at most. Its result merges the end of
that block, from the first tuple of the frame on, with the start of its own block:

    frame of 4      a b c d | e f g h
                        └───────┘         end of the first block from c on, start of the second block up to f

Both are running merges, one backwards and one forwards. Nothing is subtracted, so no digits of fractions cancel. A
range within one block starts or ends with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from millstream.algebra.arrays import Places
from millstream.algebra.frame import Frame
from millstream.algebra.schema import TS
from millstream.runtime.over.folds import Arrays, Fold
from millstream.runtime.over.partitions import Arranged, numbered
from millstream.runtime.over.scans import first_since


class Arrangement:
    """Tuples by partition, and the blocks of a bounded frame."""

    def __init__(self, tuples: pl.DataFrame, partition: Sequence[str], frame: Frame) -> None:
        assert frame.size is not None
        self.tuples, self._frame, self._size = tuples, frame, frame.size
        self.arranged = Arranged.by(numbered(tuples, partition))
        self.order, self.start_of = self.arranged.order, self.arranged.start_of
        places = np.arange(len(self.order))
        if frame.rows:
            self.times = None
            self.blocks = (places - self.start_of) // (self._size + 1)
        else:
            self.times = tuples.get_column(TS).to_numpy()[self.order]
            self.blocks = self.times // (self._size + 1)
        begins = np.zeros(len(places), dtype=np.bool_)
        begins[self.arranged.starts] = True
        begins[1:] |= self.blocks[1:] != self.blocks[:-1]
        self.begins, self.starts = begins, np.flatnonzero(begins)

    def frames(self, asked: Places) -> Ranges:
        """Return the frames of the tuples at these places of the arrangement."""
        if self.times is None:
            return Ranges(self, np.maximum(asked - self._size, self.start_of[asked]), asked)
        return Ranges(self, self._since(asked, self.times[asked] - self._size), asked)

    def remainders(self, asked: Places) -> Ranges:
        """Return what is left of the frames in which these tuples were the oldest, when they leave. Those of which
        nothing is left have a first place after the last."""
        assert self.times is not None
        return Ranges(self, asked + 1, self._since(asked, self.times[asked] + self._size + 1) - 1)

    def _since(self, asked: Places, since: Places) -> Places:
        """Return the first place in the partition of each asked tuple that is not older than `since`."""
        assert self.times is not None
        segment = np.repeat(np.arange(len(self.arranged.starts)), self.arranged.lengths)
        return first_since(self.times, segment, segment[asked], since)


@dataclass(frozen=True, slots=True)
class Ranges:
    """Ranges of an arrangement, both ends inclusive, each within a partition."""

    of: Arrangement
    first: Places
    last: Places

    def merged(self, fold: Fold) -> Arrays:
        """Return the merged values of each range."""
        of = self.of
        values = tuple(value[of.order] for value in fold.lift(of.tuples))
        ahead = tuple(value[self.last] for value in fold.running(values, of.starts))
        whole = of.blocks[self.first] == of.blocks[self.last]
        begins = of.begins[self.first]
        if (whole & begins).all():
            return ahead
        behind = tuple(value[self.first] for value in fold.backwards(values, of.starts))
        both = zip(ahead, behind, fold.merge(behind, ahead), strict=True)
        return tuple(np.where(whole, np.where(begins, a, b), merged) for a, b, merged in both)
