"""Types inside a body. Numbers have 64 bits: INT is a BIGINT, and REAL and DECIMAL are DOUBLE."""

from __future__ import annotations

from collections.abc import Iterable

from millstream.algebra.expression import Expression
from millstream.algebra.program.expression import Fitting
from millstream.algebra.schema import Attribute
from millstream.algebra.type_names import type_named
from millstream.algebra.types import Type
from millstream.errors import BindError
from millstream.lang import ast
from millstream.logical.bind.coercion import INSTANTS, cast, cast_hint, read_as

_WIDE = {Type.INT: Type.BIGINT, Type.REAL: Type.DOUBLE, Type.DECIMAL: Type.DOUBLE}


def wide(type_: Type) -> Type:
    return _WIDE.get(type_, type_)


def attributes(columns: Iterable[ast.ColumnDefinition], what: str) -> tuple[Attribute, ...]:
    """The declared columns or arguments, with distinct names."""
    found: dict[str, Attribute] = {}
    for column in columns:
        with column.placing():
            if column.name in found:
                raise BindError("M2015", f"{what} '{column.name}' appears twice")
            with column.type_name.placing():
                found[column.name] = Attribute(column.name, wide(type_named(column.type_name.name)))
    return tuple(found.values())


def assigned(value: Expression, wanted: Type, what: str, written: str = "") -> Expression:
    """The value as the type of what it is assigned to; raise BindError if that could lose something but range: a value
    that does not fit a type of fewer than 64 bits is an error where it is assigned. `written`: how the statement writes
    the value, if it is known."""
    value = read_as(value, wanted)
    given, widest = value.type, wide(wanted)
    fits = given in (wanted, Type.NULL) or wide(given) is widest or (given.is_integer and widest is Type.DOUBLE)
    if not fits and not (given in INSTANTS and wanted is Type.TIMESTAMP):
        hint = cast_hint(value, wanted, written)
        raise BindError("M2006", f"{what} is {wanted.value}, the value is {given.value}", hint=hint)
    if wanted not in (Type.INT, Type.REAL) or given in (wanted, Type.NULL):
        return cast(value, wanted)
    return Fitting(wanted, cast(value, widest))
