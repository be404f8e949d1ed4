"""Numbers of things, as text."""

from __future__ import annotations


def amount(number: float, noun: str) -> str:
    """
    >>> amount(1, "row"), amount(0, "row"), amount(2_000, "query")
    ('1 row', '0 rows', '2,000 queries')
    """
    several = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{number:,.0f} {noun if number == 1 else several}"
