from __future__ import annotations

from collections.abc import Iterator
from datetime import date, datetime, timedelta
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from millstream.algebra.punctuation.pattern import Pattern
from millstream.algebra.punctuation.punctuations import Punctuations, PunctuationSet
from millstream.algebra.punctuation.restriction import (
    NOTHING,
    Restriction,
    above,
    below,
    between,
    compare,
    equal,
    one_of,
)
from millstream.algebra.schema import NEVER
from millstream.algebra.values import decode, encode
from millstream.errors import PatternError
from tests.algebra.punctuation.small import CONSTANTS, DENSE, DENSE_PAGE, PAGE, ROWS, likely

batches = st.lists(likely, max_size=10)
Rows = list[dict[str, Any]]


def first_of(patterns: list[Pattern], row: dict[str, Any]) -> int | None:
    return next((i for i, pattern in enumerate(patterns) if pattern.matches(row)), None)


@given(batches)
def test_match_and_first_match(patterns: list[Pattern]) -> None:
    made = Punctuations.of(patterns)
    for frame, rows in ((PAGE, ROWS), (DENSE_PAGE, DENSE), (PAGE.cast(pl.Int32), ROWS)):
        expected = [first_of(patterns, row) for row in rows]
        first, match = made.first_match(frame), made.match(frame)
        assert first.to_list() == expected
        assert first.dtype == pl.UInt32
        assert match.to_list() == [at is not None for at in expected]


@given(batches, st.integers(-5, 5))
def test_the_patterns_come_back_in_order(patterns: list[Pattern], progress: int) -> None:
    made = Punctuations.of(patterns, progress)
    regrouped = Punctuations(len(patterns), progress, parts=made.parts)
    assert regrouped.patterns() == made.patterns() == patterns
    assert regrouped == made
    assert len(made) == len(patterns)
    assert made.progress == progress
    assert decode(encode(regrouped)) == made


@given(st.lists(st.tuples(batches, st.integers(-3, 3)), max_size=4))
def test_concat(parts: list[tuple[list[Pattern], int]]) -> None:
    made = Punctuations.concat([Punctuations.of(patterns, progress) for patterns, progress in parts])
    patterns = [pattern for part, _ in parts for pattern in part]
    assert made.patterns() == patterns
    assert made.progress == max((progress for _, progress in parts), default=NEVER)
    assert made.first_match(PAGE).to_list() == [first_of(patterns, row) for row in ROWS]


@given(batches, st.data())
def test_where(patterns: list[Pattern], data: st.DataObject) -> None:
    mask = data.draw(st.lists(st.sampled_from([True, False, None]), min_size=len(patterns), max_size=len(patterns)))
    made = Punctuations.of(patterns, 7).where(pl.Series(mask, dtype=pl.Boolean))
    kept = [pattern for pattern, keep in zip(patterns, mask, strict=True) if keep]
    assert made.patterns() == kept
    assert made.progress == 7
    assert made.first_match(PAGE).to_list() == [first_of(kept, row) for row in ROWS]


SELECTIONS = [{}, {"a": "x"}, {"a": "b", "b": "a"}, {"a": "x", "b": "y", "z": "z"}, {"a": "x", "b": "x"}, {"b": "a"}]


@given(batches, st.sampled_from(SELECTIONS))
def test_select(patterns: list[Pattern], names: dict[str, str]) -> None:
    made = Punctuations.of(patterns, 7).select(names)
    expected = [pattern.rename(names) for pattern in patterns if pattern.attributes <= names.keys()]
    assert made.patterns() == expected
    assert made.progress == 7
    renamed = pl.DataFrame({"a": PAGE["a"], "b": PAGE["b"], "x": PAGE["a"], "y": PAGE["b"]})
    assert made.first_match(renamed).to_list() == [first_of(expected, row) for row in renamed.to_dicts()]


