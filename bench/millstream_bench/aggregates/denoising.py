"""Denoising of RFID readings: how long a true reading waits until it is emitted, by noise and by rate.

A processor takes the readings that have arrived since it was free last as one page, and its clock advances by the CPU
time that the operator takes: a delay is the waiting that the algorithm imposes, the work, and the backlog. The two
baselines scan the window for each reading, in Python.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from millstream.algebra.schema import TS, Schema
from millstream.algebra.types import MICROS, Type
from millstream.runtime.denoise import Denoise
from millstream.runtime.operator.contract import Input
from millstream_bench.aggregates.drive import WrongAnswer
from millstream_bench.aggregates.sizes import Sizes
from millstream_bench.suite.report import Finding

REPEATS, INTERVAL = 10, MICROS // 5
WINDOW, THRESHOLD = REPEATS * INTERVAL, 6
NOISE = 0.05
WRONG = 1 << 40
Filter = Callable[[Sequence[int], Sequence[int]], list[tuple[int, int]]]
"""Takes times and tags of new readings; returns time and tag of those that it emits."""


def readings(tags: int, seconds: float, noise: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Times and tags of readings: tags arrive as a Poisson process, a part of all readings has a wrong tag."""
    draw = np.random.default_rng(seed)
    count = max(2, draw.poisson(tags * seconds))
    arrivals = np.sort(draw.random(count) * seconds * MICROS).astype(np.int64)
    times = (arrivals[:, None] + np.arange(REPEATS) * INTERVAL).ravel()
    names = np.repeat(np.arange(count), REPEATS)
    wrong = draw.random(len(names)) < noise
    names = np.where(wrong, WRONG + np.arange(len(names)), names)
    order = np.argsort(times, kind="stable")
    return times[order], names[order]


def of_operator(mode: str) -> Filter:
    """Millstream's operator."""
    schema = Schema.of(("tag", Type.BIGINT))
    operator = Denoise(schema, ("tag",), WINDOW, THRESHOLD, mode)

    def take(times: Sequence[int], tags: Sequence[int]) -> list[tuple[int, int]]:
        rows = pl.DataFrame({"tag": tags, TS: times}, schema={"tag": pl.Int64(), TS: pl.Int64()})
        out = operator.process([Input(rows, None, times[-1])]).rows
        return [] if out is None else out.select(TS, "tag").rows()

    return take


@dataclass(slots=True, eq=False)
class Reading:
    at: int
    tag: int
    noise: bool = True


def baseline(*, ordered: bool) -> Filter:
    """A scan of the window for each reading; in order, a reading is emitted when it leaves the window."""
    window: deque[Reading] = deque()

    def take(times: Sequence[int], tags: Sequence[int]) -> list[tuple[int, int]]:
        out = []
        for at, tag in zip(times, tags, strict=True):
            window.append(Reading(at, tag))
            while window[0].at < at - WINDOW:
                gone = window.popleft()
                if ordered and not gone.noise:
                    out.append((gone.at, gone.tag))
            same = [reading for reading in window if reading.tag == tag]
            if len(same) >= THRESHOLD:
                for reading in same:
                    if reading.noise and not ordered:
                        out.append((reading.at, reading.tag))
                    reading.noise = False
        return out

    return take


ALGORITHMS: dict[str, Callable[[], Filter]] = {
    "EAGER": lambda: of_operator("EAGER"),
    "LAZY": lambda: of_operator("LAZY"),
    "UNORDERED": lambda: of_operator("UNORDERED"),
    "scan": lambda: baseline(ordered=False),
    "scan, ordered": lambda: baseline(ordered=True),
}


@dataclass(slots=True)
class Outcome:
    delay_s: float
    """Mean over the readings emitted, without those of the last window."""
    cpu_s: float
    emitted: list[tuple[int, int]]


def simulated(take: Filter, times: np.ndarray, tags: np.ndarray) -> Outcome:
    clock, place, spent = 0.0, 0, 0.0
    emitted: list[tuple[int, int]] = []
    delays: list[float] = []
    until = times[-1] - WINDOW  # later readings may wait for the end of the stream
    while place < len(times):
        clock = max(clock, float(times[place]))
        end = int(np.searchsorted(times, clock, side="right"))
        began = time.process_time()
        out = take(times[place:end].tolist(), tags[place:end].tolist())
        work = time.process_time() - began
        clock, spent, place = clock + work * MICROS, spent + work, end
        delays += [clock - at for at, _ in out if at < until]
        emitted += out
    last = int(times[-1]) + 2 * WINDOW  # one more reading shows that time has passed
    emitted += take([last], [-1])
    return Outcome(float(np.mean(delays)) / MICROS, spent, emitted)


def by_noise(sizes: Sizes) -> Finding:
    """Delay by noise, one tag a second."""
    title = f"delay of a true reading by noise, seconds; 1 tag/s, window {WINDOW / MICROS:.0f} s"
    chosen = ("EAGER", "LAZY", "UNORDERED", "scan")
    found = Finding("denoise_noise", title, "4.9", ("noise", "readings", "kept", *chosen))
    for share in sizes.noise:
        _measure(found, f"{share:.0%}", chosen, 1, 10 * sizes.seconds, share)
    return found


def by_rate(sizes: Sizes) -> Finding:
    """Delay by the number of tags a second."""
    title = f"delay of a true reading by rate, seconds; noise {NOISE:.0%}, window {WINDOW / MICROS:.0f} s"
    found = Finding("denoise_rate", title, "4.8", ("tags/s", "readings", "kept", *ALGORITHMS))
    for tags in sizes.tags:
        seconds = min(10 * sizes.seconds, max(5, sizes.rows / 50 / tags))
        _measure(found, tags, tuple(ALGORITHMS), tags, seconds, NOISE)
    return found


def _measure(found: Finding, label: object, names: Sequence[str], tags: int, seconds: float, noise: float) -> None:
    times, keys = readings(tags, seconds, noise)
    outcomes = {name: simulated(ALGORITHMS[name](), times, keys) for name in names}
    right = sorted(_kept(times, keys))
    for name, outcome in outcomes.items():
        in_order = name in ("UNORDERED", "scan") or outcome.emitted == sorted(outcome.emitted, key=lambda each: each[0])
        if sorted(outcome.emitted) != right or not in_order:
            raise WrongAnswer(f"denoising, {label}: {name} emits other readings, or in another order")
    delays = [outcomes[name].delay_s for name in names]
    found.rows.append((label, len(times), len(right), *delays))
    for name, outcome in outcomes.items():
        curve = found.curves.setdefault(name, {"x": [], "delay_s": [], "cpu_s": []})
        curve["x"].append(label)
        curve["delay_s"].append(outcome.delay_s)
        curve["cpu_s"].append(outcome.cpu_s)


def _kept(times: np.ndarray, tags: np.ndarray) -> list[tuple[int, int]]:
    """By definition: the readings that some window, up to a reading of their tag, has together with enough others."""
    order = np.lexsort((times, tags))
    kept = []
    for group in np.split(order, np.flatnonzero(np.diff(tags[order])) + 1):
        own = times[group]
        for at in own:
            ends = own[(own >= at) & (own <= at + WINDOW)]
            counts = [((own >= end - WINDOW) & (own <= end)).sum() for end in ends]
            if max(counts) >= THRESHOLD:
                kept.append((int(at), int(tags[group[0]])))
    return kept
