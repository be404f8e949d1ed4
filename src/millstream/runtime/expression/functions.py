"""The scalar functions of the language, as Polars expressions.

NULL in, NULL out, except for COALESCE, NULLIF, IF, GREATEST and LEAST (the last two skip NULLs). An argument outside a
function's domain yields NULL: `SQRT(-1)`, `LN(0)`, `MOD(x, 0)`. So does a result that no DOUBLE represents:
`EXP(1000)`; of NaN and infinity the results are those of IEEE 754. Positions in text count from 1, negative ones from
the end. ROUND rounds halves away from zero; an integer stays an integer.

| group | functions |
|---|---|
| numbers | ABS ROUND FLOOR CEIL SQRT POWER MOD LN EXP SIGN |
| text | UPPER LOWER LENGTH SUBSTRING TRIM LTRIM RTRIM CONCAT REPLACE |
| choice | COALESCE NULLIF GREATEST LEAST IF |
| time | EXTRACT |
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import polars as pl

from millstream.algebra.expression import Call, Expression, Literal
from millstream.algebra.types import MICROS, Type
from millstream.errors import BindError, did_you_mean
from millstream.runtime.expression.casting import convert
from millstream.runtime.expression.exact import modulus, quotient
from millstream.runtime.expression.overflow import round_integer

Arguments = Sequence[tuple[pl.Expr, Type]]
_DAY = 86_400 * MICROS
_NO_FRACTION = float(1 << 52)


def call(node: Call, evaluated: Callable[[Expression], pl.Expr]) -> pl.Expr:
    """Return the function applied to its evaluated arguments, in the node's type."""
    if node.function == "EXTRACT":
        field, operand = node.arguments
        assert isinstance(field, Literal)
        return _extract(str(field.value).upper(), evaluated(operand), operand.type).cast(node.type.polars)
    arguments = [(evaluated(argument), argument.type) for argument in node.arguments]
    if node.function in _CHOICES:
        values = [convert(value, type_, node.type) for value, type_ in arguments]
        made = _CHOICES[node.function](values)
        if node.function == "GREATEST" and node.type.is_float:
            # Polars ignores NaN, which is greater than all other numbers.
            nan = pl.lit(math.nan, dtype=node.type.polars)
            return pl.when(pl.any_horizontal(value.is_nan() for value in values)).then(nan).otherwise(made)
        return made
    if node.function == "IF":
        condition, then, otherwise = arguments
        return (
            pl.when(convert(*condition, Type.BOOLEAN))
            .then(convert(*then, node.type))
            .otherwise(convert(*otherwise, node.type))
        )
    if node.function == "NULLIF":
        (value, value_type), (other, _) = arguments
        # A constant belongs on the right: see the comparisons of `evaluate`.
        same = value == other if node.arguments[0].columns() else other == value
        return pl.when(same.fill_null(False)).then(None).otherwise(convert(value, value_type, node.type))
    if node.function not in _PLAIN:
        known = [*_PLAIN, *_CHOICES, "IF", "NULLIF", "EXTRACT"]
        raise BindError("M2060", f"unknown function '{node.function}'", hint=did_you_mean(node.function, known))
    value, type_ = _PLAIN[node.function](arguments)
    return convert(value, type_, node.type)


def remainder(value: pl.Expr, divisor: pl.Expr, type_: Type) -> pl.Expr:
    """Return the remainder of numbers of a type, with the sign of the dividend; NULL for a divisor of 0."""
    if not type_.is_integer:
        return pl.when(divisor != 0).then(modulus(value, divisor).cast(type_.polars))
    # `abs` of the least integer does not fit. Polars' `%` has the sign of the divisor.
    found = value % divisor
    opposite = (found != 0) & ((found < 0) != (value < 0))
    return pl.when(divisor != 0).then(pl.when(opposite).then(found - divisor).otherwise(found))


def _float(argument: tuple[pl.Expr, Type]) -> pl.Expr:
    return convert(*argument, Type.DOUBLE)


def _text(argument: tuple[pl.Expr, Type]) -> pl.Expr:
    return convert(*argument, Type.VARCHAR)


def _same(function: Callable[[pl.Expr], pl.Expr]) -> Callable[[Arguments], tuple[pl.Expr, Type]]:
    """Wrap a function of one argument whose result has the argument's type."""
    return lambda arguments: (function(arguments[0][0]), arguments[0][1])


