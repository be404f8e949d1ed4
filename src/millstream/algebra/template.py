"""Punctuation templates and schemes: what kinds of punctuation a stream promises to send.

A template gives each attribute a class: `+` up to a value, `#` a specific value, `-` (not written) any value. A scheme
is a set of templates. A stream obeys it if every punctuation conforms to some template (C1) and every tuple is in the
end matched by a punctuation of every template (C2). On a stream that goes on, C2 is never broken, only pending.

>>> from millstream.algebra.types import Type
>>> bids = Schema.of(("ts", Type.BIGINT), ("auction", Type.BIGINT), ("price", Type.DOUBLE))
>>> template = parse_template("(auction #, ts +)", bids)
>>> from millstream.algebra.pattern import below, equal
>>> closing = Pattern.of(ts=below(10), auction=equal(7))
>>> str(template), template.conforms(closing), template.conforms(Pattern.of(ts=below(10)))
('(ts +, auction #)', True, False)
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from millstream.algebra.pattern import Pattern
from millstream.algebra.schema import Schema
from millstream.algebra.values import value
from millstream.errors import PatternError, did_you_mean

_TEMPLATE = re.compile(r"\s*\((.*)\)\s*", re.DOTALL)
_DESCRIPTOR = re.compile(r"\s*([^\W\d][\w.]*)\s*([+#-])\s*")


@value("template")
@dataclass(frozen=True, slots=True)
class Template:
    """The attributes of class `+` and `#`; all others are `-`."""

    classes: tuple[tuple[str, str], ...]

    @property
    def attributes(self) -> frozenset[str]:
        return frozenset(name for name, _ in self.classes)

    @property
    def is_linear(self) -> bool:
        """Whether it is progress along one attribute and nothing else."""
        return [class_ for _, class_ in self.classes] == ["+"]

    def conforms(self, pattern: Pattern) -> bool:
        """Whether each attribute of the pattern has the class that the template names."""
        return pattern.attributes == self.attributes and all(pattern.get(n).class_ == c for n, c in self.classes)

    def __str__(self) -> str:
        return f"({', '.join(f'{name} {class_}' for name, class_ in self.classes)})"


def parse_template(text: str, schema: Schema) -> Template:
    """A template from its text; its attributes come in the order of the schema."""
    found = _TEMPLATE.fullmatch(text)
    if found is None:
        raise PatternError("M4011", f"malformed template {text.strip()[:200]!r}", hint="Write it as (ts +, auction #).")
    classes: dict[str, str] = {}
    for part in found[1].split(","):
        descriptor = _DESCRIPTOR.fullmatch(part)
        if descriptor is None:
            hint = "Write an attribute and its class: + up to a value, # a specific value, - any value."
            raise PatternError("M4011", f"malformed template entry {part.strip()[:200]!r}", hint=hint)
        name = next((n for n in schema.names if n.lower() == descriptor[1].lower()), None)
        if name is None:
            hint = did_you_mean(descriptor[1], schema.names)
            raise PatternError("M4004", f"unknown column '{descriptor[1]}'", hint=hint)
        if name in classes:
            raise PatternError("M4011", f"column '{name}' stands twice in the template", hint="Name each column once.")
        classes[name] = descriptor[2]
    return Template(tuple((name, classes[name]) for name in schema.names if classes.get(name, "-") != "-"))


@value("scheme")
@dataclass(frozen=True, slots=True)
class Scheme:
    """A set of templates."""

    templates: frozenset[Template]

    @classmethod
    def of(cls, *templates: Template) -> Scheme:
        return cls(frozenset(templates))

    @property
    def is_linear(self) -> bool:
        return len(self.templates) == 1 and next(iter(self.templates)).is_linear

    def conforms(self, pattern: Pattern) -> bool:
        return any(template.conforms(pattern) for template in self.templates)

    def violations(self, patterns: Iterable[Pattern]) -> list[Pattern]:
        """The punctuations that conform to no template (C1 asks for none)."""
        return [pattern for pattern in patterns if not self.conforms(pattern)]

    def pending(
        self, tuples: Iterable[Mapping[str, Any]], patterns: Sequence[Pattern]
    ) -> list[tuple[Mapping[str, Any], Template]]:
        """The tuples that no punctuation of a template matches yet, with that template (C2 asks for none)."""
        told = {template: [p for p in patterns if template.conforms(p)] for template in self._sorted()}
        return [(row, t) for row in tuples for t, known in told.items() if not any(p.matches(row) for p in known)]

    def obeyed(self, tuples: Iterable[Mapping[str, Any]], patterns: Sequence[Pattern]) -> bool:
        """Whether a finished stream obeys the scheme: C1 and C2."""
        return not self.violations(patterns) and not self.pending(tuples, patterns)

    def _sorted(self) -> list[Template]:
        return sorted(self.templates, key=str)

    def __str__(self) -> str:
        return ", ".join(map(str, self._sorted()))
