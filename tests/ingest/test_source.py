"""The front end of a stream against its element-by-element reference, and its clocks."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.algebra.clock import VirtualClock
from millstream.algebra.element import Page
from millstream.algebra.punctuation.pattern import Pattern
from millstream.algebra.punctuation.punctuations import Punctuations
from millstream.algebra.punctuation.restriction import below, between, equal, one_of
from millstream.algebra.schema import NEVER, TS, Schema, TimeKind
from millstream.algebra.types import Type
from millstream.algebra.values import decode, encode
from millstream.errors import InputError, PatternError
from millstream.ingest.source import PAGE_ROWS, PAGES_IN_A_CHUNK, PunctuatedRows, StreamSource, Taken
from millstream.logical.catalog import StreamDefinition
from tests.reference.source import SourceReference
from tests.tries import tries

ORDERED = Schema.of(("ts", Type.BIGINT), ("k", Type.BIGINT), ("x", Type.DOUBLE), kind=TimeKind.EXTERNAL, time="ts")
ANY_ORDER = replace(ORDERED, ordered=False)
LATENT = Schema.of(("ts", Type.BIGINT), ("k", Type.BIGINT), ("x", Type.DOUBLE))
STAMPED = Schema.of(("at", Type.TIMESTAMP), ("k", Type.VARCHAR), kind=TimeKind.EXTERNAL, time="at")


def element(random: Random, now: int, bounds_only: bool) -> Any:
    """A tuple or a punctuation near the time of its arrival."""
    near, key = now + random.randint(-4, 4), random.randint(0, 40)
    if random.random() < 0.65:
        return near, key, random.choice([None, 0.5])
    kind = "bound" if bounds_only else random.choice(["bound", "bound", "both", "key", "time", "keys", "times"])
    return {
        "bound": Pattern.of(ts=below(near - 4, random.random() < 0.5)),
        "both": Pattern.of(ts=below(near), k=equal(key)),
        "key": Pattern.of(k=equal(key)),
        "time": Pattern.of(ts=equal(near)),
        "keys": Pattern.of(k=one_of([key, key + 1])),
        "times": Pattern.of(ts=between(near, near + 2)),
    }[kind]


def stream(random: Random, size: int, bounds_only: bool) -> list[Any]:
    return [element(random, now, bounds_only) for now in range(-5, size - 5)]


def streams(bounds_only: bool = False) -> st.SearchStrategy[list[Any]]:
    # Lists drawn one by one are short and monotonous on average.
    return st.builds(stream, st.randoms(use_true_random=True), st.sampled_from([5, 40]), st.just(bounds_only))


SETTINGS: dict[str, tuple[Schema, dict[str, Any]]] = {
    "in order": (ORDERED, {}),
    "any order": (ANY_ORDER, {}),
    "watermark": (ANY_ORDER, {"watermark": 3}),
    "key": (ANY_ORDER, {"primary_key": ("k",)}),
    "key in order": (ORDERED, {"primary_key": ("k",)}),
    "two keys and watermark": (ANY_ORDER, {"watermark": 2, "primary_key": ("k", "ts")}),
    "key and watermark": (ANY_ORDER, {"watermark": 1, "primary_key": ("k",)}),
    "latent with key": (LATENT, {"primary_key": ("k",)}),
    "ascending": (ANY_ORDER, {"ascending": ("k",)}),
    "ascending in order": (ORDERED, {"ascending": ("k",)}),
    "ascending, key and watermark": (ANY_ORDER, {"watermark": 2, "primary_key": ("ts",), "ascending": ("k",)}),
    "latent, two ascending": (LATENT, {"ascending": ("k", "ts")}),
}


def source_of(schema: Schema, clock: VirtualClock, page_rows: int = PAGE_ROWS, **clauses: Any) -> StreamSource:
    return StreamSource(StreamDefinition("s", schema, **clauses), clock, page_rows)


def compare(name: str, items: list[Any], sizes: list[int], page_rows: int) -> None:
    schema, options = SETTINGS[name]
    external = schema.time is not None
    in_order = external and schema.ordered
    reference = SourceReference(time="ts" if external else None, in_order=in_order, **options)
    for item in items:
        reference.take(item if isinstance(item, Pattern) else dict(zip(schema.names, item, strict=True)))
    source = source_of(schema, VirtualClock(), page_rows=page_rows, **options)
    found, late, progress = [], [], NEVER
    start, turn = 0, 0
    while start < len(items):
        size = sizes[turn % len(sizes)]
        taken = source.take(batch(items[start : start + size]))
        start, turn = start + size, turn + 1
        assert taken.bad.is_empty()
        late += taken.late.select(schema.names).to_dicts()
        for element in taken.elements:
            if isinstance(element, Punctuations):
                found.append(element.patterns())
                assert element.progress == NEVER or element.progress > progress
                progress = max(progress, element.progress)
            else:
                most = page_rows * PAGES_IN_A_CHUNK if page_rows > 1 else 1
                assert isinstance(element, Page)
                assert 0 < element.tuples <= most and element.frame.schema == schema.polars
                found.append(element.frame.to_dicts())
        held = encode(source.snapshot())
        source = source_of(schema, VirtualClock(), page_rows=page_rows, **options)
        source.restore(decode(held))
    flat = [element for part in found for element in part]
    given_rows = [element for element in flat if isinstance(element, dict)]
    assert [{n: row[n] for n in schema.names} for row in given_rows] == [
        e for e in reference.out if isinstance(e, dict)
    ]
    assert [e for e in flat if isinstance(e, Pattern)] == [e for e in reference.out if isinstance(e, Pattern)]
    assert late == reference.late
    assert progress == reference.progress
    assert (source.accepted, source.late) == (len(given_rows), len(late))
    promised: list[Pattern] = []
    for element in flat:
        if isinstance(element, Pattern):
            promised.append(element)
        else:
            assert not any(pattern.matches(element) for pattern in promised)


def batch(items: list[Any]) -> list[Any]:
    """Adjacent tuples as one element, as the API delivers them."""
    made: list[Any] = []
    for item in items:
        if isinstance(item, Pattern):
            made.append(item)
        elif made and isinstance(made[-1], list):
            made[-1].append(item)
        else:
            made.append([item])
    return made


@pytest.mark.parametrize("name", SETTINGS)
@settings(max_examples=tries(15))
@given(items=streams(), sizes=st.lists(st.integers(1, 25), min_size=1, max_size=4), page=st.integers(1, 9))
def test_a_source_equals_its_reference(name: str, items: list[Any], sizes: list[int], page: int) -> None:
    compare(name, items, sizes, page)


@pytest.mark.parametrize("name", ["in order", "any order", "watermark"])
@settings(max_examples=tries(15))
@given(
    items=streams(bounds_only=True), sizes=st.lists(st.integers(1, 25), min_size=1, max_size=4), page=st.integers(1, 9)
)
def test_bounds_on_time_alone(name: str, items: list[Any], sizes: list[int], page: int) -> None:
    compare(name, items, sizes, page)


def test_lines_and_elements_in_order() -> None:
    source = source_of(ANY_ORDER, VirtualClock())
    taken = source.take(
        ["5 | 1 | 0.5", "[<= 5, *, *]", "5 | 2 | NULL", "6 | 2 | NULL", "[k = 2]", "7 | 2 | 1", "x | 1"]
    )
    first, time, second, key = taken.elements
    assert isinstance(first, Page) and first.frame.rows() == [(5, 1, 0.5, 5)]
    assert isinstance(second, Page) and second.frame.rows() == [(6, 2, None, 6)]
    assert isinstance(time, Punctuations) and (time.progress, time.patterns()) == (5, [Pattern.of(ts=below(5, True))])
    assert isinstance(key, Punctuations) and (key.progress, key.patterns()) == (NEVER, [Pattern.of(k=equal(2))])
    assert taken.late.rows() == [(5, 2, None, 0), (7, 2, 1.0, 0)]
    assert taken.bad.rows() == [("x | 1", "expected 3 values, found 2", 0)]
    assert (source.accepted, source.late, source.bad) == (2, 2, 1)


def test_bounds_still_hold_once_other_punctuations_arrive() -> None:
    source = source_of(ANY_ORDER, VirtualClock())
    source.take(["[<= 10, *, *]"])
    assert source.take(["[< 4, 1, *]", "[<= 10, *, *]", "[= 9, *, *]"]).elements == []
    (fresh,) = source.take(["[*, 1, *]", "[< 10, *, *]", "[< 12, 1, *]", "[< 11, *, *]"]).elements
    assert isinstance(fresh, Punctuations) and fresh.progress == 11
    assert fresh.patterns() == [Pattern.of(k=equal(1)), Pattern.of(ts=below(11))]


def test_timestamps_and_a_watermark() -> None:
    source = source_of(replace(STAMPED, ordered=False), VirtualClock(), watermark=5_000_000)
    taken = source.take(["10 | a", "12 | b", "11 | c", "6 | late", "1970-01-01 00:00:07 | d"])
    stamps = [stamp for e in taken.elements if isinstance(e, Page) for stamp in e.frame[TS]]
    assert stamps == [10_000_000, 12_000_000, 11_000_000, 7_000_000]
    derived = [e for e in taken.elements if isinstance(e, Punctuations)]
    assert [e.progress for e in derived] == [5_000_000, 7_000_000]
    patterns = [str(pattern) for e in derived for pattern in e.patterns()]
    assert patterns == ["[at < 1970-01-01 00:00:05]", "[at < 1970-01-01 00:00:07]"]
    assert taken.late["k"].to_list() == ["late"]


def test_punctuated_rows_skip_bad_ones() -> None:
    source = source_of(ANY_ORDER, VirtualClock())
    frame = pl.DataFrame({"ts": [1, None, 2, 3], "k": [1, 1, 1, 2], "x": [0.0] * 4})
    placed = Punctuations.from_column("k", "=", pl.Series([1, 2]))
    taken = source.take([PunctuatedRows(frame, placed, np.array([2, 4]))])
    assert pages(taken) == [(1, 1, 0.0, 1), (3, 2, 0.0, 3)]
    assert taken.late["ts"].to_list() == [2] and taken.bad["reason"].to_list() == ["column 'ts' must not be NULL"]


def pages(taken: Taken) -> list[Any]:
    return [row for element in taken.elements if isinstance(element, Page) for row in element.frame.rows()]


@pytest.mark.parametrize("positions", [[1], [0, 5], [2, 1], [-1, 0]])
def test_positions_must_fit(positions: list[int]) -> None:
    placed = Punctuations.from_column("k", "=", pl.Series([1, 2]))
    frame = pl.DataFrame({"ts": [1, 2], "k": [1, 1], "x": [0.0] * 2})
    with pytest.raises(InputError):
        source_of(ANY_ORDER, VirtualClock()).take([PunctuatedRows(frame, placed, np.array(positions))])


@pytest.mark.parametrize(
    "element",
    [
        Pattern.of(kk=equal(1)), Pattern.of(k=equal("a")), Pattern.of(ts=below(2.5)), Pattern.of(k=equal(True)),
        Punctuations.from_column("kk", "=", pl.Series([1])), Punctuations.from_column("k", "=", pl.Series(["a"])),
        Punctuations.from_column("ts", "<", pl.Series([1.5])), "[1, 2]", "[ts < a]", "[ts <",
    ],
)  # fmt: skip
def test_a_pattern_that_does_not_fit_is_an_error_and_nothing_is_taken(element: Any) -> None:
    source = source_of(ANY_ORDER, VirtualClock())
    before = source.snapshot()
    with pytest.raises(PatternError):
        source.take([[(1, 1, 1.0)], element])
    assert source.snapshot() == before


@pytest.mark.parametrize("line", ["{<= 5, *, *}", "([*, 1, *] : count, 3)"])
def test_elements_that_streams_do_not_accept_yet(line: str) -> None:
    with pytest.raises(InputError):
        source_of(ANY_ORDER, VirtualClock()).take([line])


def test_external_promise_is_last_plus_elapsed_less_skew() -> None:
    clock = VirtualClock()
    source = source_of(ORDERED, clock, max_skew=5)
    assert source.ets() is None
    source.take([[(100, 1, 0.0)]])
    clock.advance(12_000_000)
    assert source.ets() == 107
    taken = source.take([[(106, 1, 0.0), (107, 1, 0.0)]])
    assert pages(taken) == [(107, 1, 0.0, 107)] and taken.late["ts"].to_list() == [106]
    assert source.ets() == 107, "a promise is never withdrawn"
    assert source_of(ORDERED, clock).ets() is None
    stamped = source_of(STAMPED, clock, max_skew=1_000_000)
    stamped.take(["3 | a"])
    clock.advance(500_000)
    assert stamped.ets() == 2_500_000


@pytest.mark.parametrize("kind", [TimeKind.INTERNAL, TimeKind.LATENT])
def test_the_clock_stamps_tuples_without_a_time_column(kind: TimeKind) -> None:
    clock = VirtualClock(at=7)
    schema = Schema.of(("k", Type.BIGINT), kind=kind)
    source = source_of(schema, clock)
    assert pages(source.take([[(1,), (2,)]])) == [(1, 7), (2, 7)]
    clock.advance(3)
    assert source.ets() == 10
    other = source_of(schema, VirtualClock(at=4))
    other.restore(decode(encode(source.snapshot())))
    assert pages(other.take([[(3,)]])) == [(3, 10)], "not below the promise, even if the clock is behind"


def test_many_punctuations_among_many_rows() -> None:
    size = 20_000
    stamps = np.arange(size) // 3
    frame = pl.DataFrame({"ts": stamps, "k": stamps % 7, "x": np.zeros(size)})
    positions = np.arange(20, size + 1, 20)
    placed = Punctuations.from_column("ts", "<", frame["ts"].gather(positions - 1))
    taken = source_of(ANY_ORDER, VirtualClock(), page_rows=512).take([PunctuatedRows(frame, placed, positions)])
    heights = [e.tuples for e in taken.elements if isinstance(e, Page)]
    assert heights == [8192, 8192, 20_000 - 2 * 8192]
    assert sum(len(e) for e in taken.elements if isinstance(e, Punctuations)) == len(positions)
