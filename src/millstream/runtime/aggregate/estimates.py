"""Estimates of final values: a prediction and an interval that claims to hold 90 % of them.

E: the early value; c: the share of the window's time seen; n, s: number and standard deviation of the values so far;
pairs (c', E', n', F') of earlier windows of the group (`history`); k: their number. t: Student's quantile
(`algebra/student`). The residual z of a pair is what its final value had beyond the prediction, in a scale in which it
does not depend on the rate of arrivals. m, S: mean and standard deviation of z.

| | z | estimate and interval |
|---|---|---|
| COUNT, SUM | sqrt(n') * (sqrt(c' F'/E') - 1) | E/c * (1 + x/sqrt(n))², x = m, m ± t * S * sqrt(1 + 1/k) |
| SUM that may fall | (F' - E')/sqrt(n') | E + x * sqrt(n), the same x |
| AVG | (F' - E') * sqrt(n') | E, E ± t * sqrt(mean z²) * sqrt(1 + 1/k) / sqrt(n) |
| MAX | F' - E' | E, from E to E + the value at place 0.9 (k + 1) among the sorted z, between two if need be; k >= 9 |
| MIN | F' - E' | the mirror image |
| MIN, MAX towards 0 | F'/E' | of values above 0, or below: E times the value at that place |

With fewer than `LEAST` pairs arrivals are taken to be random and even: m is 0, and S² is the mean of the z² and of the
variance that such arrivals have, which counts as `PRIOR` pairs: for COUNT and SUM (1 - c)/4 * n * Q/E², where Q is the
sum of the squares of the values so far; for a SUM that may fall, whose z is from E'/c' then, Q/n * (1 - c)/c²; for AVG
s² (1 - c). MAX and MIN have an open end.

A sum may fall if that of an earlier window of the group did, or was negative, or if there is none; else no bound is
below E. Of a sum that is still 0, and may not fall, the differences tell more than ratios.

An interval of MAX or MIN holds the early value, so it holds at least the final values that equal it. Where these are
more than 90 %, as shortly before the end of a sliding window, it is the early value alone and still holds more.
"""

from __future__ import annotations

import polars as pl

from millstream.algebra.student import LEVEL, reach
from millstream.runtime.aggregate.history import COUNT, EARLY, FINAL, LEAST, SHARE

ROW = "__row"
VALUE, DEVIATION = "__value", "__deviation"
"""Columns of the answers: the early value, and the standard deviation of the values that it was made of."""
PRIOR = 2
"""The number of pairs that random arrivals count as."""
SIGNS = {"estimate": 0, "low": -1, "high": 1}


def estimated(kind: str, answers: pl.DataFrame, pairs: pl.DataFrame) -> pl.DataFrame:
    """Return estimate, low and high of answers (`VALUE`, `SHARE`, `COUNT`, `DEVIATION`), in order. `pairs` have the
    number of their answer."""
    own = answers.select(pl.col(name) for name in (VALUE, SHARE, COUNT, DEVIATION) if name in answers.columns)
    early = own.with_row_index(ROW).join(_statistics(kind, pairs), on=ROW, how="left", maintain_order="left")
    early = early.with_columns(pl.col("k").fill_null(0))
    match kind:
        case "count" | "sum":
            return _total(early, kind)
        case "avg":
            return _average(early)
    return _extreme(early, 1 if kind == "max" else -1)


def _statistics(kind: str, pairs: pl.DataFrame) -> pl.DataFrame:
    """What the pairs of each answer say: their residuals."""
    early, final, share, root = pl.col(EARLY), pl.col(FINAL), pl.col(SHARE), _root(pl.col(COUNT))
    made, found = {"d": final - early}, [pl.len().cast(pl.Int64).alias("k")]
    if kind in ("max", "min"):
        sign = -1 if kind == "min" else 1
        made["ratio"] = pl.when((sign * early < 0) & (sign * final < 0)).then(final / early)
        found += [pl.col("ratio").count().alias("ratios")]
        found += [_quantile(pl.col("d").sort(descending=sign < 0)).alias("moved")]
        found += [_quantile(pl.col("ratio").sort(descending=True)).alias("shrunk")]
    elif kind == "avg":
        made["d"] = made["d"] * root
        found += _moments("d")
    else:
        made["d"] = made["d"] / root
        made["e"] = pl.when(share > 0).then((final - early / share) / root)
        made["r"] = pl.when((early > 0) & (final >= 0)).then(root * ((final * share / early).sqrt() - 1))
        made["rises"] = (early >= 0) & (final >= early)
        found += [pl.col("rises").all(), *_moments("d"), *_moments("e"), *_moments("r")]
    return pairs.select(ROW, **made).group_by(ROW, maintain_order=True).agg(found)


