"""Settings of a join: purging, propagation and memory. All of them may be changed while the join runs.

| setting | meaning |
|---|---|
| `purge_threshold` | number of punctuations, of both inputs together, between two purges; 1: purge at once |
| `index` | eager: stored tuples are counted per waiting punctuation; lazy: they are matched before propagation |
| `propagation` | eager: once no stored tuple matches; count: every `propagation_count` punctuations; time; request |
| `memory_limit` | bytes that stored tuples may take in memory, the rest moves to disk; 0: no limit |
| `activation` | number of tuples that must have missed partners on disk before the disk join runs in a pause |
| `listeners` | rules that map events to components (`join_rules`); empty: the rules follow from the other settings |
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

from millstream.algebra.values import value

IndexMode = Literal["eager", "lazy"]
PropagationMode = Literal["eager", "count", "time", "request"]


@value("join_settings")
@dataclass(frozen=True, slots=True)
class JoinSettings:
    purge_threshold: int = 1
    index: IndexMode = "lazy"
    propagation: PropagationMode = "eager"
    propagation_count: int = 1
    propagation_period: int = 0
    """In units of the timestamps."""
    memory_limit: int = 0
    activation: int = 1
    listeners: str = ""


@runtime_checkable
class Configurable(Protocol):
    """An operator whose settings can be changed while it runs."""

    def configure(self, settings: JoinSettings) -> None: ...


def configure_joins(operators: Iterable[object], settings: JoinSettings) -> None:
    for operator in operators:
        if isinstance(operator, Configurable):
            operator.configure(settings)
