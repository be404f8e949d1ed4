"""Checks of a finite stream, tuple by tuple, against what it may promise.

| check | finds |
|---|---|
| `ungrammatical` | tuples that match a punctuation before them |
| `obedience` | punctuations that conform to no template; tuples that no punctuation of a template matches (yet) |
| `falling` | punctuations of a linear scheme whose bound is not above the bounds before it |

A tuple that no punctuation matches is pending, not a violation, as long as the stream goes on.

>>> from millstream.algebra.punctuation.restriction import below, equal
>>> stream = [{"a": 16, "b": 1}, Pattern.of(a=below(20)), {"a": 21, "b": 1}, Pattern.of(b=equal(1))]
>>> scheme = Scheme.of(Template.of(a="+"), Template.of(b="#"))
>>> print(obedience(stream, scheme).pending)
((2, Template(classes=(('a', '+'),))),)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from millstream.algebra.punctuation.pattern import Pattern
from millstream.algebra.punctuation.scheme import Scheme
from millstream.algebra.punctuation.template import Template

Stream = Sequence[Mapping[str, Any] | Pattern]
"""Tuples by column, and punctuations, in order."""


@dataclass(frozen=True, slots=True)
class Obedience:
    """Positions in a stream: of punctuations that `conform` to no template, and of tuples that are `pending`, with the
    template whose punctuation has not matched them."""

    strange: tuple[int, ...] = ()
    pending: tuple[tuple[int, Template], ...] = ()

    @property
    def obeyed(self) -> bool:
        return not self.strange and not self.pending


def ungrammatical(stream: Stream) -> tuple[int, ...]:
    """Return the positions of the tuples that match a punctuation before them."""
    seen: list[Pattern] = []
    found: list[int] = []
    for place, element in enumerate(stream):
        if isinstance(element, Pattern):
            seen.append(element)
        elif any(pattern.matches(element) for pattern in seen):
            found.append(place)
    return tuple(found)


def obedience(stream: Stream, scheme: Scheme) -> Obedience:
    """Compare a stream with a scheme."""
    patterns = [(place, element) for place, element in enumerate(stream) if isinstance(element, Pattern)]
    strange = tuple(place for place, p in patterns if not any(t.conforms(p) for t in scheme.templates))
    pending: list[tuple[int, Template]] = []
    for template in sorted(scheme.templates, key=str):
        conforming = [pattern for _, pattern in patterns if template.conforms(pattern)]
        for place, element in enumerate(stream):
            if not isinstance(element, Pattern) and not any(p.matches(element) for p in conforming):
                pending.append((place, template))
    return Obedience(strange, tuple(pending))


def falling(patterns: Iterable[Pattern], scheme: Scheme) -> tuple[int, ...]:
    """Return the positions of the punctuations of a linear scheme that an earlier one covers."""
    seen: list[Pattern] = []
    found: list[int] = []
    for place, pattern in enumerate(patterns):
        if any(template.conforms(pattern) for template in scheme.templates):
            if any(earlier.covers(pattern) for earlier in seen):
                found.append(place)
            seen.append(pattern)
    return tuple(found)