def _on_float(function: Callable[[pl.Expr], pl.Expr]) -> Callable[[Arguments], tuple[pl.Expr, Type]]:
    return lambda arguments: (function(_float(arguments[0])), Type.DOUBLE)


def _on_text(function: Callable[..., pl.Expr], result: Type = Type.VARCHAR) -> Callable[..., tuple[pl.Expr, Type]]:
    return lambda arguments: (function(*(_text(argument) for argument in arguments)), result)


def _round(arguments: Arguments) -> tuple[pl.Expr, Type]:
    (number, type_), digits = arguments[0], None if len(arguments) == 1 else arguments[1][0]
    if type_.is_integer:
        if digits is None:
            return number, type_
        return round_integer(number.cast(pl.Int128), digits).cast(type_.polars, strict=False), type_
    # Polars' `round` takes no column for the digits and no negative number of them.
    value = _float(arguments[0])
    if digits is None:
        return value.sign() * _half_up(value.abs()), Type.DOUBLE
    places = digits.cast(pl.Float64).clip(-400, 400)
    fraction = pl.lit(10.0).pow(places.clip(lower_bound=0))
    scaled = value.abs() * fraction
    # From 2^52 on a float has no fraction: the value has no digit at that place.
    rounded = pl.when(scaled < _NO_FRACTION).then(value.sign() * quotient(_half_up(scaled), fraction)).otherwise(value)
    tens = pl.lit(10.0).pow(places.clip(upper_bound=0).abs())
    whole = _finite(
        pl.when(tens.is_finite()).then(value.sign() * _half_up(quotient(value.abs(), tens)) * tens).otherwise(0.0)
    )
    down = (places < 0) & value.is_finite()
    return pl.when(down).then(whole).when(places.is_not_null()).then(rounded), Type.DOUBLE


def _half_up(value: pl.Expr) -> pl.Expr:
    """Return values that are not negative, rounded to integers; adding 0.5 to one just below a half would round it."""
    below = value.floor()
    return below + (value - below >= 0.5).cast(pl.Float64)


def _finite(value: pl.Expr, *arguments: pl.Expr) -> pl.Expr:
    """Return a value, but NULL where no DOUBLE represents that of finite arguments."""
    return pl.when(pl.any_horizontal(value.is_finite(), *(~each.is_finite() for each in arguments))).then(value)


def _exp(value: pl.Expr) -> pl.Expr:
    return _finite(value.exp(), value)


def _power(arguments: Arguments) -> tuple[pl.Expr, Type]:
    base, exponent = map(_float, arguments)
    # Polars takes the square root if the exponent is one value, 0.5: of -0.0 and -inf it differs from the power.
    size = base.abs()
    base = pl.when((exponent == 0.5) & ((size == 0) | (size == math.inf))).then(size).otherwise(base)
    return _finite(base.pow(exponent), base, exponent), Type.DOUBLE


def _modulo(arguments: Arguments) -> tuple[pl.Expr, Type]:
    (left, left_type), (right, right_type) = arguments
    if left_type.is_integer and right_type.is_integer:
        return remainder(left.cast(pl.Int64), right.cast(pl.Int64), Type.BIGINT), Type.BIGINT
    return remainder(_float(arguments[0]), _float(arguments[1]), Type.DOUBLE), Type.DOUBLE


def _substring(arguments: Arguments) -> tuple[pl.Expr, Type]:
    text = _text(arguments[0])
    start = arguments[1][0].cast(pl.Int64)
    size = text.str.len_chars().cast(pl.Int64)
    first = pl.when(start > 0).then(start - 1).when(start < 0).then(size + start).otherwise(0)
    # A window that starts before the text loses the part before it.
    offset = first.clip(lower_bound=0)
    if len(arguments) < 3:
        return pl.when(start.is_not_null()).then(text.str.slice(offset)), Type.VARCHAR
    length = arguments[2][0].cast(pl.Int64)
    left = (first + length.clip(lower_bound=0) - offset).clip(lower_bound=0)
    known = start.is_not_null() & length.is_not_null()
    return pl.when(known).then(text.str.slice(offset, left)), Type.VARCHAR


def _replace(text: pl.Expr, old: pl.Expr, new: pl.Expr) -> pl.Expr:
    # Polars' `replace` takes no column of patterns, and no NULL. The condition also extends a constant text to the
    # length of the column of replacements; `join` does not.
    text = pl.when(new.is_not_null()).then(text)
    return pl.when(old == "").then(text).otherwise(text.str.split(old).list.join(new))


