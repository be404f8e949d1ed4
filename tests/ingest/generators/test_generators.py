"""Generators: independent of cuts, with the benchmark's proportions, and consistent with their punctuation."""

from __future__ import annotations

from datetime import datetime
from itertools import pairwise

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.algebra.clock import VirtualClock
from millstream.algebra.punctuation.pattern import Pattern
from millstream.errors import BindError, OptionError
from millstream.ingest.arrivals import PunctuatedRows
from millstream.ingest.generators.base import Generator
from millstream.ingest.paged import SOURCES
from millstream.ingest.paged.generated import Generated
from millstream.ingest.source import StreamSource
from millstream.logical.catalog import StreamDefinition
from tests.paths import DOCS
from tests.tries import tries

CASES: list[tuple[str, dict[str, str]]] = [
    ("nexmark", {}),
    ("nexmark", {"punctuation": "auction, time", "punctuate_every": "10 ms", "auction_duration": "10 ms"}),
    ("nexmark", {"punctuation": "auction, time", "rate": "7", "auction_duration": "1 minute", "seed": "-3"}),
    ("nexmark", {"events": "3000", "rate": "3000000", "punctuation": "auction, time", "punctuate_every": "3 us"}),
    ("traffic", {}),
    ("traffic", {"punctuation": "time, segment, probe", "faulty": "0.25", "congestion": "1"}),
    (
        "traffic",
        {
            "freeways": "2",
            "segments": "3",
            "detectors": "2",
            "sensor_period": "7 seconds",
            "probes": "11",
            "probe_period": "13 seconds",
            "punctuate_every": "10 seconds",
            "punctuation": "time, segment, probe",
            "events": "3000",
        },
    ),
    ("rfid", {}),
    (
        "rfid",
        {"tags": "3", "repeats": "7", "interval": "700 ms", "noise": "0.5", "readers": "4", "punctuation": "time"},
    ),
    ("rfid", {"tags": "1", "repeats": "1", "events": "3000", "punctuation": "time", "punctuate_every": "3 seconds"}),
    ("rate", {"punctuation": "time", "rate": "3", "events": "3000"}),
    ("rate", {"punctuation": "time", "punctuate_every": "1 minute", "rate": "1000"}),
]
IDS = [f"{name} {at}" for at, (name, _) in enumerate(CASES)]


def opener(name: str) -> Generated:
    found = SOURCES.get(name)
    assert isinstance(found, Generated)
    return found


def generator(name: str, options: dict[str, str]) -> Generator:
    return opener(name).generator(options)


def concatenated(parts: list[PunctuatedRows]) -> tuple[pl.DataFrame, list[Pattern], list[int]]:
    starts = np.cumsum([0, *(part.rows.height for part in parts)]).tolist()
    positions = [start + at for start, part in zip(starts, parts, strict=False) for at in part.positions.tolist()]
    patterns = [pattern for part in parts for pattern in part.punctuations.patterns()]
    return pl.concat([part.rows for part in parts]), patterns, positions


@pytest.mark.parametrize(("name", "options"), CASES, ids=IDS)
@settings(max_examples=tries(25))
@given(data=st.data())
def test_cuts_do_not_matter(name: str, options: dict[str, str], data: st.DataObject) -> None:
    first = data.draw(st.sampled_from([0, 1, 2990, 10**6, 10**9]) | st.integers(0, 4000))
    length = data.draw(st.integers(0, 3500))
    cuts = sorted(data.draw(st.lists(st.integers(first, first + length), max_size=6)))
    edges = [first, *cuts, first + length]
    one, other = generator(name, options), generator(name, options)
    for stream in one.streams:
        whole = concatenated([one.make(stream, first, first + length)])
        parts = [other.make(stream, low, high) for low, high in pairwise(edges)]
        again = concatenated(parts)
        assert whole[0].equals(again[0])
        assert whole[1:] == again[1:]


@pytest.mark.parametrize(("name", "options"), CASES, ids=IDS)
def test_rows_fit_the_schema_and_break_no_promise(name: str, options: dict[str, str]) -> None:
    made = generator(name, options)
    for stream, schema in made.streams.items():
        source = StreamSource(StreamDefinition(stream, schema), VirtualClock(0))
        total = 0
        for first in range(0, 6000, 700):
            part = made.make(stream, first, first + 700)
            assert part.rows.schema == {a.name: a.type.polars for a in schema}
            assert part.rows.null_count().sum_horizontal().item() == 0
            source.take([part])
            total += part.rows.height
        assert (source.accepted, source.late, source.bad) == (total, 0, 0)


