"""A computed group, key or column means the same inside a query and in a subquery of its own: the same rows at the same
time, the same state, the same punctuation, for every kind of punctuation on time."""

from __future__ import annotations

import random
import re
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.config import Options
from millstream.control.mill import LocalMill
from tests.tries import tries

RISING = ("ts + 5", "ts * 2 - 1", "3 - (1 - ts)", "FLOOR(ts / 10)", "CAST(ts AS DOUBLE)", "ts / 4")
OTHER = ("-ts", "ts % 3", "CAST(ts AS VARCHAR)", "ts + v")
SPELLINGS = {
    "groups": (
        "SELECT {e} AS t, COUNT(*) AS n FROM s GROUP BY {e}",
        "SELECT t, COUNT(*) AS n FROM (SELECT {e} AS t FROM s) AS i GROUP BY t",
    ),
    "two groups": (
        "SELECT {e} AS t, k, MAX(v) AS n FROM s GROUP BY {e}, k",
        "SELECT t, k, MAX(v) AS n FROM (SELECT {e} AS t, k, v FROM s) AS i GROUP BY t, k",
    ),
    "time is read as well": (
        "SELECT {e} AS t, MAX(ts) AS n FROM s GROUP BY {e}",
        "SELECT t, MAX(ts) AS n FROM (SELECT {e} AS t, ts FROM s) AS i GROUP BY t",
    ),
    "having": (
        "SELECT {e} AS t, COUNT(*) AS n FROM s GROUP BY {e} HAVING COUNT(*) > 1 AND MAX(ts) > 4",
        "SELECT t, COUNT(*) AS n FROM (SELECT {e} AS t, ts FROM s) AS i GROUP BY t HAVING COUNT(*) > 1 AND MAX(ts) > 4",
    ),
    "distinct": ("SELECT DISTINCT {e} AS t, k FROM s", "SELECT DISTINCT t, k FROM (SELECT {e} AS t, k FROM s) AS i"),
}


def _punctuation(draw: random.Random, now: int) -> str:
    low = max(0, now - draw.randrange(6))
    kinds = [f"< {low}", f"<= {low}", f"<= {now}", str(low), f"{{{low}, {low + 1}}}", f"[{max(0, low - 3)}, {low}]"]
    more = draw.choice(["", "", ", k = 1"])
    return f"[ts {_spelled(draw.choice(kinds))}{more}]"


def _spelled(text: str) -> str:
    return text if text[0] == "<" else f"= {text}" if text[0].isdigit() else text


@pytest.mark.parametrize("shape", SPELLINGS)
@given(
    st.integers(0, 2**40), st.sampled_from(RISING + OTHER), st.sampled_from([1, 3]), st.sampled_from(["dfs", "batch:4"])
)
@settings(max_examples=tries(60), deadline=None)
def test_both_spellings_are_one_query(shape: str, seed: int, expression: str, shards: int, strategy: str) -> None:
    draw = random.Random(seed)
    mill = LocalMill(Options(shards=shards, strategy=strategy))
    clause = draw.choice(["", " PUNCTUATED ON (ts +)", " PUNCTUATED ON (ts +) PUNCTUATED ON (ts #)"])
    mill.execute(f"CREATE STREAM s (ts BIGINT, k BIGINT, v BIGINT) ORDER BY ts{clause}")
    for name, text in zip("ab", SPELLINGS[shape], strict=True):
        mill.add_query(name, text.format(e=expression))
    now = 0
    log: list[str] = []
    for number in range(draw.randrange(25)):
        now += draw.choice([0, 1, 3])
        row = f"{now} | {draw.randrange(3)} | {number}"
        log.append(_punctuation(draw, now) if draw.random() < 0.4 else row)
        mill.feed_line("s", log[-1])
        if draw.random() < 0.5:
            mill.batch()
            (rows, told, held), other = (
                (
                    Counter(mill.take_rows(name).rows()),
                    Counter(map(str, mill.take_punctuations(name))),
                    mill.state_rows(name),
                )
                for name in "ab"
            )
            assert (rows, told, held) == other, (clause, log)


JOINED = {
    "join": "SELECT x.v, y.v AS w FROM {l} AS x {join} {r} AS y ON {on}",
    "by key": "SELECT x.v, y.v AS w FROM {l} AS x {join} {r} AS y ON {on} AND x.k = y.k",
    "windows": "SELECT x.v, y.v AS w FROM {l} AS x [RANGE 20] {join} {r} AS y [RANGE 20] ON {on}",
}
PAIRS = (
    ("ts + 5", "ts"),
    ("ts * 2", "ts"),
    ("FLOOR(ts / 10)", "FLOOR(ts / 10)"),
    ("ts / 4", "ts / 4"),
    ("CAST(ts AS DOUBLE)", "v + 0.0"),
    ("v", "CAST(ts AS BIGINT) + 1"),
)


