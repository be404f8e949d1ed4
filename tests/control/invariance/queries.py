"""Random queries, by their shape, over the streams s1, s2, s3 with the columns k, v, ts."""

from __future__ import annotations

import re

from hypothesis import strategies as st

STREAMS = ("s1", "s2", "s3")
SHAPES = (
    "select",
    "union",
    "aggregate",
    "groups",
    "functions",
    "functions by another key",
    "join",
    "over join",
    "by another key",
    "outer",
    "three",
    "table",
    "closed",
    "sequence",
    "key join",
    "distinct",
    "denoise",
    "expensive",
    "theta",
    "windows of windows",
    "by window",
    "joined windows",
    "windows and tuples",
    "groups and tuples",
    "windows of groups",
    "joined groups",
    "padded and tuples",
    "slots and tuples",
    "merged window",
    "by rising time",
    "having",
    "running",
    "diverted",
    "written table",
    "by time of a side",
    *(HELD := ("groups over join", "distinct over join", "window over join", "join over join")),
)
"""Those of `HELD` read punctuation that a join holds back."""


FUNCTIONS = (
    "COUNT(DISTINCT v)",
    "SUM(DISTINCT v) FILTER (WHERE v > 1)",
    "ROUND(STDDEV(v), 9)",
    "ROUND(VAR_POP(v), 9)",
    "MEDIAN(v)",
    "QUANTILE(v, 0.3)",
    "FIRST(v)",
    "LAST(v) FILTER (WHERE v < 5)",
    "CAST(ARRAY_AGG(v) AS VARCHAR)",
    "CAST(ARRAY_AGG(DISTINCT v) AS VARCHAR)",
    "STRING_AGG(v, '-')",
    "BOOL_OR(v > 4)",
    "COUNT(*) FILTER (WHERE v > 2)",
)


def _source(draw: st.DrawFn, name: str) -> str:
    if draw(st.booleans()):
        return name
    return f"(SELECT k, v, ts FROM {name} WHERE v > {draw(st.integers(0, 4))})"


def _window(draw: st.DrawFn, kinds: tuple[str, str, str]) -> str:
    options = ["[RANGE 4]", "[RANGE 0]", "[RANGE 20]", ""]
    if kinds == ("ordered", "ordered", "ordered"):
        options += ["[ROWS 2]", "[ROWS 0]"]
    return draw(st.sampled_from(options))


def in_seconds(query: str) -> str:
    """The query with windows over the clock."""
    timed = re.sub(r"\b(RANGE|SLIDE) (\d+)", r"\1 \2 SECONDS", query)
    return re.sub(r"(ROWS \w+ PRECEDING SLIDE \d+) SECONDS", r"\1", timed)


