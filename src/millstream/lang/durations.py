"""Durations: `60`, `60 SECONDS`, `60s`, `INTERVAL '60' SECOND`, `INTERVAL '1 minute 30 seconds'`."""

from __future__ import annotations

import re
from fractions import Fraction

from millstream.errors import did_you_mean
from millstream.lang import ast
from millstream.lang.cursor import Cursor
from millstream.lang.tokens import Kind, Token

_LENGTHS = {
    ("us", "usec", "microsecond", "microseconds"): ("MICROSECONDS", Fraction(1, 1_000_000)),
    ("ms", "msec", "millisecond", "milliseconds"): ("MILLISECONDS", Fraction(1, 1_000)),
    ("s", "sec", "secs", "second", "seconds"): ("SECONDS", Fraction(1)),
    ("m", "min", "mins", "minute", "minutes"): ("MINUTES", Fraction(60)),
    ("h", "hour", "hours"): ("HOURS", Fraction(3_600)),
    ("d", "day", "days"): ("DAYS", Fraction(86_400)),
    ("w", "week", "weeks"): ("WEEKS", Fraction(604_800)),
}
UNITS = {spelling: unit for spellings, unit in _LENGTHS.items() for spelling in spellings}
_VARIABLE = frozenset({"month", "months", "year", "years", "quarter", "quarters"})
_PART = re.compile(r"\s*([+-]?\d+(?:\.\d*)?)\s*([A-Za-z]*)\s*,?")
_LONGEST = Fraction(86_400 * 365_000)
_DIGITS = 30


def duration(cursor: Cursor, what: str) -> ast.Duration:
    """Parse a duration of a window or an option: a number with or without a unit, or an INTERVAL."""
    token = cursor.token
    if cursor.at("INTERVAL"):
        return interval(cursor)
    sign = "-" if cursor.accept_symbol("-") else ""
    if cursor.token.kind is not Kind.NUMBER:
        hint = "5 MINUTES, or INTERVAL '5' MINUTE"
        cursor.fail(f"{what} (a number, with a unit such as SECONDS, or an INTERVAL)", hint=hint)
    amount = _amount(cursor, sign + cursor.advance().text, token)
    word = cursor.token.upper.lower()
    if word in UNITS or word in _VARIABLE:
        cursor.advance()
        return _duration(cursor, amount, word, token)
    # A word that starts no clause is a misspelt unit, for which "unknown unit" is a better message.
    if word and word.upper() not in _AFTER_DURATION and cursor.ahead().kind is not Kind.NUMBER:
        cursor.error("M1006", f"unknown unit '{cursor.token.text}'", hint=did_you_mean(word, UNITS))
    return _duration(cursor, amount, "", token)


_AFTER_DURATION = frozenset({
    "SLIDE", "RANGE", "ROWS", "ON", "WATTR", "PRECEDING", "WATERMARK", "ORDER", "PUNCTUATED", "PRIMARY", "WITH",
    "SOURCE", "MAX", "ASCENDING", "CLOSES", "AND", "OR", "AS", "FROM", "WHERE", "WINDOW", "GROUP", "HAVING", "UNION",
    "ACTIVE", "FOLLOWING", "FEEDBACK", "LIMIT", "INTO", "BEFORE", "BY", "PRODDED", "EMIT",
})  # fmt: skip


def interval(cursor: Cursor) -> ast.Duration:
    """Parse `INTERVAL`, a string with or without units inside or a number, and an optional unit."""
    token = cursor.expect("INTERVAL")
    sign = "-" if cursor.accept_symbol("-") else ""
    if cursor.token.kind not in (Kind.STRING, Kind.NUMBER):
        cursor.fail("a quoted number after INTERVAL", hint="INTERVAL '5' SECOND")
    text = cursor.advance().text
    word = cursor.token.upper.lower()
    if word in UNITS or word in _VARIABLE:
        cursor.advance()
        if cursor.at("TO"):
            cursor.not_yet(
                "an interval that spans several units", hint="add two: INTERVAL '1' HOUR + INTERVAL '30' MINUTE"
            )
        return _duration(cursor, _amount(cursor, sign + text.strip(), token), word, token)
    if cursor.previous.kind is Kind.NUMBER:
        cursor.fail("a unit such as SECOND", hint=cursor.suggestion(UNITS))
    return _spelled_out(cursor, sign, text, token)


def _spelled_out(cursor: Cursor, sign: str, text: str, token: Token) -> ast.Duration:
    """Parse a string with units inside: '1 minute 30 seconds'."""
    total, offset = Fraction(0), 0
    while offset < len(text):
        match = _PART.match(text, offset)
        if match is None or not match.group(2):
            cursor.error("M1006", f"'{text}' is not an interval", token=token, hint="INTERVAL '5' SECOND")
        total += _duration(cursor, _amount(cursor, match.group(1), token), match.group(2).lower(), token).total
        offset = match.end()
    if not text.strip():
        cursor.error("M1006", "an empty interval", token=token, hint="INTERVAL '5' SECOND")
    return ast.Duration(-total if sign else total, "SECONDS", **token.place)


def _amount(cursor: Cursor, text: str, token: Token) -> Fraction:
    if len(text) > _DIGITS or not re.fullmatch(r"[+-]?(\d+(\.\d*)?|\.\d+)", text):
        cursor.error("M1006", f"'{text}' is not a plain number", token=token, hint="INTERVAL '5' SECOND")
    return Fraction(text.rstrip("."))


def _duration(cursor: Cursor, amount: Fraction, word: str, token: Token) -> ast.Duration:
    if word in _VARIABLE:
        cursor.error("M1006", f"{word.upper()} has no fixed length", token=token, hint="use DAYS")
    if word and word not in UNITS:
        cursor.error("M1006", f"unknown unit '{word}'", token=token, hint=did_you_mean(word, UNITS))
    unit, seconds = UNITS[word] if word else (None, Fraction(1))
    if unit is not None and abs(amount * seconds) > _LONGEST:
        cursor.error("M1006", "the duration is too long", token=token)
    return ast.Duration(amount, unit, seconds, **token.place)
