from __future__ import annotations

import random

import numpy as np
import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.algebra.punctuation.grouping import expand
from millstream.algebra.punctuation.intervals import Intervals
from millstream.algebra.punctuation.pattern import Pattern
from millstream.algebra.punctuation.punctuations import Punctuations, PunctuationSet
from millstream.algebra.punctuation.restriction import NOTHING, above, below, between, equal, one_of
from millstream.algebra.schema import NEVER
from millstream.algebra.values import decode, encode
from tests.algebra.punctuation.small import DENSE, DENSE_PAGE, PAGE, ROWS, likely
from tests.tries import tries

runs = st.lists(st.lists(likely, max_size=6), max_size=5)


def covered(pattern: Pattern, earlier: list[Pattern]) -> bool:
    """True if one of them covers the pattern or, if it has sets of values, each choice of values."""
    return pattern.is_empty or all(any(known.covers(choice) for known in earlier) for choice in expand(pattern))


def fresh_of(patterns: list[Pattern]) -> list[Pattern]:
    return [pattern for i, pattern in enumerate(patterns) if not covered(pattern, patterns[:i])]


def filled(*patterns: Pattern) -> PunctuationSet:
    made = PunctuationSet()
    made.add(Punctuations.of(patterns))
    return made


@given(runs)
def test_fresh_are_those_that_nothing_earlier_covers(batches: list[list[Pattern]]) -> None:
    known, got = PunctuationSet(), []
    for batch in batches:
        got += known.add(Punctuations.of(batch)).patterns()
    assert got == fresh_of([pattern for batch in batches for pattern in batch])


@given(runs, likely)
def test_match_and_covers(batches: list[list[Pattern]], other: Pattern) -> None:
    known = PunctuationSet()
    for batch in batches:
        known.add(Punctuations.of(batch))
    added = [pattern for batch in batches for pattern in batch]
    assert known.match(PAGE).to_list() == [any(p.matches(row) for p in added) for row in ROWS]
    assert known.match(DENSE_PAGE).to_list() == [any(p.matches(row) for p in added) for row in DENSE]
    assert known.covers(other) == covered(other, added)
    assert all(known.covers(pattern) for pattern in added)
    asked = Punctuations.of([other, *added])
    assert known.covered(asked).to_list() == [covered(pattern, added) for pattern in asked.patterns()]
    assert len(known) == len(known.patterns()) <= sum(len(expand(pattern)) for pattern in added)


@given(runs)
@settings(max_examples=tries(60))
def test_the_value_comes_back(batches: list[list[Pattern]]) -> None:
    """A set that is restored midway continues as if it had not been."""
    straight, restored = PunctuationSet(), PunctuationSet()
    for i, batch in enumerate(batches):
        made = Punctuations.of(batch, i)
        assert straight.add(made) == restored.add(made)
        restored = PunctuationSet.from_value(decode(encode(restored.to_value())))
    assert len(straight) == len(restored)
    assert encode(straight.to_value()) == encode(restored.to_value())
    assert straight.match(DENSE_PAGE).to_list() == restored.match(DENSE_PAGE).to_list()


@given(runs)
@settings(max_examples=tries(60))
def test_nothing_kept_covers_anything_else_kept(batches: list[list[Pattern]]) -> None:
    known = PunctuationSet()
    for batch in batches:
        known.add(Punctuations.of(batch))
    kept = known.patterns()
    for i, one in enumerate(kept):
        if not (len(one.items) == 1 and one.items[0][1].lo is not None):  # intervals of integers stand for equalities
            assert not any(one.covers(other) for j, other in enumerate(kept) if i != j), (one, kept)


def test_shuffled_neighbours_leave_one_interval() -> None:
    known = PunctuationSet()
    values = random.Random(5).sample(range(-500, 500), 1000)
    for start in range(0, 1000, 37):
        part = pl.Series(values[start : start + 37], dtype=pl.Int64)
        assert len(known.add(Punctuations.from_column("k", "=", part))) == part.len()
    assert len(known) == 1
    assert known.patterns() == [Pattern.of(k=between(-500, 499))]
    assert known.match(pl.DataFrame({"k": [-501, -500, 499, 500, None]})).to_list() == [False, True, True, False, False]
    assert known.match(pl.DataFrame({"k": [1.5, 2.0, float("nan"), 1e300]})).to_list() == [False, True, False, False]


def test_what_a_later_one_of_the_batch_covers_is_fresh_but_not_kept() -> None:
    known = PunctuationSet()
    batch = [Pattern.of(t=below(3)), Pattern.of(t=below(5), k=equal(7)), Pattern.of(t=below(9))]
    assert known.add(Punctuations.of(batch)).patterns() == batch
    assert known.patterns() == [batch[2]]


def test_numbers_beyond_64_bits() -> None:
    huge = Pattern.of(t=below(2**70))
    known = filled(Pattern.of(t=below(3)), Pattern.of(k=equal(1)))
    assert not known.covers(huge)
    assert known.add(Punctuations.of([huge])).patterns() == [huge]
    assert known.covers(Pattern.of(t=below(5)))


