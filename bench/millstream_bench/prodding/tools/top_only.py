"""Prodding of one operator, to compare with: the topmost aggregate alone is asked, and what panes hold is missing."""

from __future__ import annotations

import polars as pl

from millstream.algebra.early import parse_prod, query_prod
from millstream.algebra.schema import TS
from millstream.control.job.local import LocalJob
from millstream.control.mill import LocalMill
from millstream.runtime.aggregate.window_aggregate import WindowAggregate


def prod_topmost(mill: LocalMill, text: str) -> pl.DataFrame:
    """What the topmost aggregate of the only query answers to a prod over its own columns if it alone is asked."""
    ((query, placement),) = mill.placements.of.items()
    job = placement.job
    assert isinstance(job, LocalJob)
    found = []
    for label in {label for part in placement.parts for label in part.group.labels}:
        for node in job.host(label).graph.operators.values():
            operator = node.operator
            if isinstance(operator, WindowAggregate):
                rows = operator.early([None], query_prod(parse_prod(text, operator.schema), query))
                found += [] if rows is None else [rows.drop(TS, strict=False)]
    return pl.concat(found) if found else pl.DataFrame()
