"""A shard's own rows of a split whose rows are judged together.

A row that breaks the order or an ascending column is late, and a late row does not count: whether a later row is late
may depend on it, on another shard too. As a rule no row is late. A summary of the split shows that, and each shard
takes its own rows. A primary key value is closed on every shard, whichever has its row, and a second row with it is
late on any shard: there every shard needs all keys.

Where the summary is not enough, every shard judges all rows of the split, so that all shards come to the same result,
and keeps its own among the accepted ones. Of the rows of other shards it has only the columns that decide. If it has
none of those rows, or if punctuation restricts other columns, it reads the split again.

Where every shard counts the rows of a stream (`plan.placeholders`), it keeps all of them; most have only the columns
that decide whether they count.

Rows that no reader of the stream wants (`unwanted`) are judged like all others, and are dropped then, if they are there
at all.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import polars as pl

from millstream.algebra.element import Element, Page
from millstream.algebra.punctuation.pattern import Pattern
from millstream.algebra.values import value
from millstream.ingest.paged import Split
from millstream.ingest.paged.wanted import unwanted_rows
from millstream.ingest.source import StreamSource, Taken
from millstream.logical.plan import Key
from millstream.physical.wire.hashing import shard_of

if TYPE_CHECKING:
    from millstream.physical.wire.shard_split import PartialStream, ShardSplit


OWN = "__own"
"""Boolean column: true where a row of the split is this shard's own."""


@value("share")
@dataclass(frozen=True, slots=True)
class OwnRows:
    """`key`: the shard owns the rows whose key hashes to its `number` among `count`; None: all rows. `split`, read with
    `columns`, has the rows of all shards; None: it cannot be read again. `partials`: partial streams that are read in
    place of the rows. `unwanted`: rows that match one of these patterns are dropped once they are judged."""

    key: tuple[str, ...] | None
    number: int
    count: int
    split: Split | None
    columns: tuple[str, ...]
    partials: tuple[PartialStream, ...] = ()
    unwanted: tuple[Pattern, ...] = ()

    def owned(self, rows: pl.DataFrame) -> npt.NDArray[np.bool_]:
        """Return the mask of the shard's rows among these."""
        return _is_here(rows, self.key, self.number, self.count)

    def among(self, rows: pl.DataFrame) -> pl.DataFrame:
        return hashed(rows, self.key, self.number, self.count)

    def wanted(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Those of the rows that a reader wants."""
        if not self.unwanted or not rows.height:
            return rows
        match = unwanted_rows(rows, self.unwanted)
        return rows.filter(pl.Series(~match)) if match.any() else rows

    def groups(self, stream: PartialStream, rows: pl.DataFrame) -> pl.DataFrame:
        """The shard's partial groups of these rows."""
        return hashed(stream.partial.rows(rows), stream.key, self.number, self.count)


def hashed(rows: pl.DataFrame, key: tuple[str, ...] | None, number: int, count: int) -> pl.DataFrame:
    """The rows that hash to a shard's number."""
    everything = key is None or count == 1 or not rows.height
    return rows if everything else rows.filter(pl.Series(_is_here(rows, key, number, count)))


def _is_here(rows: pl.DataFrame, key: Key | None, number: int, count: int) -> npt.NDArray[np.bool_]:
    return np.ones(rows.height, dtype=np.bool_) if key is None else shard_of(rows, key, count) == np.uint64(number)


def take_own_rows(source: StreamSource, split: ShardSplit) -> Taken:
    """Pass a split that the source can judge through it, and return the shard's own part of the result."""
    accepted, late = source.accepted, source.late
    taken = source.take(split.elements(), split.summary, unordered=split.unordered)
    own = split.own
    if split.summary is not None:
        if own.key is None and own.number and not split.partials:
            source.accepted = accepted  # rows that go to every shard
        absent = split.skipped.rows if split.absent else 0
        source.accepted += split.count if split.partials else absent
        clean = not own.unwanted or (split.absent and not split.unordered)
        return taken if clean else replace(taken, elements=_wanted(own, taken.elements))
    elements = [Page(own.among(each.frame)) if isinstance(each, Page) else each for each in taken.elements]
    taken = Taken(elements, own.among(taken.late), taken.bad)
    if own.key is not None or own.number == 0:  # the first shard counts rows that go to every shard
        accepted += sum(element.tuples for element in elements)
        late += taken.late.height
    source.accepted, source.late = accepted, late
    return taken if not own.unwanted else replace(taken, elements=_wanted(own, elements))


def _wanted(own: OwnRows, elements: list[Element]) -> list[Element]:
    return [Page(own.wanted(each.frame)) if isinstance(each, Page) else each for each in elements]