@pytest.mark.parametrize(("name", "options"), CASES, ids=IDS)
def test_every_event_is_one_row_and_times_ascend(name: str, options: dict[str, str]) -> None:
    made = generator(name, options)
    before = 0
    for number in (*range(100), *range(400, 470), *range(2_900, 2_960)):
        heights = {stream: made.make(stream, number, number + 1).rows for stream in made.streams}
        rows = [frame for frame in heights.values() if frame.height]
        assert len(rows) == 1 and rows[0].height == 1
        time = made.event_time(number)
        assert rows[0]["ts"].to_physical().to_list() == [time]
        assert time >= before
        before = time


def nexmark(**options: str) -> Generator:
    return generator("nexmark", options)


def test_nexmark_proportions() -> None:
    made = nexmark()
    heights = [made.make(stream, 150, 5150).rows.height for stream in ("person", "auction", "bid")]
    assert heights == [100, 300, 4600]
    bids = made.make("bid", 500_000, 1_000_000).rows
    counts = bids.group_by("auction").len()["len"].sort(descending=True)
    assert 0.48 < counts.filter(counts > 150).sum() / bids.height < 0.56
    steady = nexmark(hot_auctions="1", hot_bidders="1").make("bid", 500_000, 1_000_000).rows
    assert steady.group_by("auction").len()["len"].max() < 200
    assert steady["bidder"].n_unique() > 10_000
    decades = bids["price"].log10().floor().cast(pl.Int64).value_counts()
    assert decades["price"].sort().to_list() == [2, 3, 4, 5, 6, 7]
    assert decades["count"].min() > bids.height / 6 * 0.97


@pytest.mark.parametrize("options", [{}, {"auction_duration": "10 ms"}, {"auction_duration": "20 s"}], ids=str)
def test_nexmark_bids_go_to_open_auctions(options: dict[str, str]) -> None:
    made, events = nexmark(**options), 600_000
    auctions = made.make("auction", 0, events).rows
    persons = made.make("person", 0, events).rows
    bids = made.make("bid", 0, events).rows
    assert auctions["id"].to_list() == list(range(1000, 1000 + auctions.height))
    assert persons["id"].to_list() == list(range(1000, 1000 + persons.height))
    pairs = bids.join(auctions, left_on="auction", right_on="id", suffix="_opened")
    assert pairs.height == bids.height
    assert pairs.select(((pl.col("ts") > pl.col("ts_opened")) & (pl.col("ts") < pl.col("expires"))).all()).item()
    bidders = bids.join(persons, left_on="bidder", right_on="id", suffix="_joined")
    assert bidders.height == bids.height and (bidders["ts"] > bidders["ts_joined"]).all()
    sellers = auctions.join(persons, left_on="seller", right_on="id", suffix="_joined")
    assert sellers.height == auctions.height and (sellers["ts"] > sellers["ts_joined"]).all()


def test_nexmark_bids_continue_until_an_auction_closes() -> None:
    made = nexmark(hot_auctions="1")
    auctions, bids = made.make("auction", 0, 100_000).rows, made.make("bid", 0, 100_000).rows
    last = auctions.join(
        bids.group_by("auction").agg(pl.col("ts").max().alias("last")), left_on="id", right_on="auction"
    )
    unused = (pl.col("expires") - pl.col("last")).dt.total_microseconds() / (
        pl.col("expires") - pl.col("ts")
    ).dt.total_microseconds()
    assert last.head(1000).select(unused.mean()).item() < 0.1


def test_nexmark_closings() -> None:
    """Every auction closes exactly once, when it expires, after its last bid; the last ones at the end."""
    events = 100_000
    made = nexmark(events=str(events))
    bids, auctions = made.make("bid", 0, 10**7), made.make("auction", 0, 10**7).rows
    closed = pl.DataFrame(
        {
            "auction": [pattern.get("auction").values[0] for pattern in bids.punctuations.patterns()],
            "position": bids.positions,
        }
    )
    assert sorted(closed["auction"]) == auctions["id"].to_list()
    numbered = bids.rows.with_row_index("at")
    late = numbered.join(closed, on="auction").filter(pl.col("at") >= pl.col("position"))
    assert late.height == 0
    inside = closed.filter(pl.col("position") < bids.rows.height).join(auctions, left_on="auction", right_on="id")
    following = bids.rows["ts"].gather(inside["position"])
    preceding = bids.rows["ts"].gather(inside["position"] - 1)
    assert ((preceding < inside["expires"]) & (inside["expires"] <= following)).all()
    assert 50 < closed.filter(pl.col("position") == bids.rows.height).height < 150


