"""The names of types in SQL."""

from __future__ import annotations

from millstream.algebra.types import Type
from millstream.errors import BindError, did_you_mean

SYNONYMS = {
    Type.BOOLEAN: ("BOOLEAN", "BOOL"),
    Type.INT: ("INT", "INTEGER", "SMALLINT", "TINYINT", "INT4"),
    Type.BIGINT: ("BIGINT", "LONG", "INT8"),
    Type.REAL: ("REAL", "FLOAT4"),
    Type.DOUBLE: ("DOUBLE", "FLOAT", "FLOAT8"),
    Type.DECIMAL: ("DECIMAL", "NUMERIC", "DEC"),
    Type.VARCHAR: ("VARCHAR", "CHAR", "CHARACTER", "STRING", "TEXT"),
    Type.TIMESTAMP: ("TIMESTAMP", "DATETIME"),
    Type.DATE: ("DATE",),
    Type.INTERVAL: ("INTERVAL",),
}
FOREIGN = {
    **dict.fromkeys(("SERIAL", "BIGSERIAL", "UBIGINT", "UINT64", "INT64", "NUMBER"), "BIGINT"),
    **dict.fromkeys(("INT32", "UINT", "MEDIUMINT", "SHORT", "BYTE"), "INT"),
    **dict.fromkeys(("JSON", "JSONB", "UUID", "NVARCHAR", "CLOB", "ENUM", "BYTEA", "BLOB", "BYTES", "INET"), "VARCHAR"),
    **dict.fromkeys(("TIMESTAMPTZ", "TIMESTAMP_LTZ", "TIMESTAMP_NTZ", "DATETIME2", "TIME"), "TIMESTAMP"),
    **dict.fromkeys(("FLOAT64", "MONEY"), "DOUBLE"),
}
"""Types of other systems, and what to write instead."""
ONE_OF = f"one of {', '.join(type_.value for type_ in SYNONYMS)}"
"""A hint with one name of each type."""
_TYPES = {name: type_ for type_, names in SYNONYMS.items() for name in names}


def type_named(name: str) -> Type:
    """Return the type of a written type name."""
    found = _TYPES.get(name.upper())
    if found is None:
        instead = FOREIGN.get(name.upper())
        hint = f"write {instead}" if instead else _resembling(name)
        raise BindError("M2003", f"unknown type {name.upper()}", hint=hint)
    return found


def _resembling(name: str) -> str:
    """A hint with the type of the most similar name, or else one name of each type."""
    hint = did_you_mean(name, (known.lower() for known in _TYPES))
    return ONE_OF if hint.startswith("known") else hint
