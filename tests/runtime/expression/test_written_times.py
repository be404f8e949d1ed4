"""Columns of timestamps, read as a whole, equal those read one by one."""

from __future__ import annotations

from datetime import datetime, timedelta

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.algebra.types import Type, parse_value
from millstream.runtime.expression.written_times import usual_times
from tests.tries import tries

ODD = [
    "2024-02-30 00:00:00",
    "2023-02-29 00:00:00",
    "2024-13-01 00:00:00",
    "2024-00-01 00:00:00",
    "2024-01-00 00:00:00",
]
ODD += [
    "0000-01-01 00:00:00",
    "2024-01-01 24:00:00",
    "2024-01-01 00:60:00",
    "2024-01-01 23:59:60",
    "2024-1-01  00:00:00",
]
ODD += ["+2024-1-01 00:00:00", "2024-01-01x00:00:00", "２024-01-01 00:00:0", "2024-01-01 00:00:0 ", ""]
MOMENTS = st.datetimes(datetime(1, 1, 1), datetime(9999, 12, 31))


def one(text: str) -> datetime | None:
    try:
        made = parse_value(text, Type.TIMESTAMP)
    except ValueError:
        return None
    assert isinstance(made, datetime)
    return made


@given(
    st.lists(MOMENTS, min_size=1, max_size=20),
    st.integers(0, 7),
    st.sampled_from([(" ", ""), ("T", ""), ("T", "Z")]),
    st.lists(st.sampled_from(ODD), max_size=2),
    st.integers(0, 3),
)
@settings(max_examples=tries(150))
def test_at_once_equals_one_by_one(
    moments: list[datetime], digits: int, form: tuple[str, str], odd: list[str], skipped: int
) -> None:
    separator, zone = form
    texts = [f"{moment.replace(microsecond=0).isoformat(separator)}" for moment in moments]
    if digits:
        texts = [
            f"{text}.{moment.microsecond:06d}0"[: 20 + digits] for text, moment in zip(texts, moments, strict=True)
        ]
    texts = [text + zone for text in texts] + [text.replace(" ", separator) for text in odd]
    found = usual_times(pl.Series(texts, dtype=pl.String).slice(min(skipped, len(texts) - 1)), separator, zone)
    expected = [one(text) if text.endswith(zone) else None for text in texts][min(skipped, len(texts) - 1) :]
    assert found.to_list() == expected


def test_the_ends_of_all_months() -> None:
    days = [datetime(1896, 1, 1) + timedelta(days=at) for at in range(10_000)]
    texts = pl.Series([f"{day:%Y-%m-%d} 00:00:00" for day in days])
    assert usual_times(texts).to_list() == days
