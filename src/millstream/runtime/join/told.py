"""What a join tells its inputs by itself: keys that punctuation of another input has closed.

Once punctuation of one input on keys is emitted, that input stores no tuple with these keys, and none will arrive. So
tuples of the other inputs with these keys take part in no result, and these inputs may omit them.

| | |
|---|---|
| considered | punctuation that is emitted in a step, all at once; a tuple costs nothing |
| not told | what an input has closed itself |
| messages in a step | for each input with news one set of values, or patterns of several columns |
| told and not closed | at most `MOST` keys of an input, `MOST_COMPOUND` of several columns; then nothing more is told |
| rarely new | after `FUTILE` punctuations without news the next `ASLEEP` are not considered |

The join does not drop such tuples itself: those that still arrive find no partner, as before.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from millstream.algebra.arrays import Mask
from millstream.algebra.feedback import Feedback, Intent
from millstream.algebra.punctuation.pattern import Pattern
from millstream.algebra.punctuation.punctuations import Punctuations, PunctuationSet
from millstream.algebra.punctuation.restriction import one_of
from millstream.algebra.upstream import Upstream

MOST = 256
MOST_COMPOUND = 16
FUTILE = 4_096
ASLEEP = 16 * FUTILE

Closed = Callable[[int, Punctuations], Mask]
"""Returns a mask of the punctuations on keys that an input has closed itself."""


class ToldKeys:
    """`columns`: for each input, its own names of the keys. `may_omit`: whether it may omit tuples without a partner:
    not if they are kept, or counted."""

    def __init__(self, columns: Sequence[Mapping[str, str]], may_omit: Sequence[bool]) -> None:
        self._columns, self._may_omit = columns, may_omit
        self._told: list[dict[Pattern, None]] = [{} for _ in columns]
        self._news: set[int] = set()
        self._futile = self._asleep = 0

    def add(self, side: int, on_keys: Punctuations, closed: Closed) -> None:
        """Take punctuation of an input on keys, which it has no tuple of, now or later."""
        if not len(on_keys):
            return
        self._forget(side, on_keys)
        if self._asleep > 0:
            self._asleep -= len(on_keys)
            return
        self._futile += len(on_keys)
        for other, may_omit in enumerate(self._may_omit):
            if may_omit and other != side and self._room(other):
                self._tell(other, on_keys.keep(~closed(other, on_keys)))
        if self._futile > FUTILE:
            self._futile, self._asleep = 0, ASLEEP

    def _room(self, side: int) -> int:
        return (MOST if len(self._columns[side]) == 1 else MOST_COMPOUND) - len(self._told[side])

    def _tell(self, side: int, news: Punctuations) -> None:
        if not len(news):
            return
        last = np.arange(len(news)) >= len(news) - self._room(side)
        for pattern in news.keep(last).patterns():
            if pattern.items and not pattern.is_empty and pattern not in self._told[side]:
                self._told[side][pattern] = None
                self._news.add(side)
                self._futile = 0

    def _forget(self, side: int, on_keys: Punctuations) -> None:
        """Forget what was told to an input that has now closed it itself."""
        if told := [*self._told[side]]:
            known = PunctuationSet()
            known.add(on_keys)
            gone = known.covered(Punctuations.of(told))
            self._told[side] = {pattern: None for pattern, past in zip(told, gone, strict=True) if not past}

    def take(self) -> tuple[tuple[int, Upstream], ...]:
        """Return the messages of a step, each with its input: all values of a column are one set."""
        if not self._news:
            return ()
        news, self._news = sorted(self._news), set()
        return tuple((side, message) for side in news for message in self._messages(side))

    def _messages(self, side: int) -> list[Upstream]:
        values: dict[str, list[Any]] = {}
        patterns: list[Pattern] = []
        for pattern in self._told[side]:
            (name, restriction), *more = pattern.items
            if more or not restriction.is_value:
                patterns.append(pattern)
            else:
                values.setdefault(name, []).append(restriction.values[0])
        patterns += [Pattern.of({name: one_of(found)}) for name, found in values.items()]
        own = self._columns[side]
        return [Feedback(Intent.ASSUMED, pattern.rename(own), relayed=True) for pattern in patterns]

    def to_value(self) -> Any:
        return [list(told) for told in self._told], self._futile, self._asleep

    def restore(self, value: Any) -> None:
        told, self._futile, self._asleep = value
        self._told = [dict.fromkeys(own) for own in told]
