"""Digests depend on the content of a value and on nothing else."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given

from millstream.algebra.identity import digest
from millstream.algebra.values import decode, encode, value
from tests.algebra.test_values import keys


@value("tests.window")
@dataclass(frozen=True)
class Window:
    range: int
    slide: int = 1
    options: dict[str, int] = field(default_factory=dict)


def test_order_does_not_count() -> None:
    assert digest({"a": 1, "b": {3, 1, 2}}) == digest({"b": {2, 3, 1}, "a": 1})
    assert digest((1, 2)) != digest((2, 1))


def test_types_count() -> None:
    assert len({digest(held) for held in (1, True, 1.0, "1", b"1", (1,), [1], {1}, {1: 1}, None, 1 << 64)}) == 11


def test_fields_with_their_default_do_not_count() -> None:
    assert digest(Window(2)) == digest(Window(2, 1, {})) != digest(Window(2, 2))
    before = value("tests.window")  # as it was before fields were added
    kept = Window

    @dataclass(frozen=True)
    class Window_:
        range: int

    Window_.__name__ = kept.__name__
    try:
        assert digest(before(Window_)(2)) == "e183fac3ff69ac15e2b49e2bcbeb7385"
    finally:
        before(kept)
    assert digest(Window(2)) == "e183fac3ff69ac15e2b49e2bcbeb7385"


@given(keys)
def test_what_comes_back_has_the_same_digest(held: Any) -> None:
    assert digest(decode(encode(held))) == digest(held)


def test_objects_have_no_digest() -> None:
    with pytest.raises(TypeError):
        digest(object())
