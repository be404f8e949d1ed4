"""Feedback in contracts: what an operator translates, and whether the guards end.

A guard is at the reader of an edge, and ends when punctuation of that edge, or its time, covers it. The translation is
that of the running operator (`Plan.disclaimed`), asked with a sample of the template.
"""

from __future__ import annotations

from datetime import date, datetime, timedelta
from typing import Any

from millstream.algebra.punctuation.pattern import Pattern
from millstream.algebra.punctuation.restriction import Restriction, below, equal
from millstream.algebra.punctuation.scheme import NO_FEEDBACK, FeedbackScheme, Scheme
from millstream.algebra.punctuation.template import SINGLE, UP_TO, Template
from millstream.algebra.schema import Schema
from millstream.algebra.types import Type
from millstream.logical.contract.offers import Offers, Time
from millstream.logical.plan import Plan

_SAMPLES: dict[Type, Any] = {
    Type.BOOLEAN: True,
    Type.VARCHAR: "",
    Type.TIMESTAMP: datetime(1970, 1, 1),
    Type.DATE: date(1970, 1, 1),
    Type.INTERVAL: timedelta(),
}
"""A value of each type that is not a number; 0 is the end of a window of any length."""


def covering(schema: Schema, offers: Offers) -> Scheme:
    """Return the feedback whose guards end: that which punctuation on an edge, or its time, covers. A primary key
    closes only values that came, so that a guard on another one stays."""
    templates = {offer.template for offer in offers.templates if not offer.seen}
    times = schema.times if offers.time is Time.MOVES else ()
    return Scheme(frozenset(templates | {Template(((name, UP_TO),)) for name in times}))


def translated(plan: Plan, feedback: Scheme) -> tuple[FeedbackScheme, ...]:
    """Return what an operator sends to each input if it receives such feedback."""
    sent: list[set[Template]] = [set() for _ in plan.inputs]
    for template in feedback.templates:
        for place, pattern in enumerate(plan.disclaimed(_sample(plan.schema, template))):
            guard = None if pattern is None else guard_of(pattern)
            if guard is not None:
                sent[place].add(guard)
    return tuple(Scheme(frozenset(templates)) if templates else NO_FEEDBACK for templates in sent)


def guard_of(pattern: Pattern) -> Template | None:
    """Return the template of a guard, for coverage: a range or a set of values is covered by an upper bound alone. None
    if a restriction has no upper end, so that no punctuation covers it."""
    found = tuple((name, _class(restriction)) for name, restriction in pattern.items)
    return None if any(class_ is None for _, class_ in found) else Template(tuple((n, str(c)) for n, c in found))


def _class(restriction: Restriction) -> str | None:
    if restriction.is_value:
        return SINGLE
    return UP_TO if restriction.values or restriction.hi is not None else None


def _sample(schema: Schema, template: Template) -> Pattern:
    made = {}
    for name, class_ in template.classes:
        value = _SAMPLES.get(schema.type_of(name), 0)
        made[name] = equal(value) if class_ == SINGLE else below(value, closed=True)
    return Pattern.of(made)
