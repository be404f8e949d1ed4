"""The text of a stream has all of its identity, and no other module takes it apart."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import millstream
from millstream.algebra.stream_id import MARKS, PlaceId, StreamId
from tests.tries import tries

NUMBERS = st.integers(0, 1 << 63)
NAMES = st.text(st.characters(exclude_characters=MARKS), min_size=1).filter(
    lambda name: not StreamId.of(name).companion
)
READ = st.builds(StreamId, NAMES, st.none() | NUMBERS)
COMPANIONS = st.builds(StreamId, NAMES, st.none() | NUMBERS, st.sampled_from(["late", "bad"]))
PARTIALS = st.builds(StreamId, NAMES, st.none() | NUMBERS, st.just(""), st.text("0123456789abcdef", min_size=1))
PARTS = st.builds(lambda query, path: "/".join([query, *map(str, path)]), NAMES, st.lists(NUMBERS))
SENT = st.builds(StreamId, part=PARTS, shard=st.none() | NUMBERS)


@settings(max_examples=tries(400))
@given(READ | COMPANIONS | PARTIALS | SENT)
def test_a_text_is_read_back(stream: StreamId) -> None:
    assert StreamId.of(str(stream)) == stream


@settings(max_examples=tries(200))
@given(NAMES, st.builds(str, READ), NUMBERS)
def test_a_place_is_read_back(mill: str, stream: str, number: int) -> None:
    assert PlaceId.of(str(PlaceId(mill, stream, number))) == PlaceId(mill, stream, number)


@pytest.mark.parametrize(
    ("text", "source", "whole", "declared", "sender"),
    [
        ("s", "s", "s", "s", ""),
        ("s__late", "s", "s__late", "s__late", ""),
        ("s^7__bad", "s^7", "s^7__bad", "s__bad", ""),
        ("s^7~4be0", "s^7", "s^7", "s~4be0", ""),
        ("@q#2/0/1.3", "@q#2/0/1.3", "@q#2/0/1.3", "@q#2/0/1.3", "0/1"),
    ],
)
def test_where_a_stream_comes_from(text: str, source: str, whole: str, declared: str, sender: str) -> None:
    stream = StreamId.of(text)
    assert (stream.source, stream.whole, stream.declared, stream.sender) == (source, whole, declared, sender)


def test_no_other_module_takes_names_of_streams_apart() -> None:
    taken = r"(partition|split|removeprefix|removesuffix|startswith|endswith)\(f?[\"'][\^~@]"
    apart = re.compile(taken + r"|__(late|bad)\b")
    source = Path(millstream.__file__).parent
    code = {path: re.sub(r'""".*?"""', "", path.read_text(), flags=re.DOTALL) for path in source.rglob("*.py")}
    found = {str(path.relative_to(source)) for path, text in code.items() if apart.search(text)}
    shown = {"logical/catalog.py", "lang/foreign/queries.py", "lang/foreign/__init__.py"}  # texts of hints
    assert found <= shown | {"algebra/stream_id.py"}
