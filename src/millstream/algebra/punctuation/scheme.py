"""Punctuation schemes: the templates whose punctuation a stream sends, and the feedback that an operator accepts.

A stream obeys a scheme if each of its punctuations conforms to a template of it, and each of its tuples is matched,
sooner or later, by a conforming punctuation of every template.

A feedback scheme is none (`∅`), anything (`↺`), or a scheme. On an edge of a plan the antecedent accepts feedback, the
subsequent operator sends it; `accepts` is the table of what fits:

| accepts, sends | ∅ | ↺ | s' |
|---|---|---|---|
| ∅ | yes | no | no |
| ↺ | yes | yes | yes |
| s | yes | no | if s = s'; not strictly: if a template of s covers each of s' |

>>> rising = Scheme.of(Template.of(a="+"))
>>> print(rising, accepts(rising, NO_FEEDBACK), accepts(NO_FEEDBACK, rising), accepts(ANY_FEEDBACK, rising))
{(a +)} True False True
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from millstream.algebra.punctuation.template import EVERY, SINGLE, UP_TO, Template


@dataclass(frozen=True, slots=True)
class Scheme:
    """A set of templates; the empty one promises nothing."""

    templates: frozenset[Template] = frozenset()

    @classmethod
    def of(cls, *templates: Template) -> Scheme:
        return cls(frozenset(templates))

    def __str__(self) -> str:
        return f"{{{', '.join(sorted(map(str, self.templates)))}}}"


class Whole(Enum):
    """The feedback schemes that are no set of templates."""

    NONE = "∅"
    ANY = "↺"

    def __str__(self) -> str:
        return self.value


FeedbackScheme = Scheme | Whole
NO_FEEDBACK, ANY_FEEDBACK = Whole.NONE, Whole.ANY


def accepts(antecedent: FeedbackScheme, subsequent: FeedbackScheme, *, strict: bool = True) -> bool:
    """Return whether the feedback that the subsequent operator may send fits what its antecedent accepts."""
    if subsequent is NO_FEEDBACK or antecedent is ANY_FEEDBACK:
        return True
    if not isinstance(antecedent, Scheme) or not isinstance(subsequent, Scheme):
        return False
    if strict:
        return antecedent == subsequent
    return all(any(covered(sent, own) for own in antecedent.templates) for sent in subsequent.templates)


def covered(feedback: Template, by: Template) -> bool:
    """Return whether punctuation of a template removes the guard of feedback of another one: each guard is covered by a
    single punctuation, sooner or later, because the punctuation restricts no further attribute, and none more narrowly.

    >>> by_wid, exact = Template.of(wid="+"), Template.of(wid="#", avg="#")
    >>> covered(exact, by_wid)
    True
    >>> timed, keyed = Template.of(time="+"), Template.of(time="+", id="#")
    >>> covered(timed, keyed)
    False
    """
    names = feedback.attributes | by.attributes
    pairs = ((by.class_of(name), feedback.class_of(name)) for name in names)
    return all(own in (EVERY, class_) or (own == UP_TO and class_ == SINGLE) for own, class_ in pairs)
