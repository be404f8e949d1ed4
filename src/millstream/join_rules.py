"""The rules of a punctuated join: each maps an event, under a condition, to the components that run.

A registry is an ordered list of rules. As text, rules are separated by semicolons; case and underscores do not matter.

>>> text = "StateFull if all punctuation is used: state relocation; PropagateRequest: Index Build, Propagation"
>>> [str(rule) for rule in listeners_of(text)]
['StateFull if all punctuation is used: State Relocation', 'PropagateRequest: Index Build, Propagation']
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TypeVar

Named = TypeVar("Named", bound=Enum)


class Event(Enum):
    PURGE_THRESHOLD_REACH = "PurgeThresholdReach"
    NEW_PUNCT_READY = "NewPunctReady"
    STATE_FULL = "StateFull"
    STREAM_EMPTY = "StreamEmpty"
    PROPAGATE_COUNT_REACH = "PropagateCountReach"
    PROPAGATE_TIME_EXPIRE = "PropagateTimeExpire"
    PROPAGATE_REQUEST = "PropagateRequest"


class Component(Enum):
    STATE_PURGE = "State Purge"
    STATE_RELOCATION = "State Relocation"
    DISK_JOIN = "Disk Join"
    INDEX_BUILD = "Index Build"
    PROPAGATION = "Propagation"


class Condition(Enum):
    ALWAYS = "always"
    UNUSED_PUNCTUATION = "punctuation is unused"
    ALL_USED = "all punctuation is used"
    ACTIVATION_REACHED = "activation threshold is reached"


@dataclass(frozen=True, slots=True)
class Rule:
    event: Event
    listeners: tuple[Component, ...]
    condition: Condition = Condition.ALWAYS

    def __str__(self) -> str:
        condition = "" if self.condition is Condition.ALWAYS else f" if {self.condition.value}"
        return f"{self.event.value}{condition}: {', '.join(listener.value for listener in self.listeners)}"


Registry = tuple[Rule, ...]


def listeners_of(text: str) -> Registry:
    """Return the rules in their order; raise ValueError naming the first invalid part."""
    return tuple(_rule(part) for part in text.split(";") if part.strip())


def _rule(text: str) -> Rule:
    trigger, colon, listeners = text.partition(":")
    if not colon:
        raise ValueError("rules such as StreamEmpty: Disk Join, separated by semicolons")
    event, _, condition = trigger.partition(" if ")
    components = tuple(_named(Component, name, "a component") for name in listeners.split(","))
    return Rule(
        _named(Event, event, "an event"),
        components,
        _named(Condition, condition, "a condition") if condition.strip() else Condition.ALWAYS,
    )


def _named(kind: type[Named], text: str, what: str) -> Named:
    wanted = _plain(text)
    for member in kind:
        if _plain(str(member.value)) == wanted:
            return member
    choices = ", ".join(str(member.value) for member in kind)
    raise ValueError(f"{what} is one of {choices}; found {' '.join(text.split())!r}")


def _plain(text: str) -> str:
    """
    >>> _plain(" State_Purge ") == _plain("state purge") == _plain("StatePurge")
    True
    """
    return "".join(text.replace("_", " ").split()).lower()
