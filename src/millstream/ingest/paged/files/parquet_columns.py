"""The columns of a parquet file that must be read to judge its rows, whatever columns queries need.

Whether a row is bad must not depend on the queries that run. A column can be left out if none of its values can be bad:
its type in the file always fits the declared type, or the statistics of its row groups show that its values do.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from millstream.algebra.schema import Schema
from millstream.ingest.fitting import Fit, bounds, fit
from millstream.ingest.paged.files.formats import File, positions, unreadable


class Columns(NamedTuple):
    names: dict[str, str]
    """The file's names of the schema's columns."""
    doubtful: tuple[str, ...]
    """The columns of the schema that may have a value that does not fit."""


@lru_cache(maxsize=10_000)
def columns_of(file: File, schema: Schema) -> Columns:
    try:
        types = pl.read_parquet_schema(file.path)
    except (OSError, pl.exceptions.PolarsError) as error:
        raise unreadable(file, str(error).splitlines()[0]) from error
    columns = list(types)
    names = {name: columns[at] for name, at in positions(file, columns, schema).items()}
    fits = {a.name: fit(types[names[a.name]], a.type) for a in schema}
    ranged = {a.name: known for a in schema if (known := bounds(types[names[a.name]], a.type)) is not None}
    ranged = {name: known for name, known in ranged.items() if fits[name] is Fit.IN_RANGE and name != schema.time}
    inside = _inside(file, {names[name]: known for name, known in ranged.items()}) if ranged else frozenset()
    sure = {name for name in fits if fits[name] is Fit.ALWAYS or names[name] in inside}
    return Columns(names, tuple(name for name in fits if name not in sure))


def _inside(file: File, limits: Mapping[str, tuple[int, int]]) -> frozenset[str]:
    """Return the columns of which all row groups have statistics within the limits."""
    try:
        held = pq.read_metadata(file.path)
    except (OSError, pa.ArrowException) as error:
        raise unreadable(file, str(error).splitlines()[0]) from error
    places = {held.schema.column(at).path: at for at in range(held.num_columns)}
    groups = [held.row_group(at) for at in range(held.num_row_groups)]
    return frozenset(
        name
        for name, (lowest, highest) in limits.items()
        if name in places and all(_within(group.column(places[name]), lowest, highest) for group in groups)
    )


def _within(chunk: Any, lowest: int, highest: int) -> bool:
    known = chunk.statistics
    if known is None:
        return False
    if known.has_null_count and known.null_count == chunk.num_values:
        return True
    if not known.has_min_max or chunk.physical_type not in ("INT32", "INT64"):
        return False
    return bool(lowest <= known.min_raw and known.max_raw <= highest)
