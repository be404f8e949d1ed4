"""What a reader remembers of feedback."""

from __future__ import annotations

from millstream.algebra.feedback import MOST_DESIRED, Feedback, Intent, added
from millstream.algebra.punctuation.pattern import Pattern
from millstream.algebra.punctuation.restriction import below, equal


def said(intent: Intent, **restrictions: object) -> Feedback:
    return Feedback(intent, Pattern.of(**restrictions))  # type: ignore[arg-type]


def test_the_oldest_of_too_many_desired_patterns_is_forgotten() -> None:
    first = said(Intent.ASSUMED, k=equal(-1))
    messages = [first]
    for key in range(MOST_DESIRED + 3):
        messages = added(messages, said(Intent.DESIRED, k=equal(key)))
    assert messages == [first, *(said(Intent.DESIRED, k=equal(key)) for key in range(3, MOST_DESIRED + 3))]


def test_a_wider_pattern_replaces_narrower_ones_of_its_intent() -> None:
    held = [said(Intent.ASSUMED, k=equal(1)), said(Intent.DESIRED, k=equal(1))]
    wide = said(Intent.ASSUMED, k=below(5))
    assert added(held, wide) == [held[1], wide]
