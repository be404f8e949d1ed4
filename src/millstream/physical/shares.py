"""A shard's share of a piece whose rows are judged together.

Where a column is declared to ascend, a row that falls below an earlier one is late, and then it does not count: whether
a later row is late may depend on that, also on another shard. As a rule nothing falls. Word of the whole piece tells
that, and each shard takes its own rows. A key that comes once is closed on every shard, whichever has its row, and a
second row with it is late wherever it goes: there every shard needs all keys.

Where word of the whole does not do, every shard looks at all rows of the piece, so that all of them come to the same
result, and keeps its share of what was accepted. Of the rows of other shards it has only the columns by which they are
judged. If there was punctuation on others, it reads the piece again.

Where every shard counts the rows of a stream (`placeholders`), it keeps all of them, and has of most only what decides
whether they count.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import polars as pl

from millstream.algebra.values import value
from millstream.ingest.arrivals import PunctuatedRows
from millstream.ingest.marks import Marks
from millstream.ingest.source import StreamSource, Taken
from millstream.physical.hashing import shard_of

if TYPE_CHECKING:
    from millstream.ingest.paged import Piece
    from millstream.physical.parts import Part


OWN = "__own"
"""Which of the rows of all shards are this one's."""


@value("share")
@dataclass(frozen=True, slots=True)
class Share:
    """`key`: the shard has the rows whose key hashes to its number; None: all of them. `rows`: how many these are.
    `piece`, read with these columns, has the rows of all shards; None: all of them are here."""

    key: tuple[str, ...] | None
    number: int
    count: int
    rows: int
    piece: Piece | None = None
    columns: tuple[str, ...] = ()

    def of(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Those of these rows that are the shard's."""
        if self.key is None or self.count == 1 or not rows.height:
            return rows
        return rows.filter(pl.Series(shard_of(rows, self.key, self.count) == self.number))


def with_all(part: Part, share: Share) -> Part:
    """A part with the rows of all shards."""
    if share.piece is None:
        return filled(part, share)
    rows, marks = marked(share.piece.read(share.columns).rows)
    whole, all_here = replace(part.whole, before=None), replace(share, piece=None)
    return replace(part, rows=rows, whole=whole, marks=marks, share=all_here, common=None)


def filled(part: Part, share: Share) -> Part:
    """A part with the rows of all shards, as far as they are here: NULL stands for what only their own shard has."""
    if part.common is None:
        return part
    common, rest = part.common.drop(OWN), part.rows.drop(part.common.columns, strict=False)
    own = part.common.get_column(OWN)
    place = pl.select(pl.when(own).then(own.cast(pl.Int64).cum_sum() - 1)).to_series()
    rows = common.hstack(rest.select(pl.all().gather(place))).select(part.rows.columns)
    return replace(part, rows=rows, share=replace(share, piece=None), common=None)


def marked(given: pl.DataFrame | PunctuatedRows) -> tuple[pl.DataFrame, Marks | None]:
    """Rows, and the punctuations among them if there are any."""
    if not isinstance(given, PunctuatedRows):
        return given, None
    assert isinstance(given.rows, pl.DataFrame)
    return given.rows, Marks(given.punctuations, given.positions) if len(given.punctuations) else None


def take_share(source: StreamSource, part: Part, share: Share) -> Taken:
    """What a source makes of a piece, as far as it is this shard's."""
    if part.common is None and share.piece is not None and source.fits(part.whole):
        return source.take(part.elements(), part.whole)
    counted = source.accepted, source.late
    enough = part.common is not None and source.judges(part.common.columns)
    taken = source.take((filled if enough else with_all)(part, share).elements())
    elements = [share.of(element) if isinstance(element, pl.DataFrame) else element for element in taken.elements]
    late = share.of(taken.late)
    source.accepted = counted[0] + sum(element.height for element in elements if isinstance(element, pl.DataFrame))
    source.late = counted[1] + late.height
    return Taken(elements, late, taken.bad)