def mapped(pattern: Pattern, to: str, op: str) -> Pattern | None:
    said = pattern.get("b")
    if said.is_any:
        return pattern
    if not said.is_upper:
        return None
    rest = Pattern.of({name: r for name, r in pattern.items if name != "b"})
    return rest.intersect(Pattern.of({to: compare(op, said.hi // 2 * 2)}))


@given(batches, st.sampled_from("abw"), st.sampled_from(["<", "<="]))
def test_map_upper(patterns: list[Pattern], to: str, op: str) -> None:
    made = Punctuations.of(patterns, 7).map_upper("b", lambda v: v // 2 * 2, to, op, pl.Int64())
    expected = [new for pattern in patterns if (new := mapped(pattern, to, op)) is not None]
    assert made.patterns() == expected
    assert made.progress == 7
    frame = PAGE.with_columns(w=PAGE["b"])
    assert made.first_match(frame).to_list() == [first_of(expected, row) for row in frame.to_dicts()]


@pytest.mark.parametrize(
    ("bound", "seen", "type_", "result"),
    [
        (datetime(1970, 1, 1, 0, 0, 7), 7_000_000, pl.Datetime("us"), datetime(1970, 1, 1, 0, 0, 7)),
        (datetime(1970, 1, 1, 0, 0, 7), 7_000_000, pl.Int64(), 7_000_000),
        (date(1970, 1, 2), 86_400_000_000, pl.Datetime("us"), datetime(1970, 1, 2)),
        (date(1970, 1, 2), 86_400_000_000, pl.Date(), date(1970, 1, 2)),
        (timedelta(seconds=1), 1_000_000, pl.Duration("us"), timedelta(seconds=1)),
        (2.5, 2, pl.Float64(), 2.0),
        (-2.5, -3, pl.Int64(), -3),
        (2**40, 2**40, pl.Int32(), None),
        (float("inf"), None, pl.Int64(), None),
        ("text", None, pl.Int64(), None),
        (True, None, pl.Int64(), None),
    ],
)
def test_map_upper_hands_over_integers(bound: Any, seen: int | None, type_: pl.DataType, result: Any) -> None:
    expected = [] if result is None else [below(result, closed=True)]
    for other in ({}, {"k": one_of([1, 2])}):
        batch = Punctuations.of([Pattern.of({"t": below(bound), **other})])
        changed = batch.map_upper("t", lambda v: pl.when(v == (seen or 0)).then(v), "w", "<=", type_)
        assert [pattern.get("w") for pattern in changed.patterns()] == expected


@given(st.sampled_from(["=", "<", "<="]), st.lists(st.one_of(st.none(), CONSTANTS)))
def test_from_column(op: str, values: list[int | None]) -> None:
    made = Punctuations.from_column("a", op, pl.Series(values, dtype=pl.Int32), 3)
    assert made.patterns() == [Pattern.of(a=compare(op, value)) for value in values if value is not None]
    assert made.progress == 3


def test_from_column_of_other_types() -> None:
    for values in (["b", "a", None], [2.5, float("nan"), None], [datetime(2024, 1, 1), None], [True], [None]):
        series = pl.Series(values)
        patterns = [Pattern.of(a=equal(value)) for value in values]
        kept = [pattern for pattern in patterns if not pattern.is_empty]
        made = Punctuations.from_column("a", "=", series)
        assert made.patterns() == kept
        assert made.match(series.alias("a").to_frame()).to_list() == [not pattern.is_empty for pattern in patterns]


def test_a_mask_of_another_length_is_an_error() -> None:
    with pytest.raises(ValueError, match="2 entries"):
        Punctuations.of([Pattern()]).where(pl.Series([True, False]))


def test_truth_and_equality() -> None:
    assert not Punctuations.of(())
    assert Punctuations.of((), progress=3)
    assert Punctuations.of([Pattern()])
    assert Punctuations.of(()).with_progress(3) == Punctuations.of((), 3) != Punctuations.of(())
    assert Punctuations.of(()) != "nothing"
    assert len({Punctuations.of([Pattern()]), Punctuations.of([Pattern()])}) == 1
    assert repr(Punctuations.of([Pattern.of(a=equal(1))], 5)) == "Punctuations([a = 1] progress 5)"


TYPED: list[list[Any]] = [
    ["", "B", "a", "ä", "😀"],
    [False, True],
    [datetime(1960, 1, 1), datetime(2024, 1, 2), datetime(2024, 1, 2, 0, 0, 0, 1)],
    [date(1960, 1, 1), date(2024, 1, 1), date(2024, 1, 2)],
    [timedelta(seconds=-1), timedelta(), timedelta(microseconds=1)],
    [-1.5, -0.0, 0.0, float("inf"), float("-inf")],
]


@pytest.mark.parametrize("values", TYPED)
def test_columns_of_other_types(values: list[Any]) -> None:
    column = [*values, None, *([float("nan")] if isinstance(values[0], float) else [])]
    rows = [{"a": x, "b": y} for x in column for y in (0, 1, None)]
    frame = pl.DataFrame(rows, schema_overrides={"b": pl.Int64})
    for op in ("=", "<", "<=", ">", ">="):
        alone = [Pattern.of(a=compare(op, value)) for value in values[::-1]]
        keyed = [Pattern.of(a=compare(op, value), b=equal(i % 2)) for i, value in enumerate(values)]
        within = [Pattern.of(a=compare(op, value), b=below(i)) for i, value in enumerate(values)]
        for patterns in (alone, alone[::-1], keyed, within, keyed + alone):
            made, known = Punctuations.of(patterns), PunctuationSet()
            known.add(made)
            expected = [first_of(patterns, row) for row in rows]
            assert made.first_match(frame).to_list() == expected, (op, patterns)
            assert made.match(frame).to_list() == [at is not None for at in expected]
            assert known.match(frame).to_list() == [at is not None for at in expected]
            assert PunctuationSet.from_value(known.to_value()).match(frame).to_list() == known.match(frame).to_list()


def test_dates_compare_with_timestamps() -> None:
    frame = pl.DataFrame({"a": [datetime(2024, 1, 1, 12), datetime(2024, 1, 2)]})
    assert Punctuations.of([Pattern.of(a=below(date(2024, 1, 2)))]).match(frame).to_list() == [True, False]


def test_a_column_of_nulls_matches_only_any() -> None:
    frame = pl.DataFrame({"a": [None, None]})
    for restriction in (equal(1), below(1), equal("x"), below("x")):
        assert Punctuations.of([Pattern.of(a=restriction)] * 2).match(frame).to_list() == [False, False]
    assert Punctuations.of([Pattern()]).match(frame).to_list() == [True, True]


def test_types_that_do_not_compare_are_an_error() -> None:
    for restriction in (equal("x"), below("x"), equal(datetime(2024, 1, 1))):
        with pytest.raises(PatternError, match="column 'a'"):
            Punctuations.of([Pattern.of(a=restriction)]).match(pl.DataFrame({"a": [1]}))


def test_numbers_beyond_64_bits_stay_single_patterns() -> None:
    patterns = [Pattern.of(a=below(2**70)), Pattern.of(a=equal(3))]
    assert Punctuations.of(patterns).patterns() == patterns
    assert len(Punctuations.of(patterns).parts.odd) == 1


@pytest.fixture
def made_in_python(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[object]]:
    """Collects every restriction and pattern that is created while a test runs."""
    made: list[object] = []
    for kind in (Restriction, Pattern):
        original = kind.__init__

        def counted(self: Any, *args: Any, original: Any = original, **named: Any) -> None:
            made.append(self)
            original(self, *args, **named)

        monkeypatch.setattr(kind, "__init__", counted)
    yield made


def test_a_thousand_punctuations_are_applied_as_columns(made_in_python: list[object]) -> None:
    rng = np.random.default_rng(3)
    keys = pl.Series("k", rng.permutation(2000)[:1000])
    frame = pl.DataFrame({"k": rng.integers(0, 2000, 8192), "t": rng.integers(0, 100, 8192)})
    closed = Punctuations.from_column("k", "=", keys)
    bounds = Punctuations.from_column("t", "<", pl.Series(rng.integers(0, 50, 1000)))
    known = PunctuationSet()

    assert closed.match(frame).to_list() == frame["k"].is_in(keys.implode()).to_list()
    closed.first_match(frame)
    both = Punctuations.concat([closed, bounds]).select({"k": "k", "t": "t"})
    both = both.map_upper("t", lambda v: v + 1, "t", "<=", pl.Int64()).where(pl.Series([True] * 1999 + [False]))
    both.match(frame)
    fresh = known.add(both)
    known.covered(both)
    known.match(frame)
    PunctuationSet.from_value(known.to_value())
    assert 1000 < len(fresh) < 1999
    assert made_in_python == []
    assert len(closed.patterns()) == 1000
    assert len(made_in_python) == 2000


def test_the_index_is_not_encoded() -> None:
    made = Punctuations.from_column("a", "=", pl.Series(range(6)))
    before = len(encode(made))
    made.match(PAGE)
    assert len(encode(made)) == before
    assert decode(encode(made)).match(PAGE).to_list() == made.match(PAGE).to_list()


def test_vacuous_and_unrestricted() -> None:
    patterns = [Pattern.of(a=NOTHING), Pattern(), Pattern.of(a=between(1, 2), b=above(3))]
    assert Punctuations.of(patterns).first_match(PAGE).to_list() == [1] * len(ROWS)


def test_merged_batches_have_one_group_per_kind_in_order() -> None:
    bounds = [Punctuations.from_column(name, "<", pl.Series([at])) for at, name in enumerate("abab")]
    places = [np.array([place], dtype=np.int64) for place in (3, 1, 2, 0)]
    merged = Punctuations.merge(list(zip(bounds, places, strict=True)), 7)
    assert [str(pattern) for pattern in merged.patterns()] == ["[b < 3]", "[b < 1]", "[a < 2]", "[a < 0]"]
    assert [group.height for group in merged.parts.groups] == [2, 2] and merged.progress == 7
