"""The page on the life of a query prints what its streams, queries and tuples produce."""

from __future__ import annotations

import os
import re
from typing import Any

from millstream.control.mill import LocalMill
from millstream.runtime.engine import format_table
from tests.docs.blocks import FENCED, blocks_of, check
from tests.paths import DOCS

PAGE = DOCS / "life-of-a-query.md"
WORDS = {"ets": "{} promises {}", "handover": "{} → {} {}", "backtrack": "{} → {}", "execute": "{}"}


def test_every_block() -> None:
    streams, queries = (block.text for block in blocks_of(PAGE) if block.kind == "sql")
    printed = [*plans(streams, queries), *happenings(streams, queries)]
    shown = [block for block in blocks_of(PAGE) if not block.info and "─▶" not in block.text]
    assert len(shown) == len(printed)
    if os.environ.get("MILLSTREAM_UPDATE_GOLDEN"):
        rewrite(printed)
        return
    for block, text in zip(shown, printed, strict=True):
        check(block, block.text, text)


def plans(streams: str, queries: str) -> list[str]:
    mill = LocalMill()
    mill.execute(streams)
    selects = [text.partition("AS\n")[2] for text in queries.split(";\n") if text.strip()]
    made = [mill.execute(f"EXPLAIN {kind} {text}") for kind in ("LOGICAL", "", "PHYSICAL") for text in selects]
    mill.execute(queries)
    made.append(format_table(mill.hosts("joined")[0].graph.table()))
    spread = LocalMill()
    spread.execute(f"SET shards = 2; {streams}")
    return [*made, "\n".join(spread.execute(f"EXPLAIN PHYSICAL {selects[0]}").splitlines()[:2])]


def happenings(streams: str, queries: str) -> list[str]:
    """The trace of a tuple, the trace of a request for time, and the rows that time releases."""
    mill, events = LocalMill(), list[tuple[Any, ...]]()
    mill.execute(streams + queries)
    mill.feed_line("auctions", "1 | 70 | 10")
    mill.feed_line("auctions", "2 | 71 | 10")
    mill.batch()
    mill.advance(3_000_000)
    mill.hosts("joined")[0].graph.trace = events.append
    mill.feed_line("bids", "1 | 500 | 12.5")
    mill.batch()
    of_tuple = walk(events)
    assert mill.take_rows("joined").rows() == [(1, 12.5, 70)] and mill.state_rows("joined") == 2
    mill.feed_line("bids", "[1, *, *]")
    mill.batch()
    assert [str(pattern) for pattern in mill.take_punctuations("joined")] == ["[auction = 1]"]
    assert mill.state_rows("joined") == 1
    events.clear()
    mill.advance(8_000_000)
    of_time = walk(events)
    rows = [f"{end} | {bids}" for end, bids in mill.take_rows("counted").rows()]
    return [of_tuple, of_time.partition("\nbacktrack Project → WindowAggregate")[0], "\n".join(rows)]


def walk(events: list[tuple[Any, ...]]) -> str:
    """The first activation, without the digests in names."""
    first = events[: events.index(("exit",))]
    lines = [
        f"{kind.replace('over', ' over'):<9} {WORDS.get(kind, '').format(*names)}".rstrip() for kind, *names in first
    ]
    return re.sub(r"-[0-9a-f]{10}", "", "\n".join(lines))


def rewrite(printed: list[str]) -> None:
    """Put what is printed into the untagged blocks, in their order."""
    left = iter(printed)

    def new(found: re.Match[str]) -> str:
        return found[0] if found[1] or "─▶" in found[2] else f"```\n{next(left)}\n```"

    PAGE.write_text(FENCED.sub(new, PAGE.read_text(encoding="utf-8")), encoding="utf-8")
