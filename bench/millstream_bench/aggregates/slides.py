"""Frames that slide by many tuples at a time: partial results for panes, against every tuple of the frame."""

from __future__ import annotations

from millstream_bench.aggregates.drive import Maker, abreast, best, bids, check, golden, maker, ratio, running
from millstream_bench.aggregates.sizes import Sizes
from millstream_bench.suite.report import Finding

COLUMNS = ("slide", "panes", "every tuple", "ratio", "held", "held", "loop: panes", "every tuple", "ratio")


def slides(sizes: Sizes) -> Finding:
    """Speed and state by slide, with panes and without; on columns, and for an aggregate that is a loop."""
    window = sizes.slide_window
    title = f"SUM over {window:,} tuples by slide, tuples per CPU-second"
    found = Finding("slides", title, "4.6, 4.7", COLUMNS)
    rows = bids(sizes.columns, 1)
    few = rows.head(min(2 * window + sizes.rows, rows.height))
    frame = f"ROWS BETWEEN {window - 1} PRECEDING AND CURRENT ROW"
    for slide in sizes.slides:
        over = f"ROWS {window - 1} PRECEDING SLIDE {slide}"
        total = f"SELECT ts, SUM(price) OVER (ORDER BY ts {frame}) AS x FROM bids"
        right = golden(f"SELECT x FROM ({total}) WHERE (ts + 1) % {slide} = 0 ORDER BY ts", rows)
        columns = {"panes": running("SUM(price)", over), "every": _without_panes(window, slide)}
        loops = {"panes": running("pane_sum(price)", over), "every": running("loop_sum(price)", over)}
        traces = abreast(columns, rows, sizes.rounds)
        looped = abreast(loops, few, 1, skip=few.height // 2)
        for name in ("panes", "every"):
            check(f"slide {slide}, {name}", traces[name][0].results, right)
            check(f"slide {slide}, loop, {name}", looped[name][0].results, right)
        speeds = [round(best(traces[name])) for name in ("panes", "every")]
        held = [traces[name][0].held for name in ("panes", "every")]
        slow = [round(best(looped[name])) for name in ("panes", "every")]
        gain, gain_looped = ratio(traces, "every", "panes"), ratio(looped, "every", "panes")
        found.rows.append((slide, *speeds, gain, *held, *slow, gain_looped))
        found.numbers[str(slide)] = {"ratio": gain, "held": held, "ratio_loop": gain_looped}
    for name, position in (
        ("panes", 1),
        ("every", 2),
        ("held, panes", 4),
        ("held, every", 5),
        ("loop, panes", 6),
        ("loop, every", 7),
    ):
        found.curves[name] = {"slide": [row[0] for row in found.rows], "y": [row[position] for row in found.rows]}
    return found


def _without_panes(window: int, slide: int) -> Maker:
    """The frame of every tuple, of which every n-th is emitted."""
    numbered = "ROW_NUMBER() OVER (ROWS UNBOUNDED PRECEDING) AS n"
    every = f"SELECT SUM(price) OVER (ROWS {window - 1} PRECEDING) AS x, {numbered} FROM bids"
    return maker(f"SELECT x FROM ({every}) WHERE n % {slide} = 0")
