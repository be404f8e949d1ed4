"""Addresses of rows on their way from the source through the stages to the driver.

Spark groups rows by `shard`. In a row for the next stage that is the label of the receiving shard. In a row for a later
stage it is the negative number of that stage, with the label in `seq`; the stages in between forward it without
decoding it. The driver counts as the stage after the last one.
"""

from __future__ import annotations

CONTROL, SPLIT, SENT_ROWS, SENT_PUNCTUATIONS = range(4)
"""Kinds of rows for a shard: the control records of the batch, its shares of splits, and elements that other shards
send."""
ROWS, PUNCTUATIONS, STATUS = range(3)
"""Kinds of rows for the driver."""
INPUT = "shard int, seq long, kind int, stream string, head binary, page binary"
OUTPUT = "shard int, query string, kind int, page binary"
"""Columns of the last stage's output; those of all other stages and of the source are `INPUT`."""


def address(label: int, following: int, stage: int) -> tuple[int, int]:
    """Return the columns `shard` and `seq` of a row for a shard in `stage`, sent by the stage before `following`.

    >>> address(7, following=1, stage=1), address(7, following=1, stage=3)
    ((7, 0), (-3, 7))
    """
    return (label, 0) if stage == following else (-stage, label)
