"""What a shard runs."""

from __future__ import annotations

from dataclasses import dataclass, field

from millstream.algebra.schedule import Schedule
from millstream.algebra.values import value
from millstream.physical.wire.records import Settings, StartQuery


@value("setup")
@dataclass(slots=True)
class Setup:
    """The configuration and queries of a shard: enough to rebuild its graph."""

    group: int = 0
    labels: tuple[int, ...] = ()
    """The shards of its group."""
    number: int = 0
    """The position of this shard among them."""
    settings: Settings | None = None
    queries: dict[str, StartQuery] = field(default_factory=dict)
    failed: set[str] = field(default_factory=set)
    """Those that have failed in this shard: they have no operators any more, until the driver stops them."""

    schedules: dict[str, Schedule | None] = field(default_factory=dict)
    """When queries prod themselves, if that has been altered."""

    @property
    def running(self) -> dict[str, StartQuery]:
        """The queries that have operators."""
        return {name: query for name, query in self.queries.items() if name not in self.failed}
