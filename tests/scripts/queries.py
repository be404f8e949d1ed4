"""Random queries over streams of the columns `k`, `v`, `ts`."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

EXTERNAL_SHAPES = (
    "select", "union", "window", "nested", "rolled up", "by time", "groups", "join", "over join", "by another key",
    "outer", "distinct", "merged window", "by rising time", "having", "groups and tuples", "padded and tuples",
    "by rising key", "running", "running", "sequence", "three", "joined windows", "windows and tuples", "three deep",
    "key join", "groups over join", "distinct over join", "by time of a side",
)  # fmt: skip
CLOCKED_SHAPES = (
    "select", "union", "window", "nested", "rolled up", "join", "by another key", "merged window", "having", "running",
)  # fmt: skip
FRAMES = ("ROWS 2 PRECEDING", "UNBOUNDED PRECEDING", "RANGE 4{} PRECEDING", "RANGE 5{} PRECEDING SLIDE 3{}")
RISING = ("ts + 5", "ts * 2 - 1", "3 - (1 - ts)")
HUGE = 1 << 62
"""The sum of two such values does not fit BIGINT."""


def query(chance: Random, sources: tuple[str, ...], kinds: Mapping[str, str]) -> str:
    clocked = kinds[sources[0]] in ("latent", "internal")
    unit = " SECONDS" if clocked else ""
    a, b = (_source(chance, chance.choice(sources)) for _ in range(2))
    size, slide = chance.choice(((5, 5), (6, 2), (10, 5)) if clocked else ((5, 5), (6, 2), (7, 3), (2, 5)))
    window = f"[RANGE {size}{unit} SLIDE {slide}{unit}]"
    more = f"[RANGE {2 * slide}{unit}]"
    wide = chance.choice((4, 20))
    bracket = f"[RANGE {wide}{unit}]"
    where = chance.choice(("", " AND x.v <> y.v", " AND x.v + y.v > 4"))
    join = f"FROM {a} AS x {bracket} JOIN {b} AS y {bracket} ON x.k = y.k{where}"
    match chance.choice(CLOCKED_SHAPES if clocked else EXTERNAL_SHAPES):
        case "select":
            return f"SELECT k * 2 AS k, v FROM {a} AS x WHERE v <> 1"
        case "union":
            return f"SELECT k, v FROM {a} AS x UNION ALL SELECT k, v FROM {b} AS y WHERE v < 4"
        case "window":
            group = chance.choice(("", "k"))
            return f"SELECT {group and 'k, '}COUNT(*) AS n, SUM(v) AS s FROM {a} AS x {window}{group and ' GROUP BY k'}"
        case "nested":
            inner = f"(SELECT window_end, k, SUM(v) AS v FROM {a} AS x {window} GROUP BY k) AS i"
            shown = "" if clocked else "window_end, "  # the reference has numbers where the clock has times
            return f"SELECT {shown}SUM(v) AS s, COUNT(*) AS n FROM {inner} GROUP BY window_end"
        case "rolled up":
            inner = f"(SELECT k, SUM(v) AS v FROM {a} AS x {window} GROUP BY k) AS i"
            return f"SELECT k, SUM(v) AS s, COUNT(*) AS n FROM {inner} {more} GROUP BY k"
        case "by time":
            return f"SELECT ts, COUNT(*) AS n, SUM(v) AS s FROM {a} AS x GROUP BY ts"
        case "merged window":
            union = f"(SELECT k, v, ts FROM {a} AS x WHERE v <> 3 UNION ALL SELECT k, v, ts FROM {b} AS y WHERE v > 1)"
            return f"SELECT COUNT(*) AS n, SUM(v) AS s FROM {union} AS u {window}"
        case "by rising time":
            rising = chance.choice(RISING)
            return f"SELECT {rising} AS t, COUNT(*) AS n, MAX(ts) AS top FROM {a} AS x GROUP BY {rising}"
        case "having":
            # Of two tuples and more the sum does not fit, but such a group has no row.
            return (
                f"SELECT k, SUM({HUGE} + v) AS s, MAX(v) AS top FROM {a} AS x {window} GROUP BY k HAVING COUNT(*) < 2"
            )
        case "groups":
            return f"SELECT k, COUNT(*) AS n, MAX(v) AS top FROM {a} AS x GROUP BY k"
        case "join":
            return f"SELECT x.k, x.v, y.v AS w {join}"
        case "over join":
            return f"SELECT k, COUNT(*) AS n FROM (SELECT x.k AS k, y.v AS v {join}) AS j {window} GROUP BY k"
        case "by another key":
            return f"SELECT v, COUNT(*) AS n FROM (SELECT x.k AS k, y.v AS v {join}) AS j {window} GROUP BY v"
        case "groups over join":
            return f"SELECT x.k, y.v, COUNT(*) AS n {join} GROUP BY x.k, y.v"
        case "by time of a side":
            sides = chance.choice(("{0} AS x JOIN {1} AS y", "{1} AS y LEFT JOIN {0} AS x"))
            return f"SELECT y.ts, COUNT(*) AS n FROM {sides.format(a, b)} ON x.k = y.k AND x.ts <= y.ts GROUP BY y.ts"
        case "distinct over join":
            return f"SELECT DISTINCT x.k, y.v AS v {join}"
        case "groups and tuples":
            return f"SELECT k, v FROM {b} AS y UNION ALL SELECT k, SUM(v) AS v FROM {a} AS x GROUP BY k"
        case "padded and tuples":
            padded = f"{a} AS x {bracket} LEFT JOIN {b} AS y {bracket} ON x.k = y.k"
            return f"SELECT k, v FROM {a} AS z UNION ALL SELECT x.k, y.v FROM {padded}"
        case "by rising key":
            return f"SELECT x.k, y.v AS w FROM {a} AS x JOIN {b} AS y ON x.ts + {slide} = y.ts"
        case "running":
            frame = chance.choice(FRAMES).format(unit, unit)
            by, call = chance.choice(("", "PARTITION BY k ")), chance.choice(("SUM(v)", "MIN(v)", "COUNT(*)"))
            return f"SELECT k, v, {call} OVER ({by}{frame}) AS z FROM {a} AS x"
        case "sequence":
            mode, keyed = chance.choice(("RECENT", "CHRONICLE")), chance.choice(("", " AND x.k = y.k"))
            return f"SELECT x.v, y.v AS w FROM {a} AS x, {b} AS y WHERE SEQ(x, y) MODE {mode}{keyed}"
        case "key join":
            over = f"OVER (RANGE {wide} PRECEDING)"
            return f"SELECT x.k, x.v, y.v AS w FROM {a} AS x {over} KEY JOIN, {b} AS y {over} WHERE x.k = y.k{where}"
        case "three":
            c, times = _source(chance, chance.choice(sources)), chance.choice(("", " AND y.ts > x.ts"))
            from_ = f"{a} AS x {bracket}, {b} AS y {bracket}, {c} AS z {bracket}"
            return f"SELECT x.k, x.v, y.v AS w, z.v AS u FROM {from_} WHERE x.k = y.k AND y.k = z.k{where}{times}"
        case "joined windows":
            one, other = (
                f"(SELECT window_end, k, SUM(v) AS v FROM {source} AS i {window} GROUP BY k)" for source in (a, b)
            )
            on = "x.k = y.k AND x.window_end = y.window_end"
            return f"SELECT x.k, x.v, y.v AS w, x.window_end FROM {one} AS x JOIN {other} AS y ON {on}"
        case "windows and tuples":
            windows = f"SELECT k, SUM(v) AS v FROM {a} AS x {window} GROUP BY k"
            return f"SELECT COUNT(*) AS n, SUM(v) AS s FROM ({windows} UNION ALL SELECT k, v FROM {b} AS y) AS u {more}"
        case "three deep":
            inner = f"(SELECT k, SUM(v) AS v FROM {a} AS x {window} GROUP BY k) AS i"
            middle = f"(SELECT k, SUM(v) AS v, COUNT(*) AS n FROM {inner} {more} GROUP BY k) AS j"
            return f"SELECT SUM(v) AS s, SUM(n) AS n FROM {middle} [RANGE {4 * slide}]"
        case "outer":
            return f"SELECT x.k, x.v, y.v AS w FROM {a} AS x {bracket} LEFT JOIN {b} AS y {bracket} ON x.k = y.k"
        case _:
            return f"SELECT DISTINCT k, v FROM {a} AS x"


def _source(chance: Random, name: str) -> str:
    return chance.choice((name, name, f"(SELECT k, v, ts FROM {name} WHERE v > {chance.randint(0, 3)})"))
