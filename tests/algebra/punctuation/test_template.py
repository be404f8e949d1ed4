from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millstream.algebra.punctuation.pattern import Pattern
from millstream.algebra.punctuation.restriction import NOTHING, above, below, equal, one_of
from millstream.algebra.punctuation.template import Template, class_of
from millstream.algebra.schema import Schema
from millstream.algebra.types import Type
from tests.algebra.punctuation.small import patterns

SCHEMA = Schema.of(("a", Type.BIGINT), ("b", Type.BIGINT), ("c", Type.BIGINT))
CLOSING = Template((("a", "+"), ("b", "#")))


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        (Pattern.of(a=below(1130, closed=True), b=equal(26)), True),
        (Pattern.of(a=below(1130), b=equal(26)), True),
        (Pattern.of(b=equal(26)), False),
        (Pattern.of(a=equal(1130), b=below(26)), False),
        (Pattern.of(a=below(1130, closed=True), b=equal(26), c=equal(3)), False),
        (Pattern.of(a=above(1130), b=equal(26)), False),
        (Pattern.of(a=below(1130), b=one_of([1, 2])), False),
        (Pattern.of(a=below(1130), b=NOTHING), False),
    ],
)
def test_conformance(pattern: Pattern, expected: bool) -> None:
    assert (Template.like(pattern) == CLOSING) == expected


@given(patterns(), st.tuples(*[st.sampled_from("+#-")] * 3))
def test_conformance_is_equality_of_classes(pattern: Pattern, classes: tuple[str, str, str]) -> None:
    named = zip(SCHEMA.names, classes, strict=True)
    template = Template(tuple((name, class_) for name, class_ in named if class_ != "-"))
    found = tuple(class_of(pattern.get(name)) for name in SCHEMA.names)
    assert (Template.like(pattern) == template) == (found == classes)


def test_the_order_of_attributes_makes_no_difference() -> None:
    one, other = Template.of(a="+", b="#"), Template.of(b="#", a="+")
    assert one == other and len({one, other}) == 1 and one != Template.of(a="#", b="+")
    assert one.attributes == {"a", "b"} and str(other) == "(b #, a +)"
