"""What several sets of patterns have in common: the tuples that a pattern of each set matches.

>>> from millstream.algebra.punctuation.restriction import below, equal
>>> early, of_five, of_six = Pattern.of(ts=below(10)), Pattern.of(k=equal(5)), Pattern.of(k=equal(6))
>>> common([[early, of_five], [of_five, of_six]])
[Pattern([k = 6, ts < 10]), Pattern([k = 5])]
>>> common([[early], []])
[]
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

from millstream.algebra.punctuation.pattern import Pattern
from millstream.algebra.punctuation.restriction import Form, one_of

MOST_VALUES = 256
"""Most values, or choices of values, of the lists in a pattern that others have been merged into."""
MOST = 64
"""The most patterns of a result. Leaving one out is always safe for feedback: fewer tuples are omitted."""


def merged(patterns: Sequence[Pattern]) -> list[Pattern]:
    """Return the patterns; those that are values of one attribute as sets of at most `MOST_VALUES` values.

    >>> from millstream.algebra.punctuation.restriction import below, equal
    >>> merged([Pattern.of(k=equal(5)), Pattern.of(ts=below(9)), Pattern.of(k=equal(6))])
    [Pattern([ts < 9]), Pattern([k {5, 6}])]
    """
    values: dict[str, dict[Any, None]] = {}
    rest: list[Pattern] = []
    for pattern in patterns:
        if len(pattern.items) == 1 and pattern.items[0][1].form is Form.ONE_OF:
            name, restriction = pattern.items[0]
            values.setdefault(name, {}).update(dict.fromkeys(restriction.values))
        else:
            rest.append(pattern)
    sets = [(name, part) for name, held in values.items() for part in batched(held, MOST_VALUES)]
    return [*rest, *(Pattern.of({name: one_of(part)}) for name, part in sets)]


def batched(values: Iterable[Any], size: int) -> Iterator[list[Any]]:
    """Yield the values in lists of at most this size."""
    left = iter(values)
    while part := list(islice(left, size)):
        yield part


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
