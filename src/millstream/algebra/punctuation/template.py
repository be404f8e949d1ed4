"""Punctuation templates: what kinds of punctuation a stream promises to send.

A template gives each attribute a class: `+` up to a value, `#` a specific value, `-` (not written) any value. A stream
obeys it if every tuple is in the end matched by a punctuation that conforms to it. On a stream that goes on, that is
never broken, only pending.

>>> from millstream.algebra.punctuation.restriction import below, equal
>>> template = Template((("ts", "+"), ("auction", "#")))
>>> closing = Pattern.of(ts=below(10), auction=equal(7))
>>> str(template), template.conforms(closing), template.conforms(Pattern.of(ts=below(10)))
('(ts +, auction #)', True, False)
"""

from __future__ import annotations

from millstream.algebra.punctuation.pattern import Pattern
from millstream.algebra.values import record


@record("template")
class Template:
    """The attributes of class `+` and `#`; all others are `-`."""

    classes: tuple[tuple[str, str], ...]

    @property
    def attributes(self) -> frozenset[str]:
        return frozenset(name for name, _ in self.classes)

    def conforms(self, pattern: Pattern) -> bool:
        """Whether each attribute of the pattern has the class that the template names."""
        return pattern.attributes == self.attributes and all(pattern.get(n).class_ == c for n, c in self.classes)

    def __str__(self) -> str:
        return f"({', '.join(f'{name} {class_}' for name, class_ in self.classes)})"
