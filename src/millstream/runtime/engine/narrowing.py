"""Sets of values in feedback that punctuation closes one by one: `~[k in {5, 6}]` becomes `~[k = 6]` by `[k = 5]`.

>>> from millstream.algebra.feedback import Intent
>>> said = Feedback(Intent.ASSUMED, Pattern.of(k=one_of([5, 6])))
>>> closed = Punctuations.of([Pattern.of(k=one_of([5]))])
>>> [str(message) for message in narrowed([said], closed)], narrowed(narrowed([said], closed), closed)
(['~[k = 6]'], [Feedback(intent=<Intent.ASSUMED: '~'>, pattern=Pattern([k = 6]), relayed=False)])
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from millstream.algebra.feedback import Feedback
from millstream.algebra.punctuation.pattern import Pattern
from millstream.algebra.punctuation.punctuations import Punctuations, PunctuationSet
from millstream.algebra.punctuation.restriction import Form, equal, one_of
from millstream.algebra.upstream import Upstream


def narrowed(messages: Sequence[Upstream], punctuations: Punctuations) -> list[Upstream]:
    """Return the messages, their sets without the values that punctuations cover."""
    if not any(isinstance(m, Feedback) and _sets(m.pattern) for m in messages):
        return [*messages]
    known = PunctuationSet()
    known.add(punctuations)
    return [_without(m, known) if isinstance(m, Feedback) else m for m in messages]


def _sets(pattern: Pattern) -> list[str]:
    """The columns that are restricted to several values."""
    return [name for name, r in pattern.items if r.form is Form.ONE_OF and not r.is_value]


def _without(message: Feedback, known: PunctuationSet) -> Feedback:
    pattern = message.pattern
    for name in _sets(pattern):
        values = pattern.get(name).values
        rest = {column: restriction for column, restriction in pattern.items if column != name}
        left = [value for value in values if not known.covers(Pattern.of({**rest, name: equal(value)}))]
        if left and len(left) < len(values):
            pattern = Pattern.of({**rest, name: one_of(left)})
    return message if pattern is message.pattern else replace(message, pattern=pattern)
