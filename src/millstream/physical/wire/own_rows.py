"""A shard's share of a split whose rows are judged together.

Where a row breaks the order or an ascending column it is late, and then it does not count: whether a later row is late
may depend on that, also on another shard. As a rule nothing is late. Word of the whole split tells that, and each shard
takes its own rows. A key that comes once is closed on every shard, whichever has its row, and a second row with it is
late wherever it goes: there every shard needs all keys.

Where word of the whole does not do, every shard looks at all rows of the split, so that all of them come to the same
result, and keeps its share of what was accepted. Of the rows of other shards it has only the columns by which they are
judged. If it has none of them, or if there was punctuation on other columns, it reads the split again.

Where every shard counts the rows of a stream (`placeholders`), it keeps all of them, and has of most only what decides
whether they count.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import polars as pl

from millstream.algebra.element import Page
from millstream.algebra.values import value
from millstream.ingest.arrivals import PunctuatedRows
from millstream.ingest.paged import Split
from millstream.ingest.placed_punctuations import PlacedPunctuations
from millstream.ingest.source import StreamSource, Taken
from millstream.logical.plan import Key
from millstream.physical.wire.hashing import shard_of

if TYPE_CHECKING:
    from millstream.physical.wire.shard_split import PartialStream, ShardSplit


OWN = "__own"
"""Which of the rows of all shards are this one's."""


@value("share")
@dataclass(frozen=True, slots=True)
class OwnRows:
    """`key`: the shard has the rows whose key hashes to its number; None: all of them. `split`, read with these
    columns, has the rows of all shards; None: it cannot be read again. `partials`: what is read in place of the rows,
    of which the shard has its groups."""

    key: tuple[str, ...] | None
    number: int
    count: int
    split: Split | None
    columns: tuple[str, ...]
    partials: tuple[PartialStream, ...] = ()

    def owned(self, rows: pl.DataFrame) -> npt.NDArray[np.bool_]:
        """Which of these rows are the shard's."""
        return _here(rows, self.key, self.number, self.count)

    def of(self, rows: pl.DataFrame) -> pl.DataFrame:
        return hashed(rows, self.key, self.number, self.count)

    def groups(self, rows: pl.DataFrame) -> Iterator[tuple[str, pl.DataFrame]]:
        """The shard's partial groups of these rows, by stream."""
        for stream in self.partials:
            yield stream.name, hashed(stream.partial.rows(rows), stream.key, self.number, self.count)


def hashed(rows: pl.DataFrame, key: tuple[str, ...] | None, number: int, count: int) -> pl.DataFrame:
    """A shard's part of some rows."""
    everything = key is None or count == 1 or not rows.height
    return rows if everything else rows.filter(pl.Series(_here(rows, key, number, count)))


def _here(rows: pl.DataFrame, key: Key | None, number: int, count: int) -> npt.NDArray[np.bool_]:
    return np.ones(rows.height, dtype=np.bool_) if key is None else shard_of(rows, key, count) == np.uint64(number)


def marked(given: pl.DataFrame | PunctuatedRows) -> tuple[pl.DataFrame, PlacedPunctuations | None]:
    """Rows, and the punctuations among them if there are any."""
    if not isinstance(given, PunctuatedRows):
        return given, None
    assert isinstance(given.rows, pl.DataFrame)
    return given.rows, PlacedPunctuations(given.punctuations, given.positions) if len(given.punctuations) else None


def take_share(source: StreamSource, part: ShardSplit) -> Taken:
    """What a source makes of a part that it can judge, as far as it is this shard's."""
    accepted, late = source.accepted, source.late
    taken = source.take(part.elements(), part.whole)
    if part.whole is not None:
        source.accepted += part.count if part.partials else 0
        return taken
    share = part.share
    elements = [Page(share.of(each.frame)) if isinstance(each, Page) else each for each in taken.elements]
    taken = Taken(elements, share.of(taken.late), taken.bad)
    if share.key is not None or share.number == 0:  # of rows that go to every shard the first one counts them
        accepted += sum(element.tuples for element in elements)
        late += taken.late.height
    source.accepted, source.late = accepted, late
    return taken