def test_nexmark_without_columns_or_punctuation() -> None:
    made = nexmark(columns="auction, price")
    assert {stream: schema.names for stream, schema in made.streams.items()} == {
        "person": ("ts",),
        "auction": ("ts",),
        "bid": ("auction", "price", "ts"),
    }
    whole = nexmark().make("bid", 0, 5000).rows
    assert made.make("bid", 0, 5000).rows.equals(whole.select("auction", "price", "ts"))
    assert len(nexmark(columns="price").make("bid", 0, 10_000).punctuations) == 0
    assert len(nexmark(punctuation="none").make("bid", 0, 10_000).punctuations) == 0
    assert not nexmark(seed="1").make("bid", 0, 5000).rows.equals(whole)


def test_nexmark_texts() -> None:
    made = nexmark()
    person = made.make("person", 0, 50_000).rows
    assert person["credit_card"].str.contains(r"^\d{4}( \d{4}){3}$").all()
    assert person["email_address"].str.contains(r"^[a-z.]+@[a-z]{3}\.example$").all()
    bids = made.make("bid", 0, 100_000).rows
    hot = bids["channel"].is_in(["Apple", "Google", "Facebook", "Baidu"])
    assert 0.49 < hot.mean() < 0.51
    assert bids["url"].str.contains("channel_id=").filter(~hot).mean() > 0.85


def test_traffic_of_a_day() -> None:
    """Five freeways of ten segments with three detectors each, every 20 seconds, and fifty probes every 5 minutes."""
    day = 648_000 + 14_400
    made = generator("traffic", {"events": str(day)})
    sensors, probes = made.make("sensors", 0, day), made.make("probes", 0, day)
    assert (sensors.rows.height, probes.rows.height) == (648_000, 14_400)
    assert len(sensors.punctuations) == len(probes.punctuations) == 1_440
    assert sensors.rows.select(pl.col("sensor_id", "segment", "freeway_id", "milepost").n_unique()).row(0) == (
        150,
        50,
        5,
        10,
    )
    assert sensors.rows.group_by("sensor_id").len()["len"].unique().to_list() == [4_320]
    assert sensors.rows["speed"].is_between(3, 80).all() and sensors.rows["occupancy"].is_between(0, 100).all()
    hour = pl.col("ts").dt.hour()
    speed = sensors.rows.group_by(hour).agg(pl.col("speed").mean()).sort("ts")["speed"]
    assert speed[8] < speed[3] - 5
    means = [
        frame.group_by("segment", hour).agg(pl.col("speed").mean(), pl.len()) for frame in (sensors.rows, probes.rows)
    ]
    both = means[0].join(means[1].filter(pl.col("len") > 5), on=["segment", "ts"])
    assert both.height > 300 and both.select(pl.corr("speed", "speed_right")).item() > 0.7


def test_traffic_options() -> None:
    free = generator("traffic", {"congestion": "0"}).make("sensors", 0, 600_000).rows
    assert free["speed"].min() > 45
    faulty = generator("traffic", {"faulty": "0.5"}).make("sensors", 0, 331_200).rows
    assert (faulty.height, (faulty["speed"] == -1).sum()) == (324_000, 162_000)


def test_traffic_punctuation() -> None:
    made = generator("traffic", {"punctuation": "segment, probe", "freeways": "1", "segments": "2", "probes": "2"})
    sensors, probes = made.make("sensors", 0, 30), made.make("probes", 0, 300)
    assert [str(pattern) for pattern in sensors.punctuations.patterns()] == [
        "[segment = 1, ts < 2010-02-15 00:01:00]",
        "[segment = 2, ts < 2010-02-15 00:01:00]",
    ]
    assert sensors.positions.tolist() == [15, 18]
    assert str(probes.punctuations.patterns()[1]) == "[probe_id = 2, ts = 2010-02-15 00:02:30]"
    assert probes.positions.tolist() == list(range(1, probes.rows.height + 1))


