"""Numbers of things, as text."""

from __future__ import annotations


def amount(number: float, noun: str) -> str:
    """
    >>> amount(1, "row"), amount(0, "row"), amount(2_000, "query")
    ('1 row', '0 rows', '2,000 queries')
    """
    several = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{number:,.0f} {noun if number == 1 else several}"


def time_text(seconds: int) -> str:
    """
    >>> time_text(3_600), time_text(7_320), time_text(86_521), time_text(0)
    ('1 hour', '2 hours 2 minutes', '1 day 2 minutes 1 second', '0 seconds')
    """
    shown = []
    for length, unit in ((86_400, "day"), (3_600, "hour"), (60, "minute"), (1, "second")):
        number, seconds = divmod(seconds, length)
        shown += [amount(number, unit)] if number else []
    return " ".join(shown) or "0 seconds"