def _trim(strip: str) -> Callable[[Arguments], tuple[pl.Expr, Type]]:
    def trim(arguments: Arguments) -> tuple[pl.Expr, Type]:
        text = _text(arguments[0])
        characters = _text(arguments[1]) if len(arguments) > 1 else pl.lit(" ")
        return getattr(text.str, strip)(characters), Type.VARCHAR

    return trim


def _extract(field: str, value: pl.Expr, type_: Type) -> pl.Expr:
    known = _INTERVAL_FIELDS if type_ is Type.INTERVAL else _STAMP_FIELDS
    if field not in known:
        raise BindError("M2061", f"unknown field '{field}' in EXTRACT", hint=did_you_mean(field, known))
    if type_ is not Type.INTERVAL:
        return _STAMP_FIELDS[field](convert(value, type_, Type.TIMESTAMP))
    micros = value.cast(pl.Int64)
    if field == "EPOCH":
        return quotient(micros, pl.lit(MICROS))
    size, base = _INTERVAL_FIELDS[field]
    within = remainder(micros, pl.lit(base), Type.BIGINT) if base else micros
    return quotient(within, pl.lit(size)).cast(pl.Int64)


_INTERVAL_FIELDS: dict[str, tuple[int, int]] = {
    "EPOCH": (0, 0),
    "DAY": (_DAY, 0),
    "HOUR": (3_600 * MICROS, _DAY),
    "MINUTE": (60 * MICROS, 3_600 * MICROS),
    "SECOND": (MICROS, 60 * MICROS),
    "MILLISECOND": (1_000, 60 * MICROS),
    "MICROSECOND": (1, 60 * MICROS),
}

_STAMP_FIELDS: dict[str, Callable[[pl.Expr], pl.Expr]] = {
    "YEAR": lambda t: t.dt.year(),
    "QUARTER": lambda t: t.dt.quarter(),
    "MONTH": lambda t: t.dt.month(),
    "WEEK": lambda t: t.dt.week(),
    "DAY": lambda t: t.dt.day(),
    "DOW": lambda t: t.dt.weekday() % 7,
    "DOY": lambda t: t.dt.ordinal_day(),
    "HOUR": lambda t: t.dt.hour(),
    "MINUTE": lambda t: t.dt.minute(),
    "SECOND": lambda t: t.dt.second() + quotient(t.dt.microsecond(), pl.lit(MICROS)),
    "MILLISECOND": lambda t: t.dt.second() * 1_000.0 + quotient(t.dt.microsecond(), pl.lit(1_000)),
    "MICROSECOND": lambda t: t.dt.second().cast(pl.Int64) * MICROS + t.dt.microsecond(),
    "EPOCH": lambda t: quotient(t.cast(pl.Int64), pl.lit(MICROS)),
}

_CHOICES: dict[str, Callable[[list[pl.Expr]], pl.Expr]] = {
    "COALESCE": pl.coalesce,
    "GREATEST": pl.max_horizontal,
    "LEAST": pl.min_horizontal,
}

_PLAIN: dict[str, Callable[[Arguments], tuple[pl.Expr, Type]]] = {
    "ABS": _same(lambda x: x.abs()),
    "SIGN": _same(lambda x: x.sign()),
    "FLOOR": _same(lambda x: x.floor()),
    "CEIL": _same(lambda x: x.ceil()),
    "ROUND": _round,
    "SQRT": _on_float(lambda x: pl.when(x >= 0).then(x.sqrt())),
    "LN": _on_float(lambda x: pl.when(x > 0).then(x.log())),
    "EXP": _on_float(_exp),
    "POWER": _power,
    "MOD": _modulo,
    "UPPER": _on_text(lambda s: s.str.to_uppercase()),
    "LOWER": _on_text(lambda s: s.str.to_lowercase()),
    "LENGTH": _on_text(lambda s: s.str.len_chars().cast(pl.Int64), Type.BIGINT),
    "REPLACE": _on_text(_replace),
    "CONCAT": _on_text(lambda *parts: pl.concat_str(parts)),
    "SUBSTRING": _substring,
    "TRIM": _trim("strip_chars"),
    "LTRIM": _trim("strip_chars_start"),
    "RTRIM": _trim("strip_chars_end"),
}