def test_rate() -> None:
    made = generator("rate", {"rate": "2", "start": "2024-01-01 00:00:00", "events": "5", "punctuation": "time"})
    part = made.make("rate", 0, 100)
    assert made.events() == 5
    assert part.rows.rows()[:2] == [(0, datetime(2024, 1, 1)), (1, datetime(2024, 1, 1, 0, 0, 0, 500_000))]
    assert part.positions.tolist() == [2, 4, 5]
    assert str(part.punctuations.patterns()[2]) == "[ts < 9999-12-31 00:00:00]"
    assert made.make("rate", 5, 9).rows.height == len(made.make("rate", 5, 9).positions) == 0


@pytest.mark.parametrize(
    ("name", "options", "code", "message"),
    [
        ("nexmark", {"rat": "5"}, "M6001", "unknown option 'rat'\n  hint: did you mean 'rate'?"),
        ("nexmark", {"rate": "fast"}, "M6002", "option 'rate' cannot be 'fast': input should be a valid integer"),
        ("nexmark", {"rate": "0"}, "M6002", "option 'rate' cannot be '0': input should be greater than or equal to 1"),
        ("nexmark", {"auction_duration": "5 parsecs"}, "M6002", "unknown unit 'parsecs'"),
        ("nexmark", {"auction_duration": "5 us"}, "M6002", "At 10000 events a second it is between 0.01 and"),
        ("nexmark", {"auction_duration": "-5 s"}, "M6002", "a duration such as '90 seconds'"),
        ("nexmark", {"punctuation": "segment"}, "M6002", "some of auction, time, or none"),
        ("nexmark", {"columns": "auction, pric"}, "M6002", "did you mean 'price'?"),
        ("nexmark", {"start": "yesterday"}, "M6002", "option 'start' cannot be 'yesterday'"),
        ("nexmark", {"events": "0"}, "M6002", "option 'events' cannot be '0'"),
        ("rate", {"events": "1000000000000"}, "M6002", "the last is after the year 9999"),
        ("rate", {"start": "999999999999"}, "M6002", "option 'start' cannot be"),
        ("traffic", {"congestion": "2"}, "M6002", "less than or equal to 1"),
        ("traffic", {"punctuate_every": "1 s"}, "M6002", "cannot be shorter than sensor_period"),
    ],
)
def test_wrong_options(name: str, options: dict[str, str], code: str, message: str) -> None:
    with pytest.raises(OptionError) as caught:
        generator(name, options)
    assert caught.value.code == code and message in str(caught.value)


@pytest.mark.parametrize("name", ["nexmark", "rate", "rfid", "traffic"])
def test_the_page_names_every_option_and_column(name: str) -> None:
    page = (DOCS / "sources.md").read_text()
    common, _, rest = page.partition("## Generators")[2].partition("### ")
    section = next(part for part in ("### " + rest).split("\n### ") if part.removeprefix("### ").startswith(name))
    columns = [column for schema in generator(name, {}).streams.values() for column in schema.names]
    for word in (*opener(name).options.model_fields, *columns):
        assert f"`{word}`" in common + section, word


def test_unknown_names() -> None:
    with pytest.raises(BindError, match="M2002: no stream 'bids' is generated\n  hint: did you mean 'bid'"):
        nexmark().make("bids", 0, 1)
    with pytest.raises(ValueError, match="no events"):
        nexmark().make("bid", 2, 1)


def test_rfid_repeats_and_noise() -> None:
    made = generator("rfid", {"tags": "50", "repeats": "8", "interval": "250 ms", "noise": "0.1"})
    rows = made.make("readings", 0, 200_000).rows
    right = rows.filter(~pl.col("noise"))
    assert 0.095 < 1 - right.height / rows.height < 0.105
    assert rows.filter("noise")["tag_id"].min() >= 1 << 40 and rows.filter("noise")["tag_id"].is_unique().mean() > 0.99
    by_tag = right.sort("ts").group_by("tag_id").agg(pl.len(), pl.col("ts").diff().drop_nulls().alias("gaps"))
    assert by_tag["len"].max() == 8 and 7 < by_tag["len"].mean() < 7.5
    assert set(by_tag["gaps"].explode().drop_nulls().dt.total_microseconds() % 250_000) == {0}
    per_second = rows.group_by(pl.col("ts").dt.truncate("1s")).len().sort("ts")["len"]
    assert per_second[5:-1].mean() == pytest.approx(400, rel=0.01) and per_second[5:-1].std() > 5


def test_rfid_tags_are_not_read_for_ever() -> None:
    with pytest.raises(OptionError, match="more than a minute"):
        generator("rfid", {"repeats": "1000", "interval": "1 second"})
