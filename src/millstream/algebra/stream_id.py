"""The identity of a stream: the declared stream that it comes of, and how it is made of it.

| text | stream |
|---|---|
| `bids` | a declared stream |
| `bids__late`, `bids__bad` | its companions: its late tuples, its bad rows |
| `bids^7` | a reading of it, with a place, a source and operators of its own; it has companions too |
| `bids~4be0` | a partial stream: the partial aggregates of its tuples, named by a digest |
| `@q/0.3` | what shard 3 sends of the output of the query part `q/0` to a later stage |
| `@q/0` | what all shards send of it |

The texts are the names of streams in statements, logs, checkpoints and reports. No other module takes them apart.

>>> StreamId.of("bids^7__late")
StreamId(base='bids', reading=7, companion='late', partial='', part='', shard=None)
>>> str(StreamId(part="q/0", shard=3)), StreamId.of("bids^7~4be0").source
('@q/0.3', 'bids^7')
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import NamedTuple

MARKS = ".^~@/#"
"""Characters that separate the parts of names that Millstream itself makes. No declared name has one of them: no two
things have the same name."""
_KNOWN = 4096
"""Number of texts whose streams are remembered: a text is taken apart once."""
_SENT = re.compile(r"@(?P<part>.+?)(?:\.(?P<shard>[0-9]+))?", re.DOTALL)
_READ = re.compile(r"(?P<base>.*?)(?:\^(?P<reading>[0-9]+))?(?:__(?P<companion>late|bad)|~(?P<partial>.+))?", re.DOTALL)


@dataclass(frozen=True)
class StreamId:
    """Either `base` with what is made of it (a companion or a partial stream), or a `part` of a query with the `shard`
    that sends its output; no shard: all of them."""

    base: str = ""
    reading: int | None = None
    companion: str = ""
    partial: str = ""
    part: str = ""
    shard: int | None = None

    @staticmethod
    @lru_cache(_KNOWN)
    def of(text: str) -> StreamId:
        """The stream of a text."""
        if (sent := _SENT.fullmatch(text)) is not None:
            return StreamId(part=sent["part"], shard=_number(sent["shard"]))
        read = _READ.fullmatch(text)
        assert read is not None
        return StreamId(read["base"], _number(read["reading"]), read["companion"] or "", read["partial"] or "")

    def __str__(self) -> str:
        return self._text

    @cached_property
    def _text(self) -> str:
        if self.part:
            return f"@{self.part}" if self.shard is None else f"@{self.part}.{self.shard}"
        reading = "" if self.reading is None else f"^{self.reading}"
        return f"{self.base}{reading}{self.companion and '__'}{self.companion}{self.partial and '~'}{self.partial}"

    @cached_property
    def late(self) -> str:
        """The companion with its late tuples."""
        return str(replace(self, companion="late"))

    @cached_property
    def bad(self) -> str:
        """The companion with its bad rows."""
        return str(replace(self, companion="bad"))

    @cached_property
    def source(self) -> str:
        """The stream, or the reading, whose source gives it: without the companion and the partial stream."""
        return str(replace(self, companion="", partial=""))

    @cached_property
    def whole(self) -> str:
        """The stream that a partial stream is made of; any other stream itself."""
        return str(replace(self, partial=""))

    @property
    def names(self) -> tuple[str, str, str]:
        """Its text, and those of what it is made of."""
        return str(self), self.whole, self.source

    @cached_property
    def declared(self) -> str:
        """The stream that a reading is of; any other stream itself."""
        return str(replace(self, reading=None))

    @property
    def exchanged(self) -> bool:
        """True if another stage sends it."""
        return bool(self.part)

    @property
    def sender(self) -> str:
        """The number of the part that sends it, below the topmost part of the query: `0/1`."""
        return part_path(self.part)[1]


def part_below(part: str, number: int) -> str:
    """The name of the part of a query that sends to `part` as its input of this number."""
    return f"{part}/{number}"


def part_path(part: str) -> tuple[str, str]:
    """The name that all parts of a query share, and the number of one below the topmost part; empty: it is the topmost.

    >>> part_path(part_below(part_below("q", 0), 1))
    ('q', '0/1')
    """
    query, _, number = part.partition("/")
    return query, number


def _number(text: str | None) -> int | None:
    return None if text is None else int(text)


class PlaceId(NamedTuple):
    """The place of a mill's stream in an offset: each reading of the stream has a place of its own.

    >>> str(PlaceId("m", "bids^7", 12)), PlaceId.of("m/bids")
    ('m/bids^7@12', PlaceId(mill='m', stream='bids', number=0))
    """

    mill: str
    stream: str
    number: int

    @staticmethod
    def of(text: str) -> PlaceId:
        place, _, number = text.partition("@")
        mill, _, stream = place.partition("/")
        return PlaceId(mill, stream, int(number or 0))

    def __str__(self) -> str:
        return f"{self.mill}/{self.stream}@{self.number}" if self.number else f"{self.mill}/{self.stream}"
