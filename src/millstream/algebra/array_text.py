"""Arrays as text: `[1, 2, NULL]`; quotes are around a text that would otherwise be read differently.

>>> write_array([1, None, "a", "b, c"], str), split_array("[1, NULL, a, 'b, c']")
("[1, NULL, a, 'b, c']", [('1', False), ('NULL', False), ('a', False), ('b, c', True)])
>>> split_array("[]"), split_array("['it''s']")
([], [("it's", True)])
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

PLAIN = r"[^\s\[\],|'\"](?:[^\[\],|'\"]*[^\s\[\],|'\"])?"
"""A text that needs no quotes, unless it is NULL."""
_PLAIN = re.compile(PLAIN)
_ITEM = re.compile(r"\s*(?:'((?:[^']|'')*)'|([^\[\],'\"]*))\s*(,|$)")


def write_array(values: Sequence[Any], write: Callable[[Any], str]) -> str:
    """Return the text of an array; `write` formats a value that is neither NULL nor a text."""
    return f"[{', '.join(_written(value, write) for value in values)}]"


def _written(value: Any, write: Callable[[Any], str]) -> str:
    if value is None:
        return "NULL"
    if not isinstance(value, str):
        return write(value)
    plain = _PLAIN.fullmatch(value) and value.upper() != "NULL"
    return value if plain else "'" + value.replace("'", "''") + "'"


def split_array(text: str) -> list[tuple[str, bool]]:
    """Return the elements of an array and whether each was quoted; raise ValueError if the text is not an array."""
    text = text.strip()
    if len(text) < 2 or text[0] != "[" or text[-1] != "]":
        raise ValueError(f"{text!r} is not an array: write [1, 2]")
    rest, at = text[1:-1].strip(), 0
    found: list[tuple[str, bool]] = []
    while at < len(rest) or (found and rest.endswith(",") and at == len(rest)):
        item = _ITEM.match(rest, at)
        if item is None or (item[1] is None and not item[2].strip()):
            raise ValueError(f"{text!r} is not an array: write [1, 2]")
        found.append((item[2].strip(), False) if item[1] is None else (item[1].replace("''", "'"), True))
        if not item[3]:
            break
        at = item.end()
    return found
