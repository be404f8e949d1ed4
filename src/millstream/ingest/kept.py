"""Whether a running stream keeps its declared scheme.

| | |
|---|---|
| `strange` | number of punctuations that conform to no declared template, and the first of them |
| `told` | for each template, the number of punctuations that conform to it, and the clock at the last one |
| `since` | for each template, that number and the clock at the first tuple after the last one |

A tuple that no punctuation of a template matches breaks no promise: the punctuation may still come, unless `EVERY` has
declared when. Only punctuation that is sent counts; what a source derives from its tuples is always as declared.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace

from millstream.algebra.punctuation.restriction import Restriction
from millstream.algebra.punctuation.template import SINGLE, UP_TO, Template, class_of
from millstream.algebra.values import record
from millstream.ingest.placed_punctuations import PlacedPunctuations

At = tuple[int, int]
"""A number of punctuations, and a time of the clock."""
NEVER_TOLD: At = (0, 0)
_CLASSES = {"<": UP_TO, "<=": UP_TO, "=": SINGLE}


@record("kept")
class Kept:
    strange: int = 0
    example: str | None = None
    told: Mapping[str, At] = field(default_factory=dict)
    since: Mapping[str, At] = field(default_factory=dict)

    @property
    def known(self) -> bool:
        return bool(self.strange or self.told or self.since)

    def __add__(self, other: Kept) -> Kept:
        """What is known of two batches, or of the same stream in two shards."""
        if not other.known:
            return self
        told = {**self.told, **{name: max(at, self.told.get(name, at)) for name, at in other.told.items()}}
        since: dict[str, At] = {}
        for name, at in (*self.since.items(), *other.since.items()):
            if at[0] >= told.get(name, NEVER_TOLD)[0]:
                since[name] = min(at, since.get(name, at), key=lambda each: each[1])
        return Kept(self.strange + other.strange, self.example or other.example, told, since)


class SchemeWatch:
    """Compares the punctuation of a stream with its templates, batch by batch."""

    def __init__(self, templates: Sequence[Template]) -> None:
        self._templates = {frozenset(template.classes): str(template) for template in templates}
        self._kept = Kept()

    def take(self, placed: PlacedPunctuations, rows: int, now: int) -> None:
        """Take the punctuations that were sent among the accepted rows of a batch."""
        if not self._templates:
            return
        last: dict[str, int] = {}
        told, since = dict(self._kept.told), dict(self._kept.since)
        strange, example = 0, None
        for group in placed.punctuations.parts.groups if len(placed) else ():
            name = self._templates.get(frozenset((column, _CLASSES.get(op, "")) for column, op in group.shape))
            names = [name] if name is not None else [] if group.shape else [*self._templates.values()]  # [*] is the end
            for each in names:
                last[each] = max(int(placed.positions[group.positions[-1]]), last.get(each, 0))
                told[each] = (told.get(each, NEVER_TOLD)[0] + group.height, now)
            if not names:
                strange, example = strange + group.height, example or str(group.slice(0, 1).patterns()[0])
        for at, pattern in placed.punctuations.parts.odd if len(placed) else ():
            name = self._templates.get(frozenset((column, _class(each)) for column, each in pattern.items))
            if name is not None and any(each.starts for _, each in pattern.items):
                continue  # a part of what the template promises
            if name is not None:
                last[name] = max(int(placed.positions[at]), last.get(name, 0))
                told[name] = (told.get(name, NEVER_TOLD)[0] + 1, now)
            else:
                strange, example = strange + 1, example or str(pattern)
        for name in self._templates.values():
            if name in last:
                since.pop(name, None)
            if rows > last.get(name, 0):
                since.setdefault(name, (told.get(name, NEVER_TOLD)[0], now))
        self._kept = Kept(self._kept.strange + strange, self._kept.example or example, told, since)

    def report(self) -> Kept:
        """Return what is known, and count anew."""
        found, self._kept = self._kept, replace(self._kept, strange=0, example=None)
        return found


def _class(restriction: Restriction) -> str:
    """The class of a restriction; a list of values is several punctuations of single values, and a range a part of
    what is promised up to a value."""
    ranged = restriction.starts and restriction.hi is not None
    return SINGLE if restriction.values else UP_TO if ranged else class_of(restriction) or ""
