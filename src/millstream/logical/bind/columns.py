"""Columns that a clause of a declaration names."""

from __future__ import annotations

from collections.abc import Iterable

from millstream.algebra.schema import Schema
from millstream.algebra.types import Type
from millstream.errors import BindError, did_you_mean

Column = tuple[str, Type]
"""A column as it is called in a message, and its type."""


def known_columns(names: Iterable[str], schema: Schema, clause: str) -> tuple[str, ...]:
    """Return the names, each of which is a column and appears once."""
    found: list[str] = []
    for name in names:
        if name not in schema:
            raise BindError("M2001", f"unknown column '{name}' in {clause}", hint=did_you_mean(name, schema.names))
        if name in found:
            raise BindError("M2015", f"column '{name}' appears twice in {clause}", hint="Name it once.")
        found.append(name)
    return tuple(found)


def check_types(code: str, *pairs: tuple[Column, Column]) -> None:
    """Raise BindError if corresponding columns have different types, other than integers."""
    for (first, one), (second, other) in pairs:
        if one is not other and not (one.is_integer and other.is_integer):
            message = f"'{first}' is {one.value} and '{second}' is {other.value}"
            raise BindError(code, message, hint="Both columns have the same type.")
