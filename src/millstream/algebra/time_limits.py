"""Limits that time sets on columns.

A bound b on time promises that no later tuple has a timestamp below b. A column that follows time (`Schema.trails`: it
is never below f(timestamp), and f rises) then has no later value below f(b): the bound acts like the punctuation
`[column < f(b)]`, which is never sent. Of a join it limits the other side:

| condition between a column c of a side and a column d of the other that follows time | useless stored tuples |
|---|---|
| c = d | c < f(b) |
| c >= g(d), c = g(d), where g rises | c < g(f(b)) |
| c > g(d) | c <= g(f(b)) |

>>> d = Column(Type.BIGINT, "r.ts")
>>> later = Binary(Type.BOOLEAN, ">", Column(Type.BIGINT, "l.ts"), Binary(Type.BIGINT, "-", d, Literal(Type.BIGINT, 5)))
>>> [str(limit) for limit in partner_limits({"l.ts"}, "l.ts", {"r.ts": Column(Type.BIGINT, TS)}, (), later)]
['__ts <= (__ts - 5)']
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from millstream.algebra.expression import Binary, Cast, Column, Expression, Literal, conjuncts, rewrite
from millstream.algebra.monotone import monotone
from millstream.algebra.schema import TS, Schema
from millstream.algebra.types import Type

_MIRRORED = {"<": ">", "<=": ">=", "=": "=", ">": "<", ">=": "<="}
_CLOSES = {">=": "<", "=": "<", ">": "<="}
"""For a condition on a column and a rising value, the comparison of the column that excludes it for good."""

Trails = Mapping[str, Expression]


@dataclass(frozen=True, slots=True)
class Limit:
    """Tuples with `column op value` are closed, where `value` is over a bound on time, under the name of the hidden
    timestamp. `reason` is the condition behind it."""

    column: str
    op: str
    value: Expression
    reason: str = ""

    def __str__(self) -> str:
        return f"{self.column} {self.op} {self.value}"


def own_limits(trails: Trails, names: Iterable[str]) -> tuple[Limit, ...]:
    """Return the limits that a stream's own time sets on these columns."""
    return tuple(Limit(name, "<", trails[name]) for name in names if name in trails)


def partner_limits(
    columns: Collection[str],
    time: str | None,
    other: Trails,
    keys: Iterable[tuple[str, str]],
    residual: Expression | None,
) -> tuple[Limit, ...]:
    """Return the limits on the tuples of one side of a join that the time of another sets. `columns` are those of the
    side, `time` the one that equals its timestamp, `other` those of the other side that follow time, `keys` pairs of
    equal columns, the side's own first; all under the names of the output."""
    found = [Limit(one, "<", other[peer], f"{one} = {peer}") for one, peer in keys if peer in other]
    for conjunct in conjuncts(residual):
        if isinstance(conjunct, Binary) and conjunct.op in _MIRRORED:
            found += _limits(conjunct, conjunct.op, conjunct.left, conjunct.right, columns, other)
            found += _limits(conjunct, _MIRRORED[conjunct.op], conjunct.right, conjunct.left, columns, other)
    # The hidden timestamp is an integer, which is cheap to compare.
    return tuple(replace(limit, column=TS) if limit.column == time else limit for limit in found)


@dataclass(frozen=True, slots=True)
class Partner:
    """One side of a join: its schema, its columns mapped to those of the output, and its keys under the output's names;
    keys at the same place are equal over all sides."""

    schema: Schema
    names: Mapping[str, str]
    keys: Sequence[str]


def join_limits(sides: Sequence[Partner], residual: Expression | None) -> dict[tuple[int, int], tuple[Limit, ...]]:
    """Return, for each pair of sides, the limits on the first one's tuples that the time of the second one sets."""
    trails = [{side.names[name]: value for name, value in side.schema.trails.items()} for side in sides]
    found: dict[tuple[int, int], tuple[Limit, ...]] = {}
    for i, own in enumerate(sides):
        time = None if own.schema.time is None else own.names[own.schema.time]
        for j, other in enumerate(sides):
            if i == j or (residual is None and trails[j].keys().isdisjoint(other.keys)):
                continue
            keys = zip(own.keys, other.keys, strict=True)
            if limits := partner_limits({*own.names.values()}, time, trails[j], keys, residual):
                found[i, j] = limits
    return found


def _limits(
    conjunct: Binary, op: str, one: Expression, peer: Expression, columns: Collection[str], other: Trails
) -> list[Limit]:
    """Return the limit of a condition `one op peer`, if there is one."""
    base, followed = _base(one), monotone(peer)
    if op not in _CLOSES or base is None or base[0] not in columns or followed is None or not followed.rises:
        return []
    comparable = one.type is peer.type or (one.type.is_integer and peer.type.is_integer)
    if followed.column not in other or not comparable:
        return []
    value = substituted(peer, other)
    for back, constant in base[1]:
        value = Binary(peer.type, back, value, constant)
    return [Limit(base[0], _CLOSES[op], value, str(conjunct))]


def substituted(expression: Expression, trails: Trails) -> Expression:
    """Return an expression with its columns replaced by those over the hidden timestamp."""
    return rewrite(expression, lambda part: trails.get(part.name) if isinstance(part, Column) else None)


def _base(expression: Expression) -> tuple[str, tuple[tuple[str, Expression], ...]] | None:
    """Match a column plus constants, integers or times; return its name, and the steps that subtract the constants."""
    match expression:
        case Column(name=name):
            return name, ()
        case Cast(type=type_, operand=operand) if type_.is_integer and operand.type.is_integer:
            return _base(operand)
        case Binary(type=type_, op="+" | "-" as op, left=left, right=Literal() as constant) if _exact(type_):
            inner = _base(left)
            return None if inner is None else (inner[0], (("-" if op == "+" else "+", constant), *inner[1]))
        case Binary(type=type_, op="+", left=Literal() as constant, right=right) if _exact(type_):
            inner = _base(right)
            return None if inner is None else (inner[0], (("-", constant), *inner[1]))
    return None


def _exact(type_: Type) -> bool:
    return type_.is_integer or type_ is Type.TIMESTAMP
