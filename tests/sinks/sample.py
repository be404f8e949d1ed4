"""A query's schema and rows of it."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import polars as pl

from millstream.algebra.punctuation.pattern import Pattern
from millstream.algebra.punctuation.restriction import below
from millstream.algebra.schema import TS, Schema
from millstream.algebra.types import Type

HOT = Schema.of(("auction", Type.BIGINT), ("item", Type.VARCHAR), ("price", Type.DOUBLE), ("ts", Type.TIMESTAMP))
COUNTS = Schema.of(("n", Type.BIGINT))
NOON = datetime(2024, 1, 2, 12)
BEFORE_NOON = Pattern.of(ts=below(NOON))


def frame(schema: Schema, *rows: tuple[Any, ...]) -> pl.DataFrame:
    return pl.DataFrame(list(rows), schema=schema.empty().drop(TS).schema, orient="row")


def hot(*auctions: int) -> pl.DataFrame:
    return frame(HOT, *((auction, "lamp", 2.5, NOON) for auction in auctions))
