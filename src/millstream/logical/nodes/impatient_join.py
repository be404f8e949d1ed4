"""A join that tells its right side which keys the left side holds: their tuples are wanted first.

That is desired feedback, which drops nothing and mounts no guard; readers remember the latest messages of it alone. In
contracts, whose feedback is assumed feedback, it therefore sends none.
"""

from __future__ import annotations

from dataclasses import dataclass

from millstream.logical.nodes.kinds.windowed import TwoWindowed


@dataclass(frozen=True, slots=True)
class ImpatientJoin(TwoWindowed):
    stem = "impatient_join"
