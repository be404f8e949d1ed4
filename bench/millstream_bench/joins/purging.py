"""Purging in a punctuated join: thresholds, streams that close values at different rates, propagation."""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate
from statistics import median

import numpy as np

from millstream.runtime.join.settings import JoinSettings
from millstream.runtime.operator.contract import Operator
from millstream_bench.joins.drive import Trace, abreast, by_turns, pjoin, plain, pwjoin, run, same
from millstream_bench.joins.sizes import Sizes
from millstream_bench.joins.streams import GAP, Step, apart, in_step, steps
from millstream_bench.suite.report import Finding, thinned

WIDTH = 100
THRESHOLDS = (1, 10, 100, 400, 800)
SMALL = 32
"""Tuples of each stream in a step, where the moment of a purge matters."""


def thresholds(sizes: Sizes) -> Finding:
    """State and speed by purge threshold."""
    count = sizes.swept // 4
    cut = steps(in_step(count // 2, 10, width=WIDTH), SMALL * GAP)
    lazy = {
        f"PJoin-{threshold}": (lambda threshold=threshold: run(pjoin(JoinSettings(threshold)), cut))
        for threshold in THRESHOLDS
    }
    traces, _ = by_turns(lazy, sizes.rounds)
    best = {name: min(made, key=lambda trace: trace.seconds) for name, made in traces.items()}
    same("purge thresholds", best)
    made = Finding(
        "thresholds",
        f"purge thresholds; a punctuation every 10 tuples, steps of {2 * SMALL}",
        "5.4, 5.5",
        ("join", "state, mean", "most", "results", "CPU s", "results/CPU s"),
    )
    for name, trace in best.items():
        made.rows.append(_line(name, trace))
        made.curves[name] = _curve(trace)
        made.numbers[name] = {"state": trace.steady(trace.state), "cpu_s": trace.seconds}
    return made


def asymmetric(sizes: Sizes) -> Finding:
    """One stream closes values faster than the other: state of each side, gain of lazy purging."""
    count = sizes.swept // 4
    made = Finding(
        "asymmetric",
        "A closes values every 10 tuples, B slower; state at the end",
        "5.6–5.9",
        ("join", "B", "A's state", "B's", "results", "CPU s", "results/CPU s"),
    )
    for slower in (20, 30, 40):
        streams = apart(count // 2, (10, slower), width=WIDTH)
        cut, silent = (steps(streams, SMALL * GAP, punctuated=heard) for heard in (True, False))
        joins = {"PJoin-1": (lambda cut=cut: run(pjoin(), cut))}
        if slower == 20:
            joins |= {
                "PJoin-100": lambda cut=cut: run(pjoin(JoinSettings(100)), cut),
                "unaware": lambda silent=silent: run(pjoin(), silent),
            }
        traces, _ = by_turns(joins, sizes.rounds)
        best = {name: min(found, key=lambda trace: trace.seconds) for name, found in traces.items()}
        same(f"asymmetric, {slower}", best)
        for name, trace in best.items():
            sides = trace.sides[-1]
            speed = round(trace.rows / trace.seconds)
            made.rows.append((name, slower, sides[0], sides[1], trace.rows, trace.seconds, speed))
            made.curves[f"{name}, B every {slower}"] = _curve(trace)
    return made


def propagation(sizes: Sizes) -> Finding:
    """Punctuation emitted over the stream."""
    count, every = sizes.swept, 40
    streams = in_step(count // 2, every, width=WIDTH)
    cut = steps(streams, 512 * GAP)
    traces = {
        "eager": run(pjoin(), cut),
        "every 10": run(pjoin(JoinSettings(propagation="count", propagation_count=10)), cut),
        "eager, counting index": run(pjoin(JoinSettings(index="eager")), cut),
    }
    same("propagation", traces)
    made = Finding(
        "propagation",
        f"punctuation out; one in every {every} tuples of both",
        "5.10",
        ("propagation", "closed by both", "out", "correlation with time", "CPU s"),
    )
    both = min(len(own.closed) for own in streams)
    for name, trace in traces.items():
        out = list(accumulate(trace.punctuations))
        straight = float(np.corrcoef(np.arange(len(out)), out)[0, 1])
        made.rows.append((name, both, out[-1], straight, trace.seconds))
        made.curves[name] = {"steps": thinned(list(range(len(out)))), "punctuations": thinned(out)}
    return made


def unpunctuated(sizes: Sizes) -> Finding:
    """The punctuated join on streams without punctuation, against a join that ignores it."""
    made = Finding(
        "unpunctuated",
        "no punctuation at all: the punctuated join over a plain one on the same kernel",
        "",
        ("window", "step", "tuples", "CPU s", "plain", "median ratio", "plain again"),
    )
    second = 1_000_000
    for window, rows, count in (
        (None, 16 * 8192, sizes.plain),
        (None, 8192, sizes.plain // 4),
        (20 * second, 16 * 8192, sizes.plain),
        (20 * second, 8192, sizes.plain // 2),
    ):
        rows = min(rows, count // 8)
        cut = steps(in_step(count // 2, 10, width=1000), rows // 2 * GAP, punctuated=False, timed=window is not None)
        ratios, traces = _against_plain(cut, window, sizes.plain_rounds)
        label = "none" if window is None else f"{window // second} s"
        best = {name: min(trace.seconds for trace in found) for name, found in traces.items()}
        made.rows.append((label, rows, count, best["punctuated"], best["plain"], *ratios))
        made.numbers[f"{label}, {rows}"] = {"ratio": ratios[0], "noise": ratios[1]}
    made.notes.append("plain again: the same plain join a second time, to show how much is noise")
    return made


def _against_plain(
    cut: list[Step], window: int | None, rounds: int
) -> tuple[tuple[float, float], dict[str, list[Trace]]]:
    """The ratios of the punctuated join, and of the plain one itself, to the plain one: medians over the rounds."""
    contestants: dict[str, Callable[[], Operator]] = {
        "punctuated": lambda: pwjoin(window),
        "plain": lambda: plain(window),
        "again": lambda: plain(window),
    }
    traces = abreast(contestants, cut, rounds)
    same("no punctuation", {name: found[0] for name, found in traces.items()})
    punctuated, again = (
        median(own.seconds / other.seconds for own, other in zip(traces[name], traces["plain"], strict=True))
        for name in ("punctuated", "again")
    )
    return (punctuated, again), traces


def _line(name: str, trace: Trace) -> tuple[object, ...]:
    mean_state = round(trace.steady(trace.state))
    return name, mean_state, max(trace.state), trace.rows, trace.seconds, round(trace.rows / trace.seconds)


def _curve(trace: Trace) -> dict[str, list[float]]:
    return {
        "cpu_s": thinned(list(accumulate(trace.cpu_s))),
        "results": thinned(list(accumulate(trace.results))),
        "state": thinned(trace.state),
    }
