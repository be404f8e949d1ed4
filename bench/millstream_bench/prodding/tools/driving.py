"""Runs a query over deliveries in process, in virtual time: each result has the time of the delivery that led to it."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import polars as pl

import millstream as ms
from millstream_bench.prodding.tools.streamer import PROD, Delivery, Floats


def drive(
    declared: str, query: str, deliveries: Iterable[Delivery], *, stream: str = "s", time: str = "ts"
) -> pl.DataFrame:
    """All rows of the query, with the time `at` of their production."""
    found: list[pl.DataFrame] = []
    with ms.connect(local=True) as mill:
        mill.sql(declared)
        running = mill.sql(query).start(name="q")
        for delivery in deliveries:
            feed(mill, delivery, stream, time)
            if delivery.control is not None:
                rows = running.take()
                if rows.height:
                    found.append(rows.with_columns(pl.lit(float(delivery.at)).alias("at")))
    return pl.concat(found)


def feed(mill: ms.Connection, delivery: Delivery, stream: str = "s", time: str = "ts") -> None:
    if delivery.rows is not None:
        mill.insert(stream, delivery.rows)
    elif delivery.control is not None and delivery.control.kind == PROD:
        mill.prod(stream, delivery.control.text(time))
    elif delivery.control is not None:
        mill.punctuate(stream, delivery.control.text(time))


def first_arrivals(times: Floats, due: Floats, range_: int, slide: int) -> pl.DataFrame:
    """For each window, by its end, the time at which its first tuple was delivered (`first`)."""
    parts = []
    for place in range(-(-range_ // slide)):
        end = (times // slide + 1 + place) * slide
        inside = end - range_ <= times
        parts.append(pl.DataFrame({"window_end": end[inside].astype(np.int64), "first": due[inside]}))
    return pl.concat(parts).group_by("window_end").agg(pl.col("first").min()).sort("window_end")
