"""Streams against schemes: the examples of the contracts framework, and the same judged by definition."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import permutations
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.algebra.punctuation.obedience import Stream, falling, obedience, ungrammatical
from millstream.algebra.punctuation.pattern import Pattern, parse_pattern
from millstream.algebra.punctuation.restriction import Restriction, above, below, equal
from millstream.algebra.punctuation.scheme import Scheme
from millstream.algebra.punctuation.template import Template
from millstream.algebra.schema import Schema
from millstream.algebra.types import Type
from tests.tries import tries

SENSOR = Schema.of(("time", Type.VARCHAR), ("id", Type.BIGINT), ("temperature", Type.DOUBLE))
ABC = Schema.of(("a", Type.VARCHAR), ("b", Type.BIGINT), ("c", Type.BIGINT))
CLOSING = Scheme.of(Template.of(a="+", b="#"))
BOTH = Scheme.of(Template.of(a="+"), Template.of(b="#"))


def stream(schema: Schema, *elements: str | tuple[Any, ...]) -> Stream:
    return [
        parse_pattern(e, schema) if isinstance(e, str) else dict(zip(schema.names, e, strict=True)) for e in elements
    ]


def test_grammaticality() -> None:
    def sensor(punctuation: str) -> Stream:
        before = ("10:00", 4, 76.5), ("10:00", 3, 75.9), ("09:59", 7, 76.6)
        return stream(SENSOR, *before, punctuation, ("10:01", 7, 76.6))

    assert ungrammatical(sensor("[< '10:00', *, *]")) == ()
    assert ungrammatical(sensor("[*, 7, *]")) == (4,)
    assert parse_pattern("[<= '10:00', 4, *]", SENSOR).matches({"time": "09:00", "id": 4, "temperature": 79.0})


def test_a_stream_obeys_a_template_of_two_attributes() -> None:
    assert obedience(stream(ABC, ("09:45", 1, 7), "[< '10:00', 1, *]", "[< '10:00', 2, *]"), CLOSING).obeyed
    strange = stream(ABC, ("09:45", 1, 7), "[< '10:00', *, *]", "[*, 2, *]", "[< '10:05', < 1, *]")
    assert obedience(strange, CLOSING).strange == (1, 2, 3)


def test_every_template_must_match_every_tuple() -> None:
    twelve = (
        ("10:16", 2, 23),
        ("10:17", 1, 13),
        ("10:17", 3, 31),
        "[< '10:20', *, *]",
        ("10:21", 1, 11),
        "[*, 1, *]",
        ("10:21", 2, 21),
        ("10:21", 3, 31),
        "[< '10:25', *, *]",
        "[*, 2, *]",
        ("10:27", 3, 30),
        "[< '10:30', *, *]",
    )
    found = obedience(stream(ABC, *twelve), BOTH)
    assert not found.strange
    assert found.pending == tuple((place, Template.of(b="#")) for place in (2, 7, 10))
    assert obedience(stream(ABC, *twelve, "[*, 3, *]"), BOTH).obeyed


def test_linear_punctuation_rises() -> None:
    linear = Scheme.of(Template.of(a="+"))
    rising = ["[< '10:15', *, *]", "[< '10:30', *, *]"]
    assert linear.linear and not BOTH.linear and not CLOSING.linear
    assert falling(patterns(rising), linear) == ()
    assert falling(patterns(rising[::-1]), linear) == (1,)


def patterns(texts: Iterable[str]) -> list[Pattern]:
    return [parse_pattern(text, ABC) for text in texts]


VALUES = st.integers(0, 3)
RESTRICTIONS = st.one_of(
    st.just(None), VALUES.map(equal), VALUES.map(below), VALUES.map(lambda v: below(v, closed=True)), VALUES.map(above)
)
TUPLES = st.fixed_dictionaries({"x": VALUES, "y": VALUES})


@st.composite
def elements(draw: st.DrawFn) -> Mapping[str, Any] | Pattern:
    if draw(st.booleans()):
        return draw(TUPLES)
    made: dict[str, Restriction | None] = {"x": draw(RESTRICTIONS), "y": draw(RESTRICTIONS)}
    return Pattern.of({name: r for name, r in made.items() if r is not None})


TEMPLATES = st.sampled_from([Template.of(x=a, y=b) for a, b in permutations("+#-", 2)])


@settings(max_examples=tries(100))
@given(st.lists(elements(), max_size=8), st.sets(TEMPLATES, min_size=1, max_size=3))
def test_the_definition(items: list[Mapping[str, Any] | Pattern], templates: set[Template]) -> None:
    told = [item for item in items if isinstance(item, Pattern)]
    rows = [item for item in items if not isinstance(item, Pattern)]
    every = all(any(t.conforms(p) for t in templates) for p in told)
    matched = all(any(t.conforms(p) and p.matches(row) for p in told) for row in rows for t in templates)
    found = obedience(items, Scheme(frozenset(templates)))
    assert (not found.strange, not found.pending) == (every, matched)
