"""The set of files that have been read: exact, and small enough for every offset.

Modification times do not show which files are new: a file that is renamed into place keeps its own, and may be older
than one already read. So names are remembered. Names that differ only in their last number are kept as ranges of
numbers, any others as eight bytes each: a thousand numbered files take some fifty bytes, a thousand files with random
names eleven thousand.

>>> seen = SeenFiles()
>>> seen.add(["b/part-007.csv", "b/part-008.csv", "b/part-010.csv"])
>>> seen.write()
{'runs': [['b/part-', 3, '.csv', [7, 8, 10, 10]]], 'others': ''}
>>> "b/part-008.csv" in seen, "b/part-009.csv" in seen, "b/part-08.csv" in seen
(True, False, False)
"""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from bisect import bisect_right
from collections.abc import Iterable
from hashlib import blake2b
from typing import Any, NamedTuple

RECENT = 64
"""The last `RECENT` series of names are kept as ranges, because they may grow; older ones only if that is shorter."""
_WIDTH = 8
_NUMBER = re.compile(r"([0-9]{1,15})([^0-9]*)\Z")


class Series(NamedTuple):
    """Names that differ only in one number, written with `digits` digits."""

    prefix: str
    digits: int
    suffix: str


class SeenFiles:
    def __init__(self) -> None:
        self._runs: dict[Series, list[int]] = {}  # firsts and lasts of ranges, ascending; the newest series is last
        self._others: set[bytes] = set()

    @classmethod
    def read(cls, written: dict[str, Any]) -> SeenFiles:
        made = cls()
        made._runs = {Series(*series): list(bounds) for *series, bounds in written["runs"]}
        packed = b64decode(written["others"])
        made._others = {packed[at : at + _WIDTH] for at in range(0, len(packed), _WIDTH)}
        return made

    def write(self) -> dict[str, Any]:
        """Return the set as plain JSON."""
        old = list(self._runs)[:-RECENT]
        for series in old:
            bounds = self._runs[series]
            names = sum(last - first + 1 for first, last in zip(bounds[::2], bounds[1::2], strict=True))
            if names * _WIDTH * 4 // 3 <= len(series.prefix) + len(series.suffix) + 16 + 4 * len(bounds):
                self._others.update(_digest(name) for name in _names(series, bounds))
                del self._runs[series]
        return {
            "runs": [[*series, bounds] for series, bounds in self._runs.items()],
            "others": b64encode(b"".join(sorted(self._others))).decode(),
        }

    def __contains__(self, name: str) -> bool:
        series, number = _parts(name)
        bounds = self._runs.get(series)
        if bounds is not None and number is not None:
            at = bisect_right(bounds, number)
            if at % 2 == 1 or (at > 0 and bounds[at - 1] == number):
                return True
        return bool(self._others) and _digest(name) in self._others

    def add(self, names: Iterable[str]) -> None:
        for name in names:
            if name in self:
                continue
            series, number = _parts(name)
            if number is None:
                self._others.add(_digest(name))
                continue
            bounds = self._runs.pop(series, [])
            _insert(bounds, number)
            self._runs[series] = bounds


def _parts(name: str) -> tuple[Series, int | None]:
    match = _NUMBER.search(name)
    if match is None:
        return Series(name, 0, ""), None
    return Series(name[: match.start()], len(match[1]), match[2]), int(match[1])


def _insert(bounds: list[int], number: int) -> None:
    """Insert a number that is in none of the ranges."""
    at = bisect_right(bounds, number)
    joins_last, joins_next = at > 0 and bounds[at - 1] == number - 1, at < len(bounds) and bounds[at] == number + 1
    if joins_last and joins_next:
        del bounds[at - 1 : at + 1]
    elif joins_last:
        bounds[at - 1] = number
    elif joins_next:
        bounds[at] = number
    else:
        bounds[at:at] = [number, number]


def _names(series: Series, bounds: list[int]) -> Iterable[str]:
    for first, last in zip(bounds[::2], bounds[1::2], strict=True):
        for number in range(first, last + 1):
            yield f"{series.prefix}{number:0{series.digits}d}{series.suffix}"


def _digest(name: str) -> bytes:
    return blake2b(name.encode("utf-8", "surrogateescape"), digest_size=_WIDTH).digest()