def _moments(name: str) -> list[pl.Expr]:
    """Number, mean, standard deviation and sum of squares of residuals."""
    held = pl.col(name)
    made = held.count().cast(pl.Int64), held.mean(), held.std(), (held**2).sum()
    return [each.alias(f"{name}_{what}") for each, what in zip(made, ("count", "mean", "sd", "squares"), strict=True)]


def _reaching(residual: str, model: pl.Expr, own: str = "") -> tuple[pl.Expr, pl.Expr]:
    """The middle and the reach of residuals; of few the reach about 0, by the residuals `own` and the variance `model`,
    NULL if it is not known."""
    k, few = (pl.col(f"{name}_count").fill_null(0) for name in (residual, own or residual))
    weight = pl.when(model.is_not_null()).then(PRIOR).otherwise(0)
    squares = pl.col(f"{own or residual}_squares").fill_null(0.0) + PRIOR * model.fill_null(0.0)
    few_half = reach(few + weight) * (squares / (few + weight)).sqrt()
    half = reach(k - 1) * pl.col(f"{residual}_sd") * (1 + 1 / k).sqrt()
    many = k >= LEAST
    return pl.when(many).then(pl.col(f"{residual}_mean")).otherwise(0.0), pl.when(many).then(half).otherwise(few_half)


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
    value, share = pl.col(VALUE), pl.col(SHARE)
    rises, number = pl.col("rises").fill_null(kind == "count"), value if kind == "count" else pl.col(COUNT)
    enough, rest, scaled = pl.col("k") >= LEAST, 1 - share, value / share
    squares = number if kind == "count" else _squares()
    middle, half = _reaching("r", rest / 4 * number * squares / value**2)
    moved, swing = _reaching("d", squares / _root(number) ** 2 * rest / share**2, "e")
    # Neither the number of tuples nor a sum that has never fallen falls.
    least = value if kind == "count" else pl.when(rises & enough).then(value)
    known = (share > 0) & number.is_not_null()
    made = early.select(
        value, scaled=pl.when(known).then(scaled), root=_root(number), middle=middle, half=half, least=least
    )
    grown = dict[str, pl.Expr]()
    for name, sign in SIGNS.items():
        growth = 1 + (pl.col("middle") + sign * pl.col("half")) / pl.col("root")
        grown[name] = pl.col("scaled") * growth.clip(lower_bound=0) ** 2
    if kind == "sum" or not (early[VALUE] > 0).all():
        columns = (rises & (value > 0)).alias("by_ratio"), moved.alias("moved"), (swing * _root(number)).alias("swing")
        base = pl.when(known).then(pl.when(enough).then(value).otherwise(scaled)) + moved * _root(number)
        made = made.hstack(early.select(*columns, base.alias("base")))
        for name, sign in SIGNS.items():
            grown[name] = pl.when("by_ratio").then(grown[name]).otherwise(pl.col("base") + sign * pl.col("swing"))
    risen = (pl.when(found.is_not_null()).then(pl.max_horizontal(found, "least")) for found in grown.values())
    return made.select(each.alias(name) for name, each in zip(SIGNS, risen, strict=True))


def _root(number: pl.Expr) -> pl.Expr:
    """The square root of a number of values, which may be 0 for COUNT(x)."""
    return number.clip(lower_bound=1).sqrt()


def _squares() -> pl.Expr:
    """The sum of the squares of the values so far."""
    count = pl.col(COUNT)
    return (count - 1) * pl.col(DEVIATION).fill_null(0.0) ** 2 + pl.col(VALUE) ** 2 / count


def _average(early: pl.DataFrame) -> pl.DataFrame:
    value, k = pl.col(VALUE), pl.col("k")
    rest = (1 - pl.col(SHARE)).clip(lower_bound=0)
    _, few = _reaching("d", pl.col(DEVIATION) ** 2 * rest)
    many = reach(k) * (pl.col("d_squares") / k * (1 + 1 / k)).sqrt()
    half = pl.when(k >= LEAST).then(many).otherwise(few) / pl.col(COUNT).sqrt()
    return early.select(value.alias("estimate"), (value - half).alias("low"), (value + half).alias("high"))


def _extreme(early: pl.DataFrame, sign: int) -> pl.DataFrame:
    value = pl.col(VALUE)
    towards = (sign * value < 0) & (pl.col("ratios") == pl.col("k"))  # towards 0
    found = pl.when(towards).then(value * pl.col("shrunk")).otherwise(value + pl.col("moved"))
    low, high = (value, found) if sign > 0 else (found, value)
    return early.select(value.alias("estimate"), low.alias("low"), high.alias("high"))
