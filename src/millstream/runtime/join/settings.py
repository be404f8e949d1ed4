"""How a join purges, puts punctuation out and uses memory. All of it may be changed while the join runs.

| setting | meaning |
|---|---|
| `purge_threshold` | stored tuples are purged every so many punctuations, of both inputs together; 1: at once |
| `index` | eager: stored tuples are counted for each waiting punctuation; lazy: they are looked at before propagation |
| `propagation` | eager: as soon as nothing stored matches; every so many punctuations; every so long; on request |
| `memory_limit` | bytes that stored tuples may take in memory, more go to disk; 0: no limit |
| `activation` | so many tuples must have missed partners on disk before the disk join runs in a pause |
| `listeners` | which components run on which event, as `join_rules`; none: as the other settings say |
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
    """An operator that can be told while it runs."""

    def configure(self, settings: JoinSettings) -> None: ...


def configure_joins(operators: Iterable[object], settings: JoinSettings) -> None:
    for operator in operators:
        if isinstance(operator, Configurable):
            operator.configure(settings)
