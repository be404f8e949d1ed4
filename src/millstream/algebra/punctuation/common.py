"""What several sets of patterns have in common: the tuples that a pattern of each set matches.

>>> from millstream.algebra.punctuation.restriction import below, equal
>>> early, of_five, of_six = Pattern.of(ts=below(10)), Pattern.of(k=equal(5)), Pattern.of(k=equal(6))
>>> common([[early, of_five], [of_five, of_six]])
[Pattern([k = 5]), Pattern([k = 6, ts < 10])]
>>> common([[early], []])
[]
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from millstream.algebra.punctuation.pattern import Pattern

MOST = 64
"""The most patterns of a result. Leaving one out is always safe for feedback: fewer tuples are omitted."""


def common(sets: Iterable[Sequence[Pattern]]) -> list[Pattern]:
    """Return patterns that match only tuples which each of the sets matches."""
    first, *others = sets
    found = pruned(first)
    for other in others:
        if not found:
            break
        if [*other] != found:
            found = pruned(_both(one, two) for one in found for two in other)
    return found


def _both(one: Pattern, two: Pattern) -> Pattern:
    return one if two.covers(one) else two if one.covers(two) else one.intersect(two)


def pruned(patterns: Iterable[Pattern]) -> list[Pattern]:
    """Return the first patterns that match something and that no other one covers."""
    kept: list[Pattern] = []
    for pattern in patterns:
        if len(kept) == MOST:
            break
        if pattern.is_empty or any(other.covers(pattern) for other in kept):
            continue
        kept = [*(other for other in kept if not pattern.covers(other)), pattern]
    return kept
