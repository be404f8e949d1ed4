"""The driver's side of the operators that report: a module for each, named by the operator's stem.

A shard reports for an operator that `Reports` (`runtime/operator/capabilities.py`) by its stem and the name of its
node: after each batch (`Status.reports`), and when progress or metrics are wanted (`Status.summaries`). The module
takes the first, and says what the second mean. It is found by the stem; no other file lists it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any, ClassVar, Self

if TYPE_CHECKING:
    from millstream.control.job.base import Job
    from millstream.control.mill.base import Mill
    from millstream.control.mill.placement import PlacedPart
    from millstream.physical.shard.batch import Status

    PartReport = tuple[PlacedPart, int, Status]


class Reported:
    """What a mill knows of the operators with a stem."""

    stem: ClassVar[str]

    def __init__(self, mill: Mill) -> None:
        self._mill = mill

    @classmethod
    def of(cls, mill: Mill) -> Self:
        """The one of a mill."""
        held = mill.reported[cls.stem]
        assert isinstance(held, cls)
        return held

    def take(self, job: Job, statuses: Sequence[Status], *, again: bool) -> None:
        """Take the reports of a batch, which the job has heard; `again`: it was delivered before a restart."""

    def leave(self, query: str) -> None:
        """Note what is only known while a query runs, before it stops."""

    def forget(self, relation: str) -> None:
        """Forget a dropped stream or table."""

    def lines(self, query: str, reports: Sequence[PartReport]) -> Iterator[str]:  # noqa: ARG002
        """Yield lines for the progress of a query, from the statuses of its parts."""
        return iter(())

    def summaries(self, reports: Sequence[PartReport]) -> list[Any]:
        """The summaries of a query's operators with this stem, of all nodes and shards."""
        found = {
            (part.group.group, node, shard): value
            for part, shard, status in reports
            for node, value in status.summaries.get(self.stem, {}).items()
            if node in status.nodes.get(part.name, ())
        }
        return [*found.values()]


def reports_of(statuses: Sequence[Status], stem: str) -> Iterator[Any]:
    """The reports of operators with a stem in a batch."""
    for status in statuses:
        yield from status.reports.get(stem, {}).values()


def made(mill: Mill) -> dict[str, Reported]:
    """The driver's side of all operators that report, by stem."""
    return {stem: kind(mill) for stem, kind in kinds().items()}


@cache
def kinds() -> dict[str, type[Reported]]:
    """The driver's side of operators that report, by stem."""
    for module in iter_modules(__path__, f"{__name__}."):
        import_module(module.name)
    return {kind.stem: kind for kind in Reported.__subclasses__()}
