"""What compiled programs call: SQL's functions on single values.

The semantics are those of `runtime.expression`: NULL in, NULL out; an argument outside a function's domain is NULL. A
function that is not here is computed by that module itself, on a page of one row (`through_page`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from struct import Struct
from typing import Any, NoReturn

import polars as pl

from millstream.algebra.expression import Call, Column, Expression, Literal
from millstream.algebra.expression import rewrite as rewritten
from millstream.algebra.program.expression import Argument
from millstream.algebra.types import Type, format_value
from millstream.errors import OutOfRange, SeveralRows
from millstream.runtime.expression.checks import Checks
from millstream.runtime.expression.evaluate import to_polars

Row = tuple[Any, ...]
Late = Callable[[], bool | None]
NAN = math.nan
_MOST = 1 << 63
_REAL = Struct("<f")
_SHORTEST, _LONGEST = timedelta(microseconds=-_MOST), timedelta(microseconds=_MOST - 1)


def out_of_range(text: str, type_: str, value: Any) -> NoReturn:
    raise OutOfRange(f"{text} does not fit {type_}: {format_value(value)}")


def several_rows(text: str) -> NoReturn:
    raise SeveralRows(f"a subquery in place of a value has several rows: {text}")


def only(rows: Sequence[tuple[Any, ...]], text: str) -> Any:
    """The value of a subquery: the first column of its only row, None without rows."""
    if len(rows) > 1:
        several_rows(text)
    return rows[0][0] if rows else None


def narrow(value: int, text: str) -> int:
    """An INT of the same value."""
    return value if -(1 << 31) <= value < 1 << 31 else out_of_range(text, "INT", value)


def narrow_real(value: float, text: str) -> float:
    """A REAL of the same value but for rounding."""
    found = shortened_real(value)
    return found if found is not None else out_of_range(text, "REAL", value)


def shortened_real(value: float) -> float | None:
    """A DOUBLE as a REAL; NULL if it does not fit."""
    try:
        return float(_REAL.unpack(_REAL.pack(value))[0])
    except OverflowError:
        return None


def shortened(value: int) -> int | None:
    """A BIGINT as an INT; NULL if it does not fit."""
    return value if -(1 << 31) <= value < 1 << 31 else None


def both(left: bool | None, right: bool | None) -> bool | None:
    """AND of three values."""
    if left is False or right is False:
        return False
    return None if left is None or right is None else True


def either(left: bool | None, right: bool | None) -> bool | None:
    """OR of three values."""
    if left is True or right is True:
        return True
    return None if left is None or right is None else False


def inverted(value: bool | None) -> bool | None:
    return None if value is None else not value


def all_hold(*conditions: Callable[[], bool]) -> bool:
    """AND of conditions of which several may fail to fit their types: one that is false decides."""
    failed: OutOfRange | None = None
    for condition in conditions:
        try:
            if not condition():
                return False
        except OutOfRange as error:
            failed = failed or error
    if failed is not None:
        raise failed
    return True


def both_used(left: Late, right: Late) -> bool | None:
    """AND of values that may fail to fit their types: where one side is false, the other is not used."""
    return _used(left, right, False, both)


def either_used(left: Late, right: Late) -> bool | None:
    """OR of such values: where one side is true, the other is not used."""
    return _used(left, right, True, either)


def _used(left: Late, right: Late, decisive: bool, combine: Callable[..., bool | None]) -> bool | None:
    try:
        first = left()
    except OutOfRange:
        if right() is decisive:
            return decisive
        raise
    return decisive if first is decisive else combine(first, right())


def contained(value: Any, rows: Sequence[tuple[Any, ...]]) -> bool | None:
    """`value IN (SELECT …)`."""
    if not rows:
        return False
    if value is None:
        return None
    unknown = False
    for (other,) in rows:
        if other is None:
            unknown = True
        elif other == value or (other != other and value != value):
            return True
    return None if unknown else False


def truncated(value: float) -> int | None:
    """A DOUBLE as a BIGINT."""
    if value != value or not -_MOST <= value < _MOST:
        return None
    return int(value)


def moved(left: Any, right: Any, sign: int, text: str, type_: str) -> Any:
    """A time plus or minus a duration."""
    try:
        found = left + right if sign > 0 else left - right
    except OverflowError:
        found = None
    if found is None or (isinstance(found, timedelta) and not _SHORTEST <= found <= _LONGEST):
        kinds = (Type.INTERVAL if isinstance(value, timedelta) else Type.TIMESTAMP for value in (left, right))
        first, second = map(Literal, kinds, (left, right))
        raise OutOfRange(f"{text} does not fit {type_}: {first} {'+' if sign > 0 else '-'} {second}")
    return found


def like(pattern: str) -> Callable[[str], bool]:
    """The test of a LIKE pattern: `%` any text, `_` any one character."""
    found = [{"%": ".*", "_": "."}.get(character) or re.escape(character) for character in pattern]
    test = re.compile("".join(found), re.DOTALL).fullmatch
    return lambda text: test(text) is not None


def _sign(value: Any) -> Any:
    if not value or value != value:
        return value
    made = (value > 0) - (value < 0)
    return float(made) if isinstance(value, float) else made


def _rounded(down: Callable[[float], int]) -> Callable[[Any], Any]:
    def rounded(value: Any) -> Any:
        return math.copysign(down(value), value) if isinstance(value, float) and math.isfinite(value) else value

    return rounded


def _half_up(value: Any) -> Any:
    if not isinstance(value, float) or not math.isfinite(value):
        return value
    size = abs(value)
    below = math.floor(size)
    return math.copysign(below + (size - below >= 0.5), value) if value else value


def _power(base: float, exponent: float) -> float | None:
    try:
        return math.pow(base, exponent)
    except (OverflowError, ValueError):
        return None


def _exp(value: float) -> float | None:
    try:
        return math.exp(value)
    except OverflowError:
        return None


def _sqrt(value: float) -> float | None:
    return math.sqrt(value) if value >= 0 or value != value else None


def _ln(value: float) -> float | None:
    return math.log(value) if value > 0 or value != value else None


def remainder(value: Any, divisor: Any) -> Any:
    """The remainder with the sign of the dividend; NULL for a divisor of 0."""
    if not divisor:
        return None
    if isinstance(value, int):
        found = abs(value) % abs(divisor)
        return -found if value < 0 else found
    return math.fmod(value, divisor) if math.isfinite(value) else NAN


def _substring(text: str, start: int, length: int | None = None) -> str:
    first = start - 1 if start > 0 else len(text) + start if start < 0 else 0
    if length is None:
        return text[max(first, 0) :]
    return text[max(first, 0) : max(first + max(length, 0), 0)]


def greatest(*values: Any) -> Any:
    known = [value for value in values if value is not None]
    return max(known, key=_rank) if known else None


def least(*values: Any) -> Any:
    known = [value for value in values if value is not None]
    return min(known, key=_rank) if known else None


def _rank(value: Any) -> tuple[bool, Any]:
    """NaN is greater than all other numbers."""
    return value != value, value


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "SIGN": _sign,
    "FLOOR": _rounded(math.floor),
    "CEIL": _rounded(math.ceil),
    "SQRT": _sqrt,
    "LN": _ln,
    "EXP": _exp,
    "POWER": _power,
    "LENGTH": len,
    "SUBSTRING": _substring,
    "CONCAT": lambda *texts: "".join(texts),
}
"""Functions of values that are not NULL."""


def native(node: Call) -> Callable[..., Any] | None:
    """The function for a call, if there is one: of numbers, where NaN needs no care, and of text."""
    if node.function == "ROUND":
        return _half_up if len(node.arguments) == 1 else None
    return FUNCTIONS.get(node.function)


_ONE_ROW = pl.DataFrame({"o": [None]})


def _name(operand: Expression) -> str:
    """The name of an operand in a message; it is that of a column of the page."""
    return str(operand) if isinstance(operand, Column | Argument) else ""


def through_page(node: Expression, operands: Sequence[Expression]) -> Callable[..., Any]:
    """A function of the operands that computes the node, which has them as children, on a page of one row."""
    names = {id(each): _name(each) or f"o{position}" for position, each in enumerate(operands)}

    def change(part: Expression) -> Expression | None:
        return Column(part.type, names[id(part)]) if id(part) in names else None

    changed = rewritten(node, change)
    checks, computed = Checks(None, [changed]), to_polars(changed)
    types = [(names[id(operand)], operand.type.polars) for operand in operands]

    def compute(*values: Any) -> Any:
        columns = {name: pl.Series([value], dtype=type_) for (name, type_), value in zip(types, values, strict=True)}
        page = pl.DataFrame(columns) if columns else _ONE_ROW
        checks.verify(page)
        return page.select(computed).item()

    return compute


# --- aggregates over lists of values ----------------------------------------------------------------------------------


def _known(values: Iterable[Any]) -> list[Any]:
    return [value for value in values if value is not None]


def count(values: list[Any]) -> int:
    return len(_known(values))


def total(values: list[Any]) -> Any:
    known = _known(values)
    if not known:
        return None
    found = sum(known)
    if isinstance(found, int) and not -_MOST <= found < _MOST:
        raise OutOfRange(f"SUM does not fit BIGINT: {found}")
    return found


def total_of_known(values: list[Any]) -> Any:
    """SUM of integers of which none is NULL."""
    found = sum(values) if values else None
    return found if found is None or -_MOST <= found < _MOST else total(values)


def average(values: list[Any]) -> float | None:
    known = _known(values)
    return sum(map(float, known)) / len(known) if known else None


def smallest(values: list[Any]) -> Any:
    """MIN; NaN is greater than all numbers."""
    known = [value for value in values if value is not None and value == value]
    return min(known) if known else _only_nan(values)


def largest(values: list[Any]) -> Any:
    known = [value for value in values if value is not None and value == value]
    return max(known) if known else _only_nan(values)


def _only_nan(values: list[Any]) -> Any:
    return next((value for value in values if value is not None), None)


AGGREGATES: dict[str, Callable[[list[Any]], Any]] = {
    "COUNT": count,
    "SUM": total,
    "AVG": average,
    "MIN": smallest,
    "MAX": largest,
}


def normal(value: Any) -> Any:
    """A value, or a row of them, as a key: there is one NaN and one zero."""
    if type(value) is tuple:
        return tuple(map(normal, value))
    return value if type(value) is not float else value + 0.0 if value == value else NAN


def distinct(values: Iterable[Any]) -> list[Any]:
    """The different values, in order of their first appearance."""
    return list(dict.fromkeys(map(normal, values)))


def ordered(pairs: list[tuple[Row, Row]], descending: tuple[bool, ...]) -> list[Row]:
    """The rows sorted by the keys before them; NULLs come last, NaN after all numbers."""
    for position in range(len(descending) - 1, -1, -1):
        down = descending[position]

        def key(pair: tuple[Row, Row], position: int = position, down: bool = down) -> tuple[Any, ...]:
            value = pair[0][position]
            return (value is None) is not down, value != value, value

        pairs.sort(key=key, reverse=down)
    return [row for _, row in pairs]


def limited(rows: list[Row], limit: int | None, offset: int | None) -> list[Row]:
    start = max(offset or 0, 0)
    return rows[start:] if limit is None else rows[start : start + max(limit, 0)]


def run(factory: Callable[[], Any], rows: Iterable[tuple[Any, ...]], ignore_nulls: bool) -> list[Any]:
    """The values that a base version returns over these rows of arguments."""
    instance, found = None, []
    for row in rows:
        if ignore_nulls and None in row:
            continue
        if instance is None:
            instance = factory()
            found += instance.initialize(*row)
        else:
            found += instance.iterate(*row)
    if instance is not None:
        found += instance.terminate()
    return [value for (value,) in found]
