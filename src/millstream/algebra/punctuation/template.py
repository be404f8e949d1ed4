"""Punctuation templates: the kinds of punctuation that a stream promises to send.

A template gives each attribute a class: `+` up to a value, `#` a single value, `-` (not written) any value. A
punctuation conforms to it if it restricts the attributes of class `+` by `<` or `<=`, those of class `#` by `=`, and no
others. A stream obeys the template if a conforming punctuation eventually matches each of its tuples. An unbounded
stream cannot violate that at any point in time: the punctuation may still arrive.

>>> print(Template((("ts", "+"), ("auction", "#"))))
(ts +, auction #)
"""

from __future__ import annotations

from millstream.algebra.values import record


@record("template")
class Template:
    """The attributes of class `+` and `#`; all others are `-`."""

    classes: tuple[tuple[str, str], ...]

    @property
    def attributes(self) -> frozenset[str]:
        return frozenset(name for name, _ in self.classes)

    def __str__(self) -> str:
        return f"({', '.join(f'{name} {class_}' for name, class_ in self.classes)})"
