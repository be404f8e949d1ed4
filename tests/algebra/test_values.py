"""Values survive encoding and decoding, and nothing else is decoded."""

from __future__ import annotations

import contextlib
import math
import pickle
import struct
import zlib
from dataclasses import dataclass, field, make_dataclass
from datetime import UTC, date, datetime, time, timedelta, timezone
from enum import Enum
from typing import Any, NamedTuple

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal, assert_series_equal

from millstream.algebra import values
from millstream.algebra.types import Type
from millstream.algebra.values import FORMAT, decode, encode, value
from millstream.errors import InputError, MillstreamError
from tests.tries import tries


@value("tests.colour")
class Colour(Enum):
    RED = "red"
    GREEN = 2


@value("tests.place")
class Place(NamedTuple):
    x: int
    y: Any = None


@value("tests.one")
@dataclass(frozen=True)
class One:
    only: Any


@value("tests.thing")
@dataclass(frozen=True, slots=True)
class Thing:
    name: str
    held: Any = None
    size: int = 3
    parts: tuple[Any, ...] = field(default=())


@value("tests.nothing")
@dataclass(frozen=True)
class Nothing:
    pass


@value("tests.custom", fields=("a",))
class Custom:
    def __init__(self, a: Any) -> None:
        self.a = a

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Custom) and same(self.a, other.a)

    def __hash__(self) -> int:
        return 1


numbers = (
    st.integers() | st.integers(-(1 << 70), 1 << 70) | st.sampled_from([-(1 << 63), (1 << 63) - 1, 1 << 63, 1 << 64])
)
offsets = st.integers(-23 * 3600, 23 * 3600).map(lambda seconds: timezone(timedelta(seconds=seconds)))
hashable = (
    st.none()
    | st.booleans()
    | numbers
    | st.floats()
    | st.text()
    | st.binary()
    | st.dates()
    | st.datetimes()
    | st.datetimes(timezones=st.just(UTC) | offsets)
    | st.times()
    | st.timedeltas()
    | st.sampled_from([*Colour, *Type])
)
keys = st.recursive(
    hashable,
    lambda inner: (
        st.lists(inner, max_size=3).map(tuple)
        | st.frozensets(inner, max_size=3)
        | st.builds(Place, st.integers(), inner)
        | st.builds(Thing, st.text(), inner, st.integers(), st.lists(inner, max_size=2).map(tuple))
        | st.builds(One, inner)
    ),
    max_leaves=6,
)
TYPES = ["<i8", "<i4", "|u1", "<u8", "<f8", "<f4", "|b1", "<M8[us]", "<m8[us]"]
arrays = st.builds(
    lambda kind, size: np.arange(size).astype(np.int64).astype(kind), st.sampled_from(TYPES), st.integers(0, 5)
) | st.integers(0, 4).map(lambda size: np.ones((size, 3)))
scalars = st.builds(lambda kind, n: np.int64(n).astype(kind), st.sampled_from(TYPES), st.integers(0, 9))
POLARS = [pl.Int64(), pl.Int8(), pl.Float32(), pl.String(), pl.Boolean(), pl.Date(), pl.Datetime("us"), pl.Null()]
POLARS += [pl.Duration("us"), pl.Datetime("ms", "UTC"), pl.List(pl.Int64()), pl.Struct({"a": pl.Int8()}), pl.Binary()]
types = st.sampled_from(POLARS)
columns = st.builds(
    lambda name, size, type_: pl.Series(name, [None, 1, 0] * size).cast(pl.Int64).cast(type_),
    st.text(max_size=5),
    st.integers(0, 3),
    st.sampled_from([pl.Int64, pl.Float64, pl.String, pl.Boolean, pl.Datetime("us"), pl.Duration("us")]),
)
frames = st.builds(
    lambda column, times: pl.concat([pl.DataFrame({"a": column, "b": column})] * times, rechunk=False),
    columns,
    st.integers(1, 3),
) | st.integers(0, 4).map(lambda height: pl.DataFrame(height=height))
anything = st.recursive(
    keys | arrays | scalars | types | columns | frames | st.just(Nothing()),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(keys, inner, max_size=4)
        | st.dictionaries(st.text(), inner, max_size=4)
        | st.sets(keys, max_size=4)
        | st.builds(Thing, st.text(), inner)
        | st.builds(Custom, inner)
    ),
    max_leaves=12,
)


def same(one: Any, other: Any) -> bool:
    """True if two values are equal, type by type; NaN equals itself."""
    if type(one) is not type(other):
        return isinstance(one, pl.DataType) and one == other
    if isinstance(one, pl.DataFrame):
        return one.height == other.height and (assert_frame_equal(one, other) or True)
    if isinstance(one, pl.Series):
        return assert_series_equal(one, other) is None
    if isinstance(one, np.ndarray):
        return bool(one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes())
    if isinstance(one, np.generic):
        return bool(one.dtype == other.dtype and one.tobytes() == other.tobytes())
    if isinstance(one, float):
        return one == other or (math.isnan(one) and math.isnan(other))
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict):
        return len(one) == len(other) and all(map(same, one.items(), other.items()))
    if isinstance(one, set | frozenset):
        return len(one) == len(other) and (one == other or "nan" in repr(one))
    if isinstance(one, Thing | One):
        return all(same(getattr(one, name), getattr(other, name)) for name in values.kind_of(type(one)).fields)
    return bool(one == other)


