"""The times of the streams of one FROM, which windows over several streams compare."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from millstream.algebra.expression import Column
from millstream.algebra.schema import TimeKind
from millstream.algebra.types import Type
from millstream.logical.bind.scope import Entry
from millstream.logical.contract.names import time_units
from millstream.logical.join.graph import ENTRY_TIME


def times_of(entry: Entry) -> dict[str, int]:
    """Return the columns of a stream that are its time plus a constant, under their names in the whole FROM, with the
    constants; none if the time is not a column's."""
    offsets = entry.schema.times if entry.schema.kind is TimeKind.EXTERNAL else {}
    return {f"{entry.alias}.{name}": offset for name, offset in offsets.items()}


def times_of_parts(members: Iterable[Entry], lags: Mapping[str, int]) -> list[tuple[dict[str, int], int]]:
    """Return the times and lags of the streams of a result whose lag is known."""
    return [(times_of(member), lags[member.alias]) for member in members if member.alias in lags]


def any_time_of(entry: Entry) -> Column:
    """Return the time column, or the visible copy of the hidden timestamp."""
    time = entry.schema.time
    if time is not None:
        return Column(entry.schema.type_of(time), f"{entry.alias}.{time}")
    type_ = Type.BIGINT if entry.schema.unit == 1 else Type.TIMESTAMP
    return Column(type_, f"{entry.alias}.{ENTRY_TIME}")


def same_units(members: tuple[Entry, ...], newcomer: Entry) -> None:
    """Refuse streams whose times have different units, which neither a window nor a sequence can compare."""
    hint = "Both time columns have to be TIMESTAMP, or both BIGINT; a stream without one counts as TIMESTAMP."
    for entry in (*members, newcomer):
        if len(_units(entry)) > 1:
            raise entry.fail("M3009", f"'{entry.alias}' has tuples that count time in different units", hint)
        if _units(entry) != _units(newcomer):
            message = f"'{entry.alias}' and '{newcomer.alias}' count time in different units"
            raise newcomer.fail("M3009", message, hint)


def _units(entry: Entry) -> frozenset[int]:
    return frozenset() if entry.plan is None else time_units(entry.plan)
