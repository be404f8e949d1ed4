"""The text form of single values inside patterns: as in transcripts, with quotes only where they are needed.

>>> write_value("New York"), write_value("it's, well"), write_value(2.5)
('New York', "'it''s, well'", '2.5')
>>> read_value("'it''s, well'", Type.VARCHAR), read_value("7", Type.BIGINT)
("it's, well", 7)
"""

from __future__ import annotations

import re
import struct
from datetime import timedelta
from typing import Any

import numpy as np

from millstream.algebra.types import Type, check_unicode, format_value, parse_value

QUOTES = "'\""
_WORD = r"[\w.\-:/@+%&$]+"
_PLAIN = re.compile(rf"{_WORD}(?: {_WORD})*")


def write_value(value: Any, type_: Type | None = None) -> str:
    """Format a value; `type_` matters only for REAL, which a Python float does not reveal."""
    if isinstance(value, str):
        return value if _PLAIN.fullmatch(value) and value != "NULL" else "'" + value.replace("'", "''") + "'"
    if isinstance(value, timedelta):
        text = format_value(value)
        return text if timedelta(seconds=float(text)) == value else repr(value.total_seconds())
    if type_ is Type.REAL and isinstance(value, float):
        return str(np.float32(value))
    return format_value(value)


def read_value(text: str, type_: Type) -> Any:
    """Parse a value, bare or quoted; raise ValueError with a reason if it does not fit."""
    text = check_unicode(text).strip()
    if text[:1] and text[0] in QUOTES:
        inner = unquote(text)
        return inner if type_ is Type.VARCHAR else _read(inner, type_)
    if text == "NULL" or (text.lower() == "null" and type_ is not Type.VARCHAR):
        raise ValueError("only * matches NULL")
    return _read(text, type_)


def _read(text: str, type_: Type) -> Any:
    try:
        value = parse_value(text, type_)
        if type_ is Type.REAL:
            value = struct.unpack("<f", struct.pack("<f", value))[0]  # the column holds 32 bits
    except OverflowError:
        raise ValueError(f"{text} is out of range for {type_.value}") from None
    except ValueError as error:
        reason = str(error) if type_.value in str(error) else f"{text!r} is not a value of type {type_.value}"
        raise ValueError(reason) from None
    if value != value:
        raise ValueError("NaN matches no comparison")
    return value


def unquote(text: str) -> str:
    """The content of a quoted text, in which a doubled quote means one quote."""
    quote, inner = text[0], text[1:-1]
    if len(text) < 2 or text[-1] != quote or quote in inner.replace(quote * 2, ""):
        raise ValueError(f"the quotes in {text} do not match")
    return inner.replace(quote * 2, quote)
