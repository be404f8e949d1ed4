"""Deliveries as a file: a row for each tuple, prod and punctuation, in the order of delivery."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import polars as pl

from millstream_bench.prodding.tools.streamer import TUPLES, Control, Delivery


def write(deliveries: Iterable[Delivery], path: Path) -> Path:
    parts = []
    for number, delivery in enumerate(deliveries):
        control = delivery.control
        rows = pl.DataFrame({"ts": [0]}) if delivery.rows is None else delivery.rows
        kind, end = (TUPLES, 0) if control is None else (control.kind, control.end)
        marks = {"_at": float(delivery.at), "_kind": kind, "_end": end, "_number": number}
        parts.append(rows.with_columns(pl.lit(value).alias(name) for name, value in marks.items()))
    pl.concat(parts, how="diagonal").write_parquet(path)
    return path


def read(path: Path) -> list[Delivery]:
    made = []
    for part in pl.read_parquet(path).partition_by("_number", maintain_order=True):
        at, kind, end = part.select("_at", "_kind", "_end").row(0)
        rows = part.select(pl.exclude("^_.*$"))
        made.append(Delivery(at, rows) if kind == TUPLES else Delivery(at, control=Control(at, end, kind)))
    return made
