"""How rows are addressed on their way from the source through the stages to the driver.

Spark groups rows by `shard`. For the shards of the next stage that is their label. A row for anybody further on goes
under the negative number of the stage that it is for (the driver comes after the last one), with the label in `seq`;
the stages in between pass it on unopened.
"""

from __future__ import annotations

CONTROL, PART, SENT_ROWS, SENT_PUNCTUATIONS = range(4)
"""Kinds of rows for a shard: what it hears first in a batch, parts of streams, and what other shards send."""
ROWS, PUNCTUATIONS, STATUS = range(3)
"""Kinds of rows for the driver."""
INPUT = "shard int, seq long, kind int, stream string, head binary, page binary"
OUTPUT = "shard int, query string, kind int, page binary"
"""What the last stage puts out."""


def address(label: int, following: int, stage: int) -> tuple[int, int]:
    """The columns `shard` and `seq` of a row for a shard in `stage`, sent by the one before the stage `following`.

    >>> address(7, following=1, stage=1), address(7, following=1, stage=3)
    ((7, 0), (-3, 7))
    """
    return (label, 0) if stage == following else (-stage, label)