@pytest.mark.parametrize("shape", JOINED)
@given(
    st.integers(0, 2**40),
    st.sampled_from(PAIRS),
    st.sampled_from(["JOIN", "LEFT JOIN", "FULL JOIN"]),
    st.sampled_from([1, 3]),
)
@settings(max_examples=tries(60), deadline=None)
def test_both_spellings_are_one_join(shape: str, seed: int, pair: tuple[str, str], join: str, shards: int) -> None:
    draw = random.Random(seed)
    mill = LocalMill(Options(shards=shards))
    for name in ("l", "r"):
        clause = draw.choice(["", "", " PUNCTUATED ON (ts +)", " WATERMARK FOR ts AS ts - 2"])
        mill.execute(f"CREATE STREAM {name} (ts BIGINT, k BIGINT, v BIGINT) ORDER BY ts{clause}")
    one, other = (re.sub(r"\b(ts|v)\b", rf"{alias}.\1", text) for alias, text in zip("xy", pair, strict=True))
    mill.add_query("a", JOINED[shape].format(l="l", r="r", join=join, on=f"{one} = {other}"))
    left, right = (f"(SELECT {text} AS t, ts, k, v FROM {name})" for name, text in zip("lr", pair, strict=True))
    mill.add_query("b", JOINED[shape].format(l=left, r=right, join=join, on="x.t = y.t"))
    now = 0
    log: list[tuple[str, str]] = []
    for _ in range(draw.randrange(25)):
        now += draw.choice([0, 1, 3])
        row = f"{now} | {draw.randrange(3)} | {draw.randrange(30)}"
        log.append((draw.choice("lr"), f"[ts < {now}]" if draw.random() < 0.3 else row))
        mill.feed_line(*log[-1])
        if draw.random() < 0.5:
            mill.batch()
            found, other_found = ((Counter(mill.take_rows(q).rows()), mill.state_rows(q)) for q in "ab")
            assert found == other_found, (pair, join, log)


OWN = (
    "SELECT window_end, SUM({s}.{e}) AS u, MAX({b}) AS v FROM {s} [RANGE 20 SLIDE 5]",
    "SELECT {s}.{e} AS g, SUM({b}) AS u FROM {s} [RANGE 20 SLIDE 5] GROUP BY {s}.{e}",
    "SELECT window_end, k, COUNT(*) AS n, finality FROM {s} [RANGE 20] WHERE {e} > 3 GROUP BY k HAVING window_end > 20",
    "SELECT {e}, COUNT(*) AS n FROM {s} GROUP BY {e}",
    "SELECT window_end, MAX({e}) AS u FROM {s} [RANGE 20 ON {e}]",
    "SELECT a.{e}, COUNT(*) AS n FROM {s} [RANGE 5] a, {s} [RANGE 5] b WHERE a.{e} = b.{e} WINDOW [RANGE 9] "
    "GROUP BY a.{e}",
)


@pytest.mark.parametrize("time", [("ts", "window_end", "window_start"), ("window_end", "ts", "window_start")])
def test_columns_that_are_named_as_those_of_windows(time: tuple[str, str, str]) -> None:
    """They are columns as any other; in a select list with a window the name alone is the window's."""
    mill = LocalMill(Options(contracts="off"))
    streams = {"s": time, "r": tuple({"ts": "ts", "window_end": "e", "window_start": "b"}[name] for name in time)}
    for stream, (first, *others) in streams.items():
        columns = ", ".join(f"{name} BIGINT" for name in (first, "k", *others))
        named = dict(zip(time, (first, *others), strict=True))
        mill.execute(f"CREATE STREAM {stream} ({columns}) ORDER BY {first} PUNCTUATED ON ({named['window_end']} +)")
        for number, text in enumerate(OWN):
            written = text.format(s=stream, e=named["window_end"], b=named["window_start"])
            mill.add_query(f"{stream}{number}", written)
        mill.insert(stream, [(at, at % 2, (at * 7) % 40 + at, (at * 5) % 13) for at in range(0, 60, 3)])
    ends, rows = {"s": "window_end", "r": "e"}, Counter[int]()
    for place, bound in ((None, 45), (0, 62)):  # the column, then time
        for stream in streams:
            mill.punctuate(stream, f"[{ends[stream] if place is None else streams[stream][place]} < {bound}]")
        mill.batch()
        for number in range(len(OWN)):
            found, expected = (Counter(mill.take_rows(f"{stream}{number}").rows()) for stream in streams)
            rows[number] += found.total()
            assert found == expected, OWN[number]
    assert all(rows[number] for number in range(len(OWN)))
