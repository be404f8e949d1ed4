"""PWJoin: punctuation and time windows together, against the plain window join."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate

import numpy as np

from millstream_bench.joins.drive import PAGE_ROWS, Trace, by_turns, plain, pwjoin, run, same
from millstream_bench.joins.sizes import Sizes
from millstream_bench.joins.streams import GAP, SECOND, Punctuated, in_step, moments, steps, stream
from millstream_bench.suite.report import Finding, thinned

WINDOWS = (1, 5, 15)
WIDTH = 25


def windows(sizes: Sizes) -> Finding:
    """State and speed by the length of the window, in small steps and in pages."""
    count, every = sizes.windowed, 100
    made = Finding(
        "windows",
        f"PWJoin and the plain window join; a punctuation every {every} tuples",
        "8.1, 8.2",
        ("window s", "step", "state", "plain", "saved", "CPU s", "plain", "ratio"),
    )
    streams = in_step(count // 2, every, width=WIDTH)
    for seconds in WINDOWS:
        for rows in (512, min(2 * PAGE_ROWS, count // 4)):
            traces, ratio = _with_and_without(streams, rows, seconds * SECOND, sizes.rounds)
            first = {name: found[0] for name, found in traces.items()}
            same(f"window {seconds} s", first)
            held = {name: trace.steady(trace.state) for name, trace in first.items()}
            best = {name: min(trace.seconds for trace in found) for name, found in traces.items()}
            saved = 1 - held["PWJoin"] / max(1.0, held["plain"])
            states = [round(held[name]) for name in ("PWJoin", "plain")]
            time_ratio = ratio("PWJoin", "plain")
            made.rows.append((seconds, rows, *states, f"{saved:.0%}", best["PWJoin"], best["plain"], time_ratio))
            made.numbers[f"{seconds} s, {rows}"] = {"saved": saved, "time_ratio": time_ratio}
            if rows == 512:
                for name, trace in first.items():
                    made.curves[f"{name}, {seconds} s"] = {
                        "state": thinned(trace.state),
                        "results": thinned(list(accumulate(trace.results))),
                        "cpu_s": thinned(list(accumulate(trace.cpu_s))),
                    }
    return made


def useless(sizes: Sizes) -> Finding:
    """Punctuation that matches nothing."""
    count, every = sizes.windowed, 30
    streams = [own.with_closings(-1 - own.closed, own.closed_at) for own in in_step(count // 2, every, width=WIDTH)]
    made = Finding(
        "useless",
        f"punctuation that matches nothing, every {every} tuples",
        "8.3",
        ("window s", "step", "PWJoin: CPU s", "plain", "ratio"),
    )
    for seconds in (5, 15):
        for rows in (512, min(2 * PAGE_ROWS, count // 4)):
            traces, ratio = _with_and_without(streams, rows, seconds * SECOND, sizes.rounds)
            same("useless punctuation", {name: found[0] for name, found in traces.items()})
            best = [min(trace.seconds for trace in traces[name]) for name in ("PWJoin", "plain")]
            made.rows.append((seconds, rows, *best, ratio("PWJoin", "plain")))
            made.numbers[f"{seconds} s, {rows}"] = ratio("PWJoin", "plain")
    return made


def _with_and_without(
    streams: Sequence[Punctuated], rows: int, window: int, rounds: int
) -> tuple[dict[str, list[Trace]], Callable[[str, str], float]]:
    """Both joins by turns, in steps of `rows` tuples; the plain one receives no punctuation."""
    cut, silent = (steps(streams, rows // 2 * GAP, punctuated=heard, timed=True) for heard in (True, False))
    return by_turns(
        {"PWJoin": lambda: run(pwjoin(window), cut), "plain": lambda: run(plain(window), silent)},
        rounds,
    )


def early(sizes: Sizes) -> Finding:
    """Punctuation emitted with a window and without, where one stream closes values later than the other."""
    count, every, late = max(3_000, sizes.windowed // 4), 30, 5 * SECOND
    streams = _lagging(count // 2, every, late)
    length = 64 * GAP
    traces = {
        "PWJoin, 1 s": run(pwjoin(SECOND), steps(streams, length, timed=True)),
        "PJoin, no window": run(pwjoin(None), steps(streams, length)),
    }
    made = Finding(
        "early_punctuation",
        f"punctuation out; the second stream closes values {late // SECOND} s later",
        "8.4",
        ("join", "out at 1/4", "at end", "closed by both", "delay, s"),
    )
    values = min(len(own.closed) for own in streams)
    closed = np.searchsorted(streams[0].closed_at, np.arange(1, len(traces["PWJoin, 1 s"].state) + 1) * length)
    for name, trace in traces.items():
        out = np.cumsum(trace.punctuations)
        behind = float(np.mean(closed - out)) * every * GAP / SECOND
        made.rows.append((name, int(out[len(out) // 4]), int(out[-1]), values, behind))
        made.numbers[name] = behind
        seconds = [(place + 1) * length / SECOND for place in range(len(out))]
        made.curves[name] = {"seconds": thinned(seconds), "punctuations": thinned(out.tolist())}
    return made


def _lagging(count: int, every: int, late: int) -> list[Punctuated]:
    draw = np.random.default_rng(0)
    first = np.cumsum(draw.exponential(GAP, count)).astype(np.int64)
    second = np.cumsum(draw.exponential(GAP, count)).astype(np.int64)
    shut = moments(draw, float(first[-1]), every * GAP)
    after = shut + late
    width = WIDTH + late // (every * GAP)
    return [stream(draw, first, shut, width), stream(draw, second, after[after < first[-1]], width)]