@given(anything)
@settings(max_examples=tries(600))
def test_values_are_restored(held: Any) -> None:
    assert same(decode(encode(held)), held)


def test_arrays_can_be_written_to() -> None:
    made = decode(encode(np.arange(3)))
    made[0] = 7
    assert made.tolist() == [7, 1, 2]


def test_frames_of_any_chunks_are_restored() -> None:
    one, two = pl.DataFrame({"a": [1, 2], "b": ["x", "y"]}), pl.DataFrame({"a": [3], "b": ["z"]})
    frame = pl.concat([one, two], rechunk=False).with_columns(pl.Series("c", [1.5, None, 2.5]))
    assert_frame_equal(decode(encode(frame)), frame)
    assert_frame_equal(decode(encode(frame.slice(1, 2))), frame.slice(1, 2))


@pytest.mark.parametrize("held", [object(), len, Exception(), range(3), bytearray(b"x"), np.array([object()]), type])
def test_other_types_are_not_written(held: object) -> None:
    with pytest.raises(TypeError):
        encode([held])


# --- fields -----------------------------------------------------------------------------------------------------------


def message(table: list[list[str]], body: Any) -> bytes:
    made = values._PACK((table, body))
    return values._HEAD.pack(values._MAGIC, FORMAT, zlib.crc32(made)) + made


def test_a_field_that_is_missing_takes_its_default() -> None:
    assert decode(message([["tests.thing", "name"]], [32, "a"])) == Thing("a")
    assert decode(message([["tests.thing", "size", "name"]], [32, 5, "a"])) == Thing("a", size=5)


@pytest.mark.parametrize(
    ("table", "body", "said"),
    [
        ([["tests.thing", "name", "colour"]], [32, "a", 1], "unknown field 'colour'"),
        ([["tests.thing", "size"]], [32, 1], "lacks the field 'name'"),
        ([["os.system", "command"]], [32, "true"], "unknown type of values 'os.system'"),
        ([["tests.colour", "value"]], [32, "blue"], "'blue' is not a valid Colour"),
        ([], [31, 1], "31"),
        ([], [33, 1], "33"),
        ([], {"a": 1}, "without a tag"),
    ],
)
def test_unknown_types_and_fields_are_refused(table: list[list[str]], body: Any, said: str) -> None:
    with pytest.raises(InputError, match="M5023") as caught:
        decode(message(table, body), "the head")
    assert said in caught.value.detail and "the head" in caught.value.message and caught.value.hint


def test_a_name_belongs_to_one_class() -> None:
    other = make_dataclass("Other", ["a"])
    with pytest.raises(TypeError, match=r"tests\.thing"):
        value("tests.thing")(other)
    assert decode(encode(Thing("a"))) == Thing("a")


# --- formats and damage -----------------------------------------------------------------------------------------------


def test_other_formats_are_refused() -> None:
    data = encode([1])
    for other in (FORMAT - 1, FORMAT + 1):
        with pytest.raises(InputError, match=f"M5020: the head has format {other}"):
            decode(data[:4] + struct.pack("<H", other) + data[6:], "the head")
    for foreign in (b"", b"mill", b"\0" * 40, pickle.dumps([1]), b'{"format": 2}'):
        with pytest.raises(InputError, match="M5022: the head has an unknown format"):
            decode(foreign, "the head")


@given(anything, st.data())
@settings(max_examples=tries(400))
def test_damaged_bytes_are_refused(held: Any, data: st.DataObject) -> None:
    good = encode(held)
    place = data.draw(st.integers(0, len(good) - 1))
    bad = data.draw(
        st.sampled_from([good[:place], good[:place] + bytes([good[place] ^ 0x5A]) + good[place + 1 :], good + b"x"])
    )
    with pytest.raises(InputError):
        decode(bad)


@given(anything, st.data())
@settings(max_examples=tries(400))
def test_damage_that_the_checksum_misses_raises_nothing_but_our_errors(held: Any, data: st.DataObject) -> None:
    body = bytearray(encode(held)[values._HEAD.size :])
    for _ in range(data.draw(st.integers(1, 3))):
        body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(MillstreamError):
        decode(values._HEAD.pack(values._MAGIC, FORMAT, zlib.crc32(body)) + body)


@given(st.binary(max_size=200))
def test_any_bytes_raise_nothing_but_our_errors(body: bytes) -> None:
    for data in (body, values._HEAD.pack(values._MAGIC, FORMAT, zlib.crc32(body)) + body):
        with contextlib.suppress(MillstreamError):
            decode(data)


def test_deep_nesting_is_refused() -> None:
    body = b"\x92\x90" + b"\x92\x02" * 100_000 + b"\xc0"
    with pytest.raises(InputError):
        decode(values._HEAD.pack(values._MAGIC, FORMAT, zlib.crc32(body)) + body)


def test_dates_are_not_datetimes() -> None:
    held = (date(2024, 1, 2), datetime(2024, 1, 2, fold=1), time(1, 2, fold=1), timedelta(microseconds=-1))
    assert decode(encode(held)) == held and [getattr(part, "fold", 0) for part in decode(encode(held))] == [0, 1, 1, 0]
