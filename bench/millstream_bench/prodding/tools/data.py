"""Streams of the experiments.

| stream | columns | |
|---|---|---|
| `numbers` | `ts` (s), columns by distribution | the next tuple is in the same second in `density` of 100 cases |
| `bursts` | `ts` (s), `counter` | access points that report in bursts: seconds 30, 53, 54 and from 62 to 75 |
| `words` | `ts` (s), `word` | words of a text, as many in each second |
| `detector` | `ts` (s), `volume` | a loop detector of a real freeway, every 20 seconds |
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt
import polars as pl

from millstream_demo.freeway import READINGS

Values = Callable[[np.random.Generator, int], npt.NDArray[np.float64]]
"""Draws as many values as asked for."""
SPIKES = {30: 600, 53: 550, 54: 500, 62: 800}
"""Tuples in the seconds of a burst."""
SUSTAINED = range(63, 76)
SECONDS = 95
VOCABULARY = ("river", "mill", "stream", "water", "wheel", "grain", "flour", "stone", "weir", "race")


def uniform(low: int = 0, high: int = 999) -> Values:
    """Whole numbers from `low` to `high`."""
    return lambda draw, count: draw.integers(low, high + 1, count).astype(np.float64)


def normal(mean: float, deviation: float) -> Values:
    return lambda draw, count: draw.normal(mean, deviation, count)


def numbers(length: int, values: Mapping[str, Values], *, density: float = 95.0, seed: int = 0) -> pl.DataFrame:
    """A stream of `length` seconds, from 0; a second has 100 / (100 - density) tuples on average.

    >>> numbers(2, {"value": uniform()}, density=50).columns
    ['ts', 'value']
    """
    draw = np.random.default_rng(seed)
    expected = length / (1 - density / 100)
    steps = draw.random(int(expected + 10 * np.sqrt(expected) / (1 - density / 100)) + 100) >= density / 100
    ts = np.concatenate([[0], np.cumsum(steps)])
    ts = ts[ts < length].astype(np.int64)
    return pl.DataFrame({"ts": ts, **{name: make(draw, len(ts)) for name, make in values.items()}})


def bursts(*, repeats: int = 1, seed: int = 0) -> pl.DataFrame:
    """A log of access points with bursts, `repeats` times one after the other; about 14,800 rows each."""
    draw = np.random.default_rng(seed)
    parts = [_second(draw, SECONDS * cycle + second, second) for cycle in range(repeats) for second in range(SECONDS)]
    return pl.concat(parts)


def _second(draw: np.random.Generator, at: int, second: int) -> pl.DataFrame:
    """A second of the log; the counter is a random walk that begins anew."""
    if second in SPIKES:
        count = SPIKES[second]
    elif second in SUSTAINED:
        count = int(draw.integers(250, 421))
    else:
        count = int(draw.integers(0, 201))
    counter = np.abs(500 + np.cumsum(draw.normal(0, 30, count)))
    return pl.DataFrame({"ts": np.full(count, at, dtype=np.int64), "counter": counter})


def words(length: int, *, rate: int = 20, seed: int = 0) -> pl.DataFrame:
    draw = np.random.default_rng(seed)
    chosen = draw.integers(0, len(VOCABULARY), length * rate)
    return pl.DataFrame({"ts": np.repeat(np.arange(length), rate), "word": np.array(VOCABULARY)[chosen]})


def detector(number: int = 1345, *, hours: float = 2.5) -> pl.DataFrame:
    """The readings of a loop detector at the evening rush, with seconds from 0 as its times."""
    rows = pl.read_parquet(READINGS).filter(pl.col("detector") == number, pl.col("volume").is_not_null())
    seconds = (pl.col("ts") - pl.col("ts").min()).dt.total_seconds()
    return rows.select(seconds.alias("ts"), "volume").filter(pl.col("ts") < int(hours * 3600))
