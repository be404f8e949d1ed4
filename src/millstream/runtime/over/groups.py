"""Groups of calls over the same frame that share a window: each tuple is held once, with the columns of all of them.

| call | window |
|---|---|
| a window version, or a base version over the whole frame | that of the others, with its arguments added |
| one that reads inwindow | the same, if its arguments are the first columns |
| one that deletes from inwindow, or ignores NULLs | its own: other tuples are in it |
| a slide of `ROWS`, `UNBOUNDED` | none, or panes: its own |
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from millstream.algebra.aggregate.row_call import RowCall
from millstream.algebra.frame import Frame
from millstream.runtime.over.evaluation import evaluation
from millstream.runtime.over.framed import Evaluation, framed
from millstream.runtime.over.members import Pick
from millstream.runtime.over.row_aggregate import Row, Versions, versions_of


@dataclass(slots=True)
class Group:
    """Calls, their versions, and the columns of the tuples that they take."""

    columns: tuple[str, ...]
    calls: list[RowCall] = field(default_factory=list)
    versions: list[Versions] = field(default_factory=list)

    def add(self, call: RowCall, versions: Versions) -> None:
        self.columns += tuple(name for name in dict.fromkeys(call.arguments) if name not in self.columns)
        self.calls.append(call)
        self.versions.append(versions)

    def evaluation(self, frame: Frame) -> Evaluation:
        """A new evaluation of the calls in one partition."""
        if len(self.calls) == 1:
            return evaluation(self.versions[0], frame)
        picks = [_pick(call.arguments, self.columns) for call in self.calls]
        return framed(list(zip(self.versions, picks, strict=True)), frame)


def together(calls: Sequence[RowCall], frame: Frame) -> list[Group]:
    """The groups of the calls."""
    found: list[Group] = []
    shared: list[Group] = []
    for call in calls:
        versions = versions_of(call)
        group = next((each for each in shared if _fits(call, versions, each)), None)
        if group is None or not _shares(versions, frame):
            group = Group(call.arguments)
            found.append(group)
            if _shares(versions, frame):
                shared.append(group)
        group.add(call, versions)
    return found


def _shares(versions: Versions, frame: Frame) -> bool:
    whole = frame.size is not None and not (frame.rows and frame.slide is not None)
    return whole and versions.keeps_window and not versions.deletes and not versions.ignore_nulls


def _fits(call: RowCall, versions: Versions, group: Group) -> bool:
    return not versions.reads or group.columns[: len(call.arguments)] == call.arguments


def _pick(arguments: tuple[str, ...], columns: tuple[str, ...]) -> Pick | None:
    """What takes the arguments out of the columns; None: these are the arguments."""
    if arguments == columns:
        return None
    places = [columns.index(name) for name in arguments]

    def picked(row: Row) -> Row:
        return tuple([row[place] for place in places])

    return picked
