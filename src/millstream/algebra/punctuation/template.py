"""Punctuation templates: the kinds of punctuation that a stream promises to send.

A template gives each attribute a class: `+` up to a value, `#` a single value, `-` (not written) any value. A
punctuation conforms to it if it restricts the attributes of class `+` by `<` or `<=`, those of class `#` by `=`, and no
others. A stream obeys the template if a conforming punctuation eventually matches each of its tuples. An unbounded
stream cannot violate that at any point in time: the punctuation may still arrive.

>>> print(Template((("ts", "+"), ("auction", "#"))))
(ts +, auction #)
>>> Template.of(ts="+", auction="#") == Template.of(auction="#", ts="+")
True
>>> from millstream.algebra.punctuation.restriction import below, equal
>>> by_auction = Template.of(ts="+", auction="#")
>>> Template.like(Pattern.of(ts=below(9), auction=equal(5))) == by_auction
True
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from millstream.algebra.punctuation.pattern import Pattern
from millstream.algebra.punctuation.restriction import Restriction
from millstream.algebra.values import record

UP_TO, SINGLE, EVERY = "+", "#", "-"
"""The classes of a restriction: up to a value, a single value, any value."""


def class_of(restriction: Restriction) -> str | None:
    """Return the class of a restriction; None for lower bounds, ranges and sets of values, which have none."""
    if restriction.is_any:
        return EVERY
    if restriction.is_upper:
        return UP_TO
    return SINGLE if restriction.is_value else None


@record("template")
class Template:
    """The attributes of class `+` and `#`; all others are `-`. Their order is that in which they are written, and makes
    no difference."""

    classes: tuple[tuple[str, str], ...]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Template) and (
            self.classes == other.classes or frozenset(self.classes) == frozenset(other.classes)
        )

    def __hash__(self) -> int:
        return hash(frozenset(self.classes))

    @classmethod
    def of(cls, **classes: str) -> Template:
        """Return the template of these attributes; those of class `-` may be left out."""
        return cls(tuple((name, class_) for name, class_ in classes.items() if class_ != EVERY))

    @classmethod
    def like(cls, pattern: Pattern) -> Template | None:
        """Return the template that a punctuation conforms to; None if a restriction has no class."""
        found = tuple((name, class_of(restriction)) for name, restriction in pattern.items)
        return None if any(class_ is None for _, class_ in found) else cls(tuple((n, str(c)) for n, c in found))

    def class_of(self, attribute: str) -> str:
        return dict(self.classes).get(attribute, EVERY)

    def renamed(self, names: Mapping[str, str]) -> Template | None:
        """Return the template over renamed attributes; None if one has no new name, or two get the same."""
        if not self.attributes <= names.keys() or len({names[a] for a in self.attributes}) < len(self.attributes):
            return None
        return Template(tuple((names[name], class_) for name, class_ in self.classes))

    @property
    def attributes(self) -> frozenset[str]:
        return _names(self.classes)

    def __str__(self) -> str:
        return f"({', '.join(f'{name} {class_}' for name, class_ in self.classes)})"


@lru_cache(maxsize=4096)
def _names(classes: tuple[tuple[str, str], ...]) -> frozenset[str]:
    return frozenset(name for name, _ in classes)
