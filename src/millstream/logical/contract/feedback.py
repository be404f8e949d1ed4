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
    times = schema.trails if offers.time is Time.MOVES else ()
    return Scheme(frozenset(templates | {Template(((name, UP_TO),)) for name in times}))


def translated(plan: Plan, feedback: Scheme) -> tuple[FeedbackScheme, ...]:
    """Return what an operator sends to each input if it receives such feedback."""
    sent: list[set[Template]] = [set() for _ in plan.inputs]
    for template in feedback.templates:
        for own, guard in zip(sent, sent_below(plan, template), strict=True):
            if guard is not None:
                own.add(guard)
    return tuple(Scheme(frozenset(templates)) if templates else NO_FEEDBACK for templates in sent)


def sent_below(plan: Plan, template: Template) -> tuple[Template | None, ...]:
    """Return the template of the feedback that an operator sends to each input, if it receives such feedback; None:
    it sends none."""
    patterns = plan.disclaimed(_sample(plan.schema, template))
    return tuple(None if pattern is None else guard_of(pattern) for pattern in patterns)


def guard_of(pattern: Pattern) -> Template:
    """Return the template of a guard, for coverage: a range or a set of values is covered by an upper bound alone. A
    restriction without an upper end counts as none, since no punctuation covers it."""
    return Template(tuple((name, class_) for name, restriction in pattern.items if (class_ := _class(restriction))))


def _class(restriction: Restriction) -> str:
    if restriction.is_value:
        return SINGLE
    return UP_TO if restriction.values or restriction.hi is not None else ""


def _sample(schema: Schema, template: Template) -> Pattern:
    made = {}
    for name, class_ in template.classes:
        value = _SAMPLES.get(schema.type_of(name), 0)
        made[name] = equal(value) if class_ == SINGLE else below(value, closed=True)
    return Pattern.of(made)
