"""Conformance of punctuations to templates, as the contract promises it."""

from __future__ import annotations

from millstream.algebra.punctuation.pattern import Pattern
from millstream.algebra.punctuation.restriction import Restriction
from millstream.algebra.punctuation.template import Template


def class_of(restriction: Restriction) -> str | None:
    """`+` up to a value, `#` a single value, `-` any value; other forms have no class."""
    if restriction.is_any:
        return "-"
    if restriction.is_upper:
        return "+"
    return "#" if restriction.is_value else None


def conforms(template: Template, pattern: Pattern) -> bool:
    """True if each attribute of the pattern has the class that the template names."""
    classes = {name: class_of(restriction) for name, restriction in pattern.items}
    return classes == dict(template.classes)
