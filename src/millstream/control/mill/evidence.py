"""What the rows at hand would obey: clauses that the source of a stream of files could derive from them.

| clause | obeyed if |
|---|---|
| `ASCENDING (c)` | no value is below the one before it |
| `PRIMARY KEY (c)` | no value comes twice |

They are suggested, never assumed: later rows may break them.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

import polars as pl

from millstream.algebra.schema import FOREVER
from millstream.algebra.types import Type
from millstream.errors import MillstreamError
from millstream.ingest.arrivals import PunctuatedRows
from millstream.ingest.paged import open_paged
from millstream.ingest.paged.formats import FORMATS
from millstream.logical.catalog import StreamDefinition
from millstream.logical.contract.advice import Clause
from millstream.logical.contract.redeclare import ascending, keyed
from millstream.logical.plan import Plan
from millstream.physical.shard.topology import scans

if TYPE_CHECKING:
    from millstream.control.mill.base import Mill

LOOKED_AT = 100_000
"""Most rows of a stream that are looked at."""
_SPLITS = 64


def derivable(mill: Mill, plan: Plan) -> Iterator[Clause]:
    """Yield the clauses that the rows at hand of a plan's streams obey."""
    for name in dict.fromkeys(scan.id.source for scan in scans(plan)):
        stream = mill.catalog.stream(name)
        if stream.options.get("connector", "").lower() in FORMATS:
            yield from _obeyed(stream, _rows(stream))


def _rows(stream: StreamDefinition) -> pl.DataFrame:
    """The first rows of a stream of files; none if they cannot be read."""
    found, count = [stream.schema.empty().select(stream.schema.names)], 0
    try:
        source = open_paged(stream.name, stream.schema, stream.options, stream.required)
        start = source.start()
        end = source.latest(start, FOREVER)
        for split in source.splits(start, end, _SPLITS):
            read = split.read().rows
            rows = read.rows if isinstance(read, PunctuatedRows) else read
            found.append(rows.select(stream.schema.names))
            count += rows.height
            if count >= LOOKED_AT:
                break
    except (MillstreamError, OSError):
        pass
    return pl.concat(found)


def _obeyed(stream: StreamDefinition, rows: pl.DataFrame) -> Iterator[Clause]:
    schema, evidence = stream.schema, f"the {rows.height:,} rows at hand obey it"
    for name in schema.names if rows.height > 1 else ():
        values, type_ = rows.get_column(name), schema.type_of(name)
        if values.null_count() or type_.is_array or type_ is Type.BOOLEAN:
            continue
        rising = type_.is_integer or type_ in (Type.TIMESTAMP, Type.DATE)
        if rising and name != schema.time and name not in stream.ascending and values.is_sorted():
            origin = f"{stream.name} ASCENDING ({name})"
            yield Clause(stream.name, origin, name, 1, evidence, partial(ascending, name=name))
        if not stream.primary_key and values.n_unique() == rows.height:
            origin = f"{stream.name} PRIMARY KEY ({name})"
            yield Clause(stream.name, origin, name, -1, evidence, partial(keyed, name=name))
