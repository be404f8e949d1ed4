"""Estimates of final values: a prediction and an interval that claims to hold 90 % of them.

E: the early value; c: the share of the window's time seen; n, s: number and standard deviation of the values so far;
pairs (c', E', F') of earlier windows of the group (`history`). t: Student's quantile (`algebra/student`).

| from `LEAST` pairs on | estimate | interval |
|---|---|---|
| COUNT, SUM | E/c * exp(mean r) | E/c * exp(mean r ± t * sd r * sqrt(1 + 1/k)), where r = log(c' F'/E') |
| SUM that may fall | E + mean d | E + mean d ± t * sd d * sqrt(1 + 1/k), where d = F' - E' |
| AVG | E | E ± t * sqrt(mean d²) * sqrt(1 + 1/k) |
| MAX | E | from E to E + the value at place 0.9 (k + 1) among the sorted d, between two of them if need be; k >= 9 |
| MIN | E | the mirror image |

| with fewer pairs | | |
|---|---|---|
| COUNT, SUM | E/c | E/c ± z * sqrt(Q (1 - c))/c |
| AVG | E | E ± t * s/sqrt(n) * sqrt(1 - c) |
| MAX, MIN | E | from E to NULL; from NULL to E |

Q is the sum of the squares of the values so far: for COUNT their number. With arrivals that are random and even, it
gives the variance of the rest of the window, and of the rate by which it is predicted. A sum may fall if that of an
earlier window of the group did, or was negative; else no bound is below E. Of a sum that is still 0, and may not fall,
the differences tell more than ratios.

An interval of MAX or MIN holds the early value, so it holds at least the final values that equal it. Where these are
more than 90 %, as shortly before the end of a sliding window, it is the early value alone and still holds more.
"""

from __future__ import annotations

import polars as pl

from millstream.algebra.student import LEVEL, NORMAL, reach
from millstream.runtime.aggregate.history import EARLY, FINAL, LEAST, SHARE

ROW = "__row"
VALUE, COUNT, DEVIATION = "__value", "__count", "__deviation"
"""Columns of the answers: the early value, and number and standard deviation of the values that it was made of."""
SPREAD = (1 + 1 / pl.col("k")).sqrt()
RESULT = ("estimate", "low", "high")


def estimated(kind: str, answers: pl.DataFrame, pairs: pl.DataFrame) -> pl.DataFrame:
    """Return estimate, low and high of answers (`VALUE`, `SHARE`, `COUNT`, `DEVIATION`), in order. `pairs` have the
    number of their answer."""
    own = answers.select(pl.col(name) for name in (VALUE, SHARE, COUNT, DEVIATION) if name in answers.columns)
    early = own.with_row_index(ROW).join(_statistics(pairs), on=ROW, how="left", maintain_order="left")
    early = early.with_columns(pl.col("k").fill_null(0), pl.col("rises").fill_null(kind == "count"))
    match kind:
        case "count" | "sum":
            return _total(early, kind)
        case "avg":
            return _average(early)
    return _extreme(early, 1 if kind == "max" else -1)


def _statistics(pairs: pl.DataFrame) -> pl.DataFrame:
    """What the pairs of each answer say: logarithms of ratios (r), differences (d)."""
    ratio = pl.when(pl.col(EARLY) > 0).then((pl.col(FINAL) * pl.col(SHARE) / pl.col(EARLY)).log())
    rises = (pl.col(EARLY) >= 0) & (pl.col(FINAL) >= pl.col(EARLY))
    made = pairs.select(ROW, r=ratio, d=pl.col(FINAL) - pl.col(EARLY), rises=rises)
    return made.group_by(ROW, maintain_order=True).agg(
        k=pl.len().cast(pl.Int64),
        rises=pl.col("rises").all(),
        ratios=pl.col("r").count().cast(pl.Int64),
        mean_r=pl.col("r").mean(),
        sd_r=pl.col("r").std(),
        mean_d=pl.col("d").mean(),
        sd_d=pl.col("d").std(),
        size_d=(pl.col("d") ** 2).mean().sqrt(),
        above=_quantile(pl.col("d").sort()),
        below=_quantile(pl.col("d").sort(descending=True)),
    )


def _quantile(differences: pl.Expr) -> pl.Expr:
    """The value at place `LEVEL * (k + 1)` of k sorted differences, by the line between its neighbours: another
    difference exceeds it in one of ten cases. Taking the later neighbour instead would hold up to 95 % for small k.
    NULL if the place is behind the last one."""
    place = LEVEL * (pl.len() + 1) - 1
    before = (place + 1e-9).floor().cast(pl.Int64)
    low, high = (differences.get(before + step, null_on_oob=True) for step in (0, 1))
    rest = place - before
    return pl.when(rest < 1e-9).then(low).otherwise(low + rest * (high - low))


def _total(early: pl.DataFrame, kind: str) -> pl.DataFrame:
    value, share, k = pl.col(VALUE), pl.col(SHARE), pl.col("k")
    scaled = value / share
    number = value if kind == "count" else pl.col(COUNT)
    squares = value if kind == "count" else _squares()
    modelled = NORMAL * (squares * (1 - share)).sqrt() / share
    ratios = pl.col("ratios")
    by_ratio = (ratios >= LEAST) & pl.col("rises") & (value > 0)
    by_difference = (k >= LEAST) & (~pl.col("rises") | (value <= 0))
    half = reach(ratios - 1) * pl.col("sd_r") * (1 + 1 / ratios).sqrt()
    moved = value + pl.col("mean_d")
    swing = reach(k - 1) * pl.col("sd_d") * SPREAD

    def chosen(ratio: pl.Expr, difference: pl.Expr, model: pl.Expr, name: str) -> pl.Expr:
        found = pl.when(by_ratio).then(ratio).when(by_difference).then(difference).otherwise(model)
        # Neither the number of tuples nor a sum that has never fallen falls.
        rising = pl.col("rises") & (k >= LEAST) if kind == "sum" else pl.lit(True)
        risen = pl.when(rising).then(pl.max_horizontal(found, value)).otherwise(found)
        return pl.when((share > 0) & number.is_not_null()).then(risen).alias(name)

    mean = scaled * pl.col("mean_r").exp()
    return early.select(
        chosen(mean, moved, scaled, "estimate"),
        chosen(scaled * (pl.col("mean_r") - half).exp(), moved - swing, scaled - modelled, "low"),
        chosen(scaled * (pl.col("mean_r") + half).exp(), moved + swing, scaled + modelled, "high"),
    )


def _squares() -> pl.Expr:
    """The sum of the squares of the values so far."""
    count = pl.col(COUNT)
    return (count - 1) * pl.col(DEVIATION).fill_null(0.0) ** 2 + pl.col(VALUE) ** 2 / count


def _average(early: pl.DataFrame) -> pl.DataFrame:
    value, count, k = pl.col(VALUE), pl.col(COUNT), pl.col("k")
    rest = (1 - pl.col(SHARE)).clip(lower_bound=0).sqrt()
    own = reach(count - 1) * pl.col(DEVIATION) / count.sqrt() * rest
    half = pl.when(k >= LEAST).then(reach(k) * pl.col("size_d") * SPREAD).otherwise(own)
    return early.select(value.alias("estimate"), (value - half).alias("low"), (value + half).alias("high"))


def _extreme(early: pl.DataFrame, sign: int) -> pl.DataFrame:
    value = pl.col(VALUE)
    found = value + pl.col("above" if sign > 0 else "below")
    low, high = (value, found) if sign > 0 else (found, value)
    return early.select(value.alias("estimate"), low.alias("low"), high.alias("high"))
