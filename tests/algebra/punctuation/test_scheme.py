"""Feedback schemes: all cells of the match table, and coverage of guards by punctuation."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.algebra.punctuation.pattern import Pattern
from millstream.algebra.punctuation.restriction import Restriction, below, equal
from millstream.algebra.punctuation.scheme import ANY_FEEDBACK, NO_FEEDBACK, FeedbackScheme, Scheme, accepts, covered
from millstream.algebra.punctuation.template import Template
from tests.tries import tries

ONE, OTHER = Scheme.of(Template.of(a="+")), Scheme.of(Template.of(a="#"))
MORE = Scheme.of(Template.of(a="+"), Template.of(a="#"))


@pytest.mark.parametrize(
    ("antecedent", "subsequent", "expected"),
    [
        (NO_FEEDBACK, NO_FEEDBACK, True),
        (NO_FEEDBACK, ANY_FEEDBACK, False),
        (NO_FEEDBACK, ONE, False),
        (ANY_FEEDBACK, NO_FEEDBACK, True),
        (ANY_FEEDBACK, ANY_FEEDBACK, True),
        (ANY_FEEDBACK, ONE, True),
        (ONE, NO_FEEDBACK, True),
        (ONE, ANY_FEEDBACK, False),
        (ONE, ONE, True),
        (ONE, OTHER, False),
        (MORE, ONE, False),
    ],
)
def test_what_an_antecedent_accepts(antecedent: FeedbackScheme, subsequent: FeedbackScheme, expected: bool) -> None:
    assert accepts(antecedent, subsequent) is expected


def test_a_scheme_may_accept_whatever_it_covers() -> None:
    assert accepts(MORE, ONE, strict=False) and accepts(ONE, MORE, strict=False)
    assert not accepts(OTHER, ONE, strict=False)


def test_the_guard_of_the_example_is_covered() -> None:
    """`~[a <= 2:00]` is covered by `[[a:+, b:-]]`."""
    assert covered(Template.of(a="+"), Template.of(a="+"))
    assert Pattern.of(wid=below(3)).covers(Pattern.of(wid=below(2)))
    assert not Pattern.of(wid=equal(1)).covers(Pattern.of(wid=below(2)))


CLASSES = st.sampled_from("+#-")
TEMPLATES = st.builds(lambda a, b: Template.of(a=a, b=b), CLASSES, CLASSES)
VALUES = range(4)


def conforming(template: Template) -> list[Pattern]:
    """All punctuations of a template over a small domain."""
    found: list[dict[str, Restriction]] = [{}]
    for name, class_ in template.classes:
        own = [equal(v) for v in VALUES] if class_ == "#" else [below(v, closed=True) for v in VALUES]
        found = [{**made, name: restriction} for made in found for restriction in own]
    return [Pattern.of(made) for made in found]


@settings(max_examples=tries(80))
@given(TEMPLATES, TEMPLATES)
def test_sound_coverage_is_coverage_of_each_guard_by_one_punctuation(feedback: Template, by: Template) -> None:
    sent = conforming(by)
    each = all(any(p.covers(guard) for p in sent) for guard in conforming(feedback))
    assert covered(feedback, by) == each
