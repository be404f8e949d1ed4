"""Lines of separated values: split into records, and records into values.

A value that starts with a double quote ends at the closing quote; inside, a doubled quote is one quote, and delimiters
and line breaks are data. Any other value is taken literally.

>>> fields('1,"a ""b"", c", d', ",")
[('1', False), ('a "b", c', True), (' d', False)]
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import repeat

import numpy as np

from millstream.ingest.lines import closing_quote

QUOTE = b'"'
LONGEST = 100
"""Most lines of a record with line breaks: a quote that is not closed must not swallow the file."""


def records(data: bytes) -> list[bytes]:
    """Return the records without their final line breaks; blank lines are skipped."""
    lines = _split(data)
    if b"\r" in data:
        lines = [line.removesuffix(b"\r") for line in lines]
    if b"" in lines:
        lines = [line for line in lines if line]
    return lines


def line_numbers(data: bytes) -> list[int]:
    """Return the number of the first line of each record, from 1.

    >>> line_numbers(b'a,b\\n\\n1,"x\\ny"\\n2,z')
    [1, 3, 5]
    """
    numbers, number = [], 1
    for line in _split(data):
        if line.removesuffix(b"\r"):
            numbers.append(number)
        number += 1 + line.count(b"\n")
    return numbers


def _split(data: bytes) -> list[bytes]:
    lines = data.split(b"\n")
    return _joined(lines) if QUOTE in data else lines


def _joined(lines: Sequence[bytes]) -> list[bytes]:
    """Join each line with an odd number of quotes with the lines up to the next such line."""
    odd = [at for at, line in enumerate(lines) if line.count(QUOTE) & 1]
    if not odd:
        return list(lines)
    made: list[bytes] = []
    done = number = 0
    while number < len(odd):
        at = odd[number]
        made += lines[done:at]
        closing = odd[number + 1] if number + 1 < len(odd) else len(lines)
        if closing - at < LONGEST and closing < len(lines):
            made.append(b"\n".join(lines[at : closing + 1]))
            done, number = closing + 1, number + 2
        else:
            made.append(lines[at])
            done, number = at + 1, number + 1
    return made + list(lines[done:])


def fields(record: str, delimiter: str) -> list[tuple[str, bool]]:
    """Return the values of a record, and whether each is quoted; raise ValueError if it is malformed."""
    if '"' not in record:
        return [(value, False) for value in record.split(delimiter)]
    made: list[tuple[str, bool]] = []
    at = 0
    while True:
        if record[at : at + 1] == '"':
            end = closing_quote(record, at)
            if record[end + 1 : end + 2] not in ("", delimiter):
                raise ValueError("text follows a closing quote")
            made.append((record[at + 1 : end].replace('""', '"'), True))
            end += 1
        else:
            end = record.find(delimiter, at)
            end = len(record) if end < 0 else end
            made.append((record[at:end], False))
        if end >= len(record):
            return made
        at = end + 1


def even(lines: Sequence[bytes], delimiter: bytes, width: int) -> bool:
    """True if each record certainly has `width` values, and quotes only around values and doubled inside them.

    >>> even([b"1,a", b'2,"b,c"'], b",", 2), even([b"1,a", b"2", b"3,b,c"], b",", 2), even([b'1,a"b"'], b",", 2)
    (True, False, False)
    """
    data = b"\n".join((b"", *lines, b""))
    if QUOTE not in data:
        return set(map(bytes.count, lines, repeat(delimiter))) <= {width - 1}
    held = np.frombuffer(data, dtype=np.uint8)
    quotes = held == ord(QUOTE)
    inside = np.bitwise_xor.accumulate(quotes)
    breaks = (held == ord(delimiter)) | (held == ord("\n"))
    beside, places = breaks | quotes, np.flatnonzero(quotes)
    if not (beside[places[::2] - 1].all() and beside[places[1::2] + 1].all()):
        return False
    ends = held[breaks & ~inside][1:]
    expected = np.full(width, ord(delimiter), dtype=np.uint8)
    expected[-1] = ord("\n")
    return len(ends) == width * len(lines) and bool((ends.reshape(-1, width) == expected).all())
