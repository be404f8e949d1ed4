from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millstream.algebra.pattern import NOTHING, Pattern, above, below, equal, one_of
from millstream.algebra.schema import Schema
from millstream.algebra.template import Scheme, Template, parse_template
from millstream.algebra.types import Type
from millstream.errors import PatternError
from tests.algebra.small import patterns

SCHEMA = Schema.of(("a", Type.BIGINT), ("b", Type.BIGINT), ("c", Type.BIGINT))
CLOSING = parse_template("(a +, b #)", SCHEMA)


def test_text() -> None:
    assert parse_template(" ( B#,a + , c - ) ", SCHEMA) == CLOSING == Template((("a", "+"), ("b", "#")))
    assert str(CLOSING) == "(a +, b #)"
    assert parse_template(str(CLOSING), SCHEMA) == CLOSING


@pytest.mark.parametrize(
    ("text", "code"),
    [
        *((text, "M4011") for text in ("", "a +", "(a)", "(a *)", "()", "(a +, a #)", "(a + b #)", "(a +,)")),
        ("(d +)", "M4004"),
    ],
)
def test_malformed(text: str, code: str) -> None:
    with pytest.raises(PatternError) as caught:
        parse_template(text, SCHEMA)
    assert caught.value.code == code
    assert caught.value.hint


@given(st.text(), st.text("ab+#-(), ", max_size=12))
def test_any_text_is_a_template_or_an_error_of_ours(text: str, likely: str) -> None:
    for tried in (text, likely, f"({likely})"):
        with contextlib.suppress(PatternError):
            assert parse_template(tried, SCHEMA).attributes <= set(SCHEMA.names)


@pytest.mark.parametrize(
    ("pattern", "conforms"),
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
def test_conformance(pattern: Pattern, conforms: bool) -> None:
    assert CLOSING.conforms(pattern) == conforms


@given(patterns(), st.tuples(*[st.sampled_from("+#-")] * 3))
def test_conformance_is_equality_of_classes(pattern: Pattern, classes: tuple[str, str, str]) -> None:
    named = zip(SCHEMA.names, classes, strict=True)
    template = Template(tuple((name, class_) for name, class_ in named if class_ != "-"))
    assert template.conforms(pattern) == (pattern.classes(SCHEMA) == classes)


def test_a_scheme_asks_for_every_template() -> None:
    by_time, by_key = parse_template("(a +)", SCHEMA), parse_template("(b #)", SCHEMA)
    both = Scheme.of(by_key, by_time, by_time)
    rows = [{"a": 1, "b": 7, "c": 0}, {"a": 2, "b": 8, "c": None}]
    told = [Pattern.of(a=below(3)), Pattern.of(b=equal(7))]
    assert str(both) == "(a +), (b #)"
    assert both.violations([*told, Pattern.of(c=equal(1))]) == [Pattern.of(c=equal(1))]
    assert both.pending(rows, told) == [(rows[1], by_key)]
    assert not both.obeyed(rows, told)
    assert both.obeyed(rows, [*told, Pattern.of(b=equal(8))])
    assert not both.obeyed(rows, [*told, Pattern.of(b=equal(8)), Pattern.of(c=equal(1))])
    assert Scheme.of(by_time).obeyed(rows, [Pattern.of(a=below(3))])


def test_linear_is_progress_along_one_attribute() -> None:
    assert Scheme.of(parse_template("(a +)", SCHEMA)).is_linear
    assert not Scheme.of(CLOSING).is_linear
    assert not Scheme.of(parse_template("(a +)", SCHEMA), parse_template("(b +)", SCHEMA)).is_linear
