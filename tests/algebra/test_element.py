"""The interface that all kinds of elements share."""

from __future__ import annotations

import pickle

import polars as pl
import pytest

from millstream.algebra.element import Element, Page
from millstream.algebra.punctuation.pattern import Pattern
from millstream.algebra.punctuation.punctuations import Punctuations
from millstream.algebra.punctuation.restriction import equal
from millstream.algebra.schema import NEVER, TS

ROWS = pl.DataFrame({"k": [7, 8, 7], TS: [10, 12, 11]})
CLOSED = Pattern.of(k=equal(7))


@pytest.mark.parametrize(
    ("element", "tuples", "punctuation_count", "weight", "progress"),
    [
        (Page(ROWS), 3, 0, 3, NEVER),
        (Punctuations.of([CLOSED, CLOSED], progress=5), 0, 2, 1, 5),
        (Punctuations.of((), progress=5), 0, 1, 1, 5),
    ],
)
def test_an_element_is_counted(
    element: Element, tuples: int, punctuation_count: int, weight: int, progress: int
) -> None:
    again = pickle.loads(pickle.dumps(element))
    for each in (element, again, element.select({"k": "k"})):
        assert (each.tuples, each.punctuation_count, each.weight, each.progress) == (
            tuples,
            punctuation_count,
            weight,
            progress,
        )
        assert each and not each.keeps_position


def test_an_empty_element_is_false() -> None:
    assert not Page(ROWS.clear()) and not Punctuations.of(())


def test_elements_are_renamed() -> None:
    page = Page(ROWS).select({"k": "id"})
    assert page.frame.columns == ["id", TS] and (page.first, page.last) == (10, 11)
    assert Punctuations.of([CLOSED]).select({"k": "id"}).patterns() == [Pattern.of(id=equal(7))]


def test_elements_keep_their_position_by_default() -> None:
    assert Element.keeps_position
    with pytest.raises(TypeError, match="abstract"):
        type("Half", (Element,), {})()
