"""The time of the streams that write a table or are joined with it."""

from __future__ import annotations

from millstream.algebra.schema import Schema, TimeKind
from millstream.errors import PlanError
from millstream.lang.tokens import Place


def check_time(schema: Schema, unit: int, table: str, place: Place) -> None:
    """Refuse a stream without time, or with another kind of time than the other streams of the table."""
    if schema.kind is TimeKind.LATENT:
        hint = "declare ORDER BY a time column, or ORDER BY current_time"
        message = f"a stream that writes or reads table '{table}' needs an order of time"
        raise PlanError("M3080", message, hint=hint, **place)
    if schema.unit != unit:
        message = f"table '{table}' is written by streams that count time in another unit"
        raise PlanError("M3080", message, hint="TIMESTAMP and BIGINT times cannot be compared", **place)
