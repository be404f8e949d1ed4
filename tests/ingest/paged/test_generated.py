"""Generators as sources: cuts into batches and splits do not change the rows, and mistakes are named."""

from __future__ import annotations

import json
import pickle
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.algebra.schema import Schema, TimeKind
from millstream.algebra.types import MICROS, Type
from millstream.errors import BindError, MillstreamError, OptionError
from millstream.ingest.arrivals import PunctuatedRows, gather
from millstream.ingest.paged import generated
from millstream.ingest.paged.base import PagedSource, open_paged
from tests.ingest.generators.test_generators import generator
from tests.tries import tries

BIDS = Schema.of(
    ("price", Type.DOUBLE), ("auction", Type.BIGINT), ("ts", Type.TIMESTAMP), kind=TimeKind.EXTERNAL, time="ts"
)
RATE = Schema.of(("value", Type.BIGINT), ("ts", Type.TIMESTAMP), kind=TimeKind.EXTERNAL, time="ts")


def opened(name: str = "bids", schema: Schema = BIDS, connector: str = "nexmark", **options: Any) -> PagedSource:
    given = {"connector": connector} | {option: str(value) for option, value in options.items()}
    return open_paged(name, schema, given, ["ts"])


def elements(source: PagedSource, parallelism: int, columns: list[str] | None = None) -> list[PunctuatedRows]:
    made, offset = [], source.start()
    while (end := json.loads(json.dumps(source.latest(offset, 0)))) != offset:
        for split in pickle.loads(pickle.dumps(source.splits(offset, end, parallelism))):
            read = split.read(columns)
            assert read.bad.is_empty() and isinstance(read.rows, PunctuatedRows)
            made.append(read.rows)
        offset = end
    assert source.ended(offset) and source.behind(offset) == 0
    return made


@settings(max_examples=tries(25))
@given(st.integers(1, 4000), st.integers(100, 5000), st.integers(1, 4), st.sampled_from(["auction", "time", "none"]))
def test_cuts_make_no_difference(events: int, limit: int, parallelism: int, punctuation: str) -> None:
    worth, generated.WORTH = generated.WORTH, 50
    try:
        source = opened(events=events, max_rows_per_trigger=limit, punctuation=punctuation)
        got = gather(elements(source, parallelism), BIDS, ["ts"])
    finally:
        generated.WORTH = worth
    made = generator("nexmark", {"events": str(events), "punctuation": punctuation}).make("bid", 0, events)
    assert got.rows.equals(made.rows.select(pl.col("price").cast(pl.Float64), "auction", "ts"))
    assert got.placed.positions.tolist() == list(made.positions)
    assert got.placed.punctuations.patterns() == made.punctuations.patterns()


def test_columns_that_are_not_read_are_neither_made_nor_punctuated() -> None:
    source = opened(events=5000, punctuation="auction,time")
    whole = gather(elements(source, 1), BIDS)
    some = elements(source, 1, ["ts", "price"])
    assert gather(some, Schema.of(("price", Type.DOUBLE), ("ts", Type.TIMESTAMP))).rows.equals(
        whole.rows.select("price", "ts")
    )
    assert 0 < sum(len(made.punctuations) for made in some) < len(whole.placed)
    assert sum(made.rows.height for made in elements(source, 1, [])) == whole.rows.height
    with pytest.raises(BindError, match="unknown column 'nope'"):
        source.splits({"event": 0}, {"event": 1}, 1)[0].read(["nope"])


def test_splits_have_a_least_size() -> None:
    source = opened(max_rows_per_trigger=1_000_000)
    start = source.start()
    end = source.latest(start, 0)
    assert [len(source.splits(start, end, wanted)) for wanted in (1, 2, 4, 9)] == [1, 2, 4, 5]
    assert source.splits(end, end, 4) == []
    assert not source.ended(end) and source.behind(end) is None


def test_replay_follows_the_clock() -> None:
    source = opened("rate", RATE, "rate", rate=10, speed="2", events=100, max_rows_per_trigger=50)
    offset = source.start()
    offset = source.latest(offset, 7 * MICROS)
    assert offset == {"event": 1, "anchor": [7 * MICROS, 0]}
    assert source.latest(offset, 7 * MICROS) is offset
    offset = source.latest(offset, 8 * MICROS)
    assert offset["event"] == 21  # two seconds of ten events each, and the one at their end
    assert source.latest(offset, 99 * MICROS)["event"] == 71


def test_the_stream_is_found_by_its_name_or_by_the_option() -> None:
    seller = Schema.of(("seller", Type.BIGINT), ("ts", Type.TIMESTAMP), kind=TimeKind.EXTERNAL, time="ts")
    for name, options in (("auction", {}), ("Auctions", {}), ("offers", {"stream": "auction"})):
        source = opened(name, seller, events=100, **options)
        assert sum(made.rows.height for made in elements(source, 1)) == 6
    assert elements(opened("ticks", RATE, "rate", events=3), 1)[0].rows["value"].to_list() == [0, 1, 2]


def test_traffic_is_a_connector_too() -> None:
    source = opened(
        next(iter(generator("traffic", {}).streams)), RATE.with_attributes(RATE.attributes[1:]), "traffic", events=50
    )
    assert elements(source, 1, ["ts"])


@pytest.mark.parametrize(
    ("make", "kind", "words"),
    [
        (lambda: opened("sales"), BindError, r"M2002: no stream 'sales' is generated\n.*option 'stream'"),
        (
            lambda: opened(schema=Schema.of(("prize", Type.DOUBLE))),
            BindError,
            r"M2001: generated stream 'bid' has no column 'prize'\n.*did you mean 'price'",
        ),
        (
            lambda: opened(schema=Schema.of(("ts", Type.BIGINT))),
            BindError,
            r"M2006: column 'ts' of generated stream 'bid' is of type TIMESTAMP, not BIGINT\n.*ts TIMESTAMP",
        ),
        (lambda: opened(evnets="5"), OptionError, r"M6001: unknown option 'evnets'\n.*did you mean 'events'"),
        (lambda: opened(max_rows_per_trigger="many"), OptionError, "M6002: option 'max_rows_per_trigger'"),
        (lambda: opened(speed="-1"), OptionError, "M6002: option 'speed'"),
    ],
)
def test_mistakes_are_named(make: Any, kind: type[MillstreamError], words: str) -> None:
    with pytest.raises(kind, match=words):
        make()