@st.composite
def queries(draw: st.DrawFn, kinds: tuple[str, str, str], shape: str) -> str:
    a, b, c = (_source(draw, name) for name in draw(st.permutations(STREAMS)))
    where = draw(st.sampled_from(["", "AND x.v <> y.v", "AND x.v + y.v > 4"]))
    left, right, third = (_window(draw, kinds) for _ in range(3))
    join = f"FROM {a} AS x {left} JOIN {b} AS y {right} ON x.k = y.k {where}"
    size, slide = draw(st.sampled_from([(5, 5), (6, 2), (7, 3), (2, 5)]))
    window = f"[RANGE {size} SLIDE {slide}]"
    match shape:
        case "select":
            return f"SELECT k * 2 AS k, v, ts FROM {a} AS x WHERE k <> 1"
        case "union":
            return f"SELECT k, v, ts FROM {a} AS x UNION ALL SELECT k, v, ts FROM {b} AS y WHERE v < 4"
        case "aggregate":
            group = draw(st.sampled_from(["GROUP BY k", ""]))
            key = "k, " if group else ""
            return f"SELECT window_end, {key}COUNT(*) AS n, SUM(v) AS s, MIN(v) AS lo FROM {a} AS x {window} {group}"
        case "groups":
            return f"SELECT k, COUNT(*) AS n, AVG(v) AS mean FROM {a} AS x GROUP BY k"
        case "functions" | "functions by another key":
            calls = draw(st.lists(st.sampled_from(FUNCTIONS), min_size=1, max_size=4, unique=True))
            items = ", ".join(f"{call} AS c{number}" for number, call in enumerate(calls))
            if shape == "functions":
                closed = draw(st.sampled_from([window, ""]))
                return f"SELECT k, {items} FROM {a} AS x {closed} GROUP BY k"
            inner = f"(SELECT window_end, k, MAX(v) AS v FROM {a} AS x [RANGE 2] GROUP BY k)"
            return f"SELECT window_end, {items} FROM {inner} AS w {window}"
        case "join":
            return f"SELECT x.k, x.v, y.v AS w, y.ts {join}"
        case "over join":
            inner = f"(SELECT x.k AS k, y.v AS v {join}) AS j"
            return f"SELECT window_end, k, COUNT(*) AS n FROM {inner} {window} GROUP BY k"
        case "by another key":
            inner = f"(SELECT x.k AS k, y.v AS v {join}) AS j"
            return f"SELECT window_end, v, COUNT(*) AS n, MAX(k) AS top FROM {inner} {window} GROUP BY v"
        case "groups over join":
            return f"SELECT x.k, y.ts, COUNT(*) AS n {join} GROUP BY x.k, y.ts"
        case "by time of a side":
            closed = "x.k = y.k AND x.ts <= y.ts"
            return f"SELECT y.ts, COUNT(*) AS n FROM {a} AS x JOIN {b} AS y ON {closed} GROUP BY y.ts"
        case "distinct over join":
            return f"SELECT DISTINCT x.k, y.ts {join}"
        case "window over join":
            inner = f"(SELECT x.k AS k, y.v AS v, y.ts AS t {join}) AS j"
            return f"SELECT window_end, k, COUNT(*) AS n FROM {inner} [RANGE 5 ON t] GROUP BY k"
        case "join over join":
            return f"SELECT x.k, y.v, z.v AS u, z.ts {join} JOIN {c} AS z {third} ON z.k = y.k AND z.ts = y.ts"
        case "outer":
            kind = draw(st.sampled_from(["LEFT", "RIGHT", "FULL"]))
            ranges = [draw(st.sampled_from(["[RANGE 4]", "[RANGE 20]", ""])) for _ in range(2)]
            on = f"ON x.k = y.k {where if kind == 'LEFT' else ''}"
            return f"SELECT x.k, x.v, y.v AS w FROM {a} AS x {ranges[0]} {kind} JOIN {b} AS y {ranges[1]} {on}"
        case "three":
            chosen = f"FROM {a} AS x {left}, {b} AS y {right}, {c} AS z {third} WHERE x.k = y.k AND y.k = z.k"
            times = draw(st.sampled_from(["", "AND y.ts > x.ts", "AND z.ts >= y.ts - 2 AND x.ts >= z.ts"]))
            return f"SELECT x.k, x.v, y.v AS w, z.v AS u {chosen} {where} {times}"
        case "table":
            kind = draw(st.sampled_from(["JOIN", "LEFT JOIN"]))
            return f"SELECT x.v, t.name, x.ts FROM {a} AS x {kind} t ON x.k = t.k"
        case "closed":
            inner = draw(st.sampled_from(["s1", "(SELECT k, v, ts FROM s1 WHERE v > 1)"]))
            aggregate = f"SELECT x.k, COUNT(*) AS n FROM {inner} AS x GROUP BY x.k"
            return draw(st.sampled_from([aggregate, f"SELECT x.k, x.v FROM {inner} AS x", "SELECT k, v FROM s1__late"]))
        case "sequence":
            mode = draw(st.sampled_from(["RECENT", "CHRONICLE"]))
            keyed = draw(st.sampled_from(["", "AND x.k = y.k"]))
            once = draw(st.sampled_from(["", "OVER (UNLIMITED PRECEDING) KEY JOIN"]))
            return f"SELECT x.v, y.v AS w FROM {a} AS x {once}, {b} AS y WHERE SEQ(x, y) MODE {mode} {keyed}"
        case "key join":
            over = [f"OVER (RANGE {draw(st.integers(1, 6))} PRECEDING){once}" for once in (" KEY JOIN", "")]
            sides = draw(st.sampled_from([(over[0], ""), (over[0], over[1]), (over[1], over[0]), (over[0], over[0])]))
            chosen = f"{a} AS x {sides[0]}, {b} AS y {sides[1]} WHERE x.k = y.k"
            return f"SELECT x.k, x.v, y.v AS w FROM {chosen} {where}"
        case "denoise":
            mode = draw(st.sampled_from(["", ", LAZY", ", UNORDERED"]))
            text = f"DENOISE(TABLE {a}, DESCRIPTOR(k), {draw(st.integers(0, 6))}, {draw(st.integers(1, 3))}{mode})"
            if draw(st.booleans()):
                return f"SELECT k, v, ts FROM {text} AS x"
            return f"SELECT window_end, v, COUNT(*) AS n FROM {text} AS x {window} GROUP BY v"
        case "expensive":
            aside = draw(st.sampled_from(["", ", aside => 3", ", aside => 0"]))
            text = f"EXPENSIVE(TABLE {a}, v * 2 AS w, budget => {draw(st.integers(1, 5))}{aside})"
            if draw(st.booleans()):
                return f"SELECT k, w, ts FROM {text} AS x"
            return f"SELECT window_end, w, COUNT(*) AS n FROM {text} AS x {window} GROUP BY w"
        case "distinct":
            return f"SELECT DISTINCT k, v FROM {a} AS x"
        case "windows of windows":
            inner = f"(SELECT window_end, k, SUM(v) AS v FROM {a} AS x {window} GROUP BY k) AS w"
            outer = draw(st.sampled_from(["[RANGE 10]", "[RANGE 10 SLIDE 5]", "[RANGE 6 ON window_end]"]))
            group, key = draw(st.sampled_from([("GROUP BY k", "k, "), ("", "")]))
            return f"SELECT window_end, {key}COUNT(*) AS n, SUM(v) AS s FROM {inner} {outer} {group}"
        case "by window":
            inner = f"(SELECT window_start, window_end, window_time, k, SUM(v) AS v FROM {a} AS x {window} GROUP BY k)"
            name = draw(st.sampled_from(["window_start", "window_end", "window_time", "window_start, k"]))
            return f"SELECT {name}, COUNT(*) AS n, MAX(v) AS top FROM {inner} AS w GROUP BY {name}"
        case "joined windows":
            one = f"(SELECT window_start, window_end, k, SUM(v) AS v FROM {a} AS x {window} GROUP BY k) AS x"
            other = f"(SELECT window_start, window_end, k, COUNT(*) AS v FROM {b} AS y [RANGE 10] GROUP BY k) AS y"
            names = draw(st.sampled_from(["window_start", "window_end"]))
            on = draw(st.sampled_from([f"x.{names} = y.{names}", f"x.{names} BETWEEN y.{names} - 6 AND y.{names}"]))
            return f"SELECT x.k, x.v, y.v AS w, x.window_end FROM {one} JOIN {other} ON x.k = y.k AND {on}"
        case "written table":
            kind, table = draw(st.sampled_from(["JOIN", "LEFT JOIN"])), draw(st.sampled_from(["w", "spread"]))
            return f"SELECT x.k, x.v, {table}.v AS w, x.ts FROM {a} AS x {kind} {table} ON x.k = {table}.k"
        case "diverted":
            return f"SELECT k, v, ts FROM {draw(st.sampled_from(['d', 'd', 'd WHERE k <> 1']))}"
        case "running":
            call = draw(st.sampled_from(["SUM(v)", "COUNT(*)", "MIN(v)", "MAX(v)", "AVG(v)"]))
            by = draw(st.sampled_from(["", "PARTITION BY k "]))
            frames = ["ROWS 2 PRECEDING", "RANGE 4 PRECEDING", "RANGE 0 PRECEDING", "UNBOUNDED PRECEDING"]
            frames += ["ROWS 3 PRECEDING SLIDE 2", "RANGE 5 PRECEDING SLIDE 3", "ROWS UNBOUNDED PRECEDING SLIDE 2"]
            frames += ["RANGE 4 PRECEDING ACTIVE EXPIRATION", "RANGE 0 PRECEDING ACTIVE EXPIRATION"]
            frame = draw(st.sampled_from(frames))
            return f"SELECT k, ts, v, {call} OVER ({by}{frame}) AS z, MAX(v + k) OVER ({by}{frame}) AS y FROM {a} AS x"
        case "windows and tuples":
            windows = f"SELECT k, SUM(v) AS v, window_time AS ts FROM {a} AS x {window} GROUP BY k"
            union = f"({windows} UNION ALL SELECT k, v, ts FROM {b} AS y)"
            return f"SELECT window_end, SUM(v) AS s FROM {union} AS u [RANGE 10]"
        case "groups and tuples":
            groups = f"SELECT k, SUM(v) AS v FROM {a} AS x GROUP BY k"
            return f"SELECT k, v FROM {b} AS y UNION ALL {groups}"
        case "windows of groups":
            groups = f"(SELECT k, v, COUNT(*) AS n FROM {a} AS x GROUP BY k, v) AS g"
            group = draw(st.sampled_from(["k", "v"]))
            return f"SELECT window_end, {group}, SUM(n) AS n FROM {groups} {window} GROUP BY {group}"
        case "joined groups":
            groups = f"(SELECT k, SUM(v) AS v FROM {a} AS x GROUP BY k) AS x"
            return f"SELECT x.k, x.v, y.v AS w FROM {groups} [RANGE 4] JOIN {b} AS y [RANGE 6] ON x.k = y.k"
        case "padded and tuples":
            padded = f"{a} AS x [RANGE 4] LEFT JOIN {b} AS y [RANGE 2] ON x.k = y.k"
            return f"SELECT k, v FROM {c} AS z UNION ALL SELECT x.k, y.v FROM {padded}"
        case "slots and tuples":
            call = draw(st.sampled_from(["SUM(v) OVER (PARTITION BY k RANGE 5 PRECEDING SLIDE 3)", "NULL"]))
            slots = f"SELECT k, {call} AS v FROM {a} AS x"
            if call == "NULL":
                slots = f"SELECT k, v FROM DENOISE(TABLE {a}, DESCRIPTOR(k), 4, 2, LAZY) AS x"
            return f"SELECT k, v FROM {b} AS y UNION ALL {slots}"
        case "merged window":
            union = f"(SELECT k, v, ts FROM {a} AS x WHERE v <> 3 UNION ALL SELECT k, v, ts FROM {b} AS y WHERE v > 1)"
            return f"SELECT window_end, COUNT(*) AS n, SUM(v) AS s FROM {union} AS u {window}"
        case "by rising time":
            rising = draw(st.sampled_from(["ts + 5", "ts * 2 - 1", "FLOOR(ts / 4)", "CAST(ts AS DOUBLE)"]))
            return f"SELECT {rising} AS t, COUNT(*) AS n, MAX(ts) AS top FROM {a} AS x GROUP BY {rising}"
        case "having":
            total = f"SUM({1 << 62} + v)"  # of two tuples and more it does not fit, but such a group has no row
            return f"SELECT window_end, k, {total} AS s FROM {a} AS x {window} GROUP BY k HAVING COUNT(*) < 2"
        case _:
            return f"SELECT x.v, y.v AS w FROM {a} AS x [RANGE 3], {b} AS y [RANGE 3] WHERE x.v < y.v"