def test_bounds_leave_the_highest() -> None:
    known = PunctuationSet()
    assert known.add(Punctuations.from_column("t", "<", pl.Series([3, 9, 5, 9, 12]))).patterns() == [
        Pattern.of(t=below(3)),
        Pattern.of(t=below(9)),
        Pattern.of(t=below(12)),
    ]
    assert known.add(Punctuations.of([Pattern.of(t=below(12, closed=True))])).patterns() != []
    assert known.patterns() == [Pattern.of(t=below(12, closed=True))]
    assert not known.add(Punctuations.of([Pattern.of(t=below(12))]))


def test_per_key_the_highest_bound_is_kept() -> None:
    known, rng = PunctuationSet(), np.random.default_rng(1)
    best: dict[int, int] = {}
    for _ in range(40):
        keys, bounds = rng.integers(0, 50, 30).tolist(), rng.integers(0, 1000, 30).tolist()
        made = [Pattern.of(k=equal(k), t=below(t)) for k, t in zip(keys, bounds, strict=True)]
        news = []
        for pattern, k, t in zip(made, keys, bounds, strict=True):
            if t > best.get(k, -1):
                best[k] = t
                news.append(pattern)
        assert known.add(Punctuations.of(made)).patterns() == news
    assert set(known.patterns()) == {Pattern.of(k=equal(k), t=below(t)) for k, t in best.items()}
    known.add(Punctuations.of([Pattern.of(t=below(2000))]))
    assert known.patterns() == [Pattern.of(t=below(2000))]


def test_one_shape_covers_another() -> None:
    assert filled(Pattern.of(k=equal(5))).covers(Pattern.of(k=equal(5), t=below(10)))
    assert filled(Pattern.of(t=below(10))).covers(Pattern.of(k=equal(7), t=below(5)))
    assert not filled(Pattern.of(k=equal(7), t=below(5))).covers(Pattern.of(t=below(5)))
    assert filled(Pattern.of(k=equal(1)), Pattern.of(k=equal(2))).covers(Pattern.of(k=one_of([1, 2])))
    assert not filled(Pattern.of(k=equal(1)), Pattern.of(k=equal(2))).covers(Pattern.of(k=between(1, 2)))
    assert filled(Pattern.of(k=between(1, 9))).covers(Pattern.of(k=equal(3), t=above(5)))
    assert filled(Pattern.of(k=below(9), t=above(1))).covers(Pattern.of(k=between(2, 5), t=one_of([3, 4])))
    assert len(filled(Pattern.of(k=equal(5), t=below(10)), Pattern.of(k=equal(5)))) == 1
    assert len(filled(Pattern.of(k=between(2, 4)), Pattern.of(k=equal(3), t=below(10)), Pattern.of(k=below(7)))) == 1
    assert len(filled(Pattern.of(k=equal(3)), Pattern.of(t=below(3), k=above(4)), Pattern())) == 1


def test_a_set_of_very_many_values_stays_one_pattern() -> None:
    known = filled(Pattern.of(k=one_of(range(3000))))
    assert len(known) == 1
    assert known.covers(Pattern.of(k=equal(2999)))
    assert known.covers(Pattern.of(k=one_of(range(2000))))
    assert not known.covers(Pattern.of(k=one_of(range(3001))))
    assert filled(Pattern.of(k=below(3000))).covers(Pattern.of(k=one_of(range(3000))))
    assert not filled(Pattern.of(k=below(2999))).covers(Pattern.of(k=one_of(range(3000))))
    dense = PunctuationSet()
    dense.add(Punctuations.from_column("k", "=", pl.Series(range(3000))))
    assert dense.covers(Pattern.of(k=one_of(range(3000))))


def test_vacuous_punctuations_are_ignored() -> None:
    known = PunctuationSet()
    assert len(known.add(Punctuations.of([Pattern.of(k=NOTHING), Pattern.of(k=equal(1), t=NOTHING)]))) == 0
    assert len(known) == 0
    assert known.covers(Pattern.of(k=NOTHING))


def test_progress_only_advances() -> None:
    known = PunctuationSet()
    assert known.add(Punctuations.of((), 5)).progress == 5
    assert not known.add(Punctuations.of((), 5))
    assert known.add(Punctuations.of([Pattern.of(k=equal(1))], 4)).progress == NEVER
    assert known.add(Punctuations.of([Pattern.of(k=equal(1))], 6)) == Punctuations.of((), 6)
    assert known.progress == 6


@given(st.lists(st.lists(st.integers(-8, 8), max_size=5), max_size=6))
def test_intervals_are_sets(parts: list[list[int]]) -> None:
    made, members = Intervals(), set()
    for part in parts:
        made = made.add(np.array(part, dtype=np.int64))
        members |= set(part)
    domain = np.arange(-10, 11)
    assert made.contains(domain).tolist() == [value in members for value in domain.tolist()]
    assert bool((made.lows <= made.highs).all())
    assert bool((made.highs[:-1] + 1 < made.lows[1:]).all())


def test_intervals_reach_the_ends_of_64_bits() -> None:
    low, high = -(2**63), 2**63 - 1
    made = Intervals().add(np.array([high, low, high - 1, low + 1]))
    assert repr(made) == f"Intervals([{low}, {low + 1}], [{high - 1}, {high}])"
    assert made.contains(np.array([low, 0, high])).tolist() == [True, False, True]
