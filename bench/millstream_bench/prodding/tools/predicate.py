"""A costly predicate: whether a word is in a text, searched from its beginning each time."""

from __future__ import annotations

import polars as pl

import millstream as ms

WORDS = "CREATE STREAM words (ts BIGINT, word VARCHAR) PUNCTUATED ON (ts +)"
COUNTED = (
    "SELECT window_end, COUNT(*) AS n, finality, revision "
    "FROM EXPENSIVE(TABLE words, found_in(word) AS found, budget => {budget}) [RANGE {range} SLIDE {slide} ON ts] "
    "WHERE found"
)
"""The number of words of a window that are in the text."""


def register(mill: ms.Connection, text: str) -> None:
    """Register the predicate `found_in`."""

    def found_in(word: pl.Series) -> pl.Series:
        return pl.Series([each in text for each in word], dtype=pl.Boolean)

    mill.function(found_in, name="found_in", arguments=["VARCHAR"], returns="BOOLEAN", vectorized="polars")
