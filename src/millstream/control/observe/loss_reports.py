"""What is known of the late and bad rows of a stream: the likely cause, an example, and what to declare."""

from __future__ import annotations

from datetime import datetime, timedelta

from millstream.algebra.types import MICROS, format_value, short
from millstream.control.observe.bad_row_hints import what_to_declare
from millstream.errors import InputError, MillstreamError
from millstream.ingest.losses import Losses
from millstream.ingest.paged.files.listing import Listing
from millstream.ingest.paged.formats import FORMATS
from millstream.lang.spelling import spelled as named
from millstream.logical.catalog import StreamDefinition
from millstream.physical.shard.topology import is_dataframe

EPOCH = datetime(1970, 1, 1)
LONG_RUN = 50
"""Rows that are in order over this many rows on average come in long runs, such as files."""
PER_FILE = 10
"""Rows in more runs than this per file are not in order inside the files. A file in the wrong order is one run, or one
in each shard and page."""


def percent(number: int, rows: int) -> str:
    """
    >>> percent(2, 3), percent(1, 10_000_000), percent(3, 3), percent(9_999_999, 10_000_000)
    ('66.7 %', 'under 0.1 %', '100 %', 'over 99.9 %')
    """
    if number == rows:
        return "100 %"
    share = 100 * number / rows
    return "under 0.1 %" if share < 0.1 else "over 99.9 %" if share > 99.9 else f"{share:.1f} %"


def late_report(stream: StreamDefinition, held: Losses) -> MillstreamError:
    """What is known of the late rows of a stream, and what to declare."""
    message = f"stream '{stream.name}': {held.late:,} of {held.rows:,} rows are late ({percent(held.late, held.rows)})"
    cause = max(held.causes, key=lambda each: held.causes[each], default="punctuation")
    detail, hint = _REPORTS[cause](stream, held)
    return InputError("M5060", message, detail=detail, hint=f"{hint}; {named(stream.id.late)} has the rows")


def _out_of_order(stream: StreamDefinition, held: Losses) -> tuple[str, str]:
    time, files = str(stream.schema.time), stream.options.get("connector", "").lower() in FORMATS
    promise = "they break its order" if stream.watermark is None else "by more than its watermark allows"
    detail = f"Their {time} is older than that of rows before them: {promise}. {_worst(stream, held)}"
    declare = f"declare {_watermark(stream, held.longest)}, which would accept all of them"
    usual = held.delay_of(0.99)
    if 2 * usual < held.longest:
        declare += f" ({_delay(stream, usual)}: 99 %)"
    if files and held.runs * LONG_RUN <= sum(held.delays.values()) and held.runs < PER_FILE * _files(stream):
        detail += " The rows are in order over long stretches: a file with newer rows was read before one with older."
        return detail, f"name the files so that the order of their names is that of {time}, or {declare}"
    return detail, f"sort the rows{' of the files' if files else ''} by {time}, or {declare}"


def _files(stream: StreamDefinition) -> int:
    """Number of files that a stream reads, if files can be in the wrong order; 0 if there is one, or they are gone."""
    try:
        number = len(Listing(stream.options["path"]).find())
    except (KeyError, InputError):
        return 0
    return number if number > 1 else 0


def _worst(stream: StreamDefinition, held: Losses) -> str:
    if held.oldest is None:
        return ""
    own, before = (_time(stream, at) for at in held.oldest)
    return f"The one with the longest delay has {own}, after a row with {before}."


def _behind_the_clock(stream: StreamDefinition, held: Losses) -> tuple[str, str]:
    detail = f"The stream had promised a later time, by its MAX SKEW. {_worst(stream, held)}"
    return detail, "declare a longer MAX SKEW"


def _descending(stream: StreamDefinition, _: Losses) -> tuple[str, str]:
    columns = ", ".join(stream.ascending)
    return f"A value of ASCENDING ({columns}) is below an earlier one.", "leave ASCENDING out if values may fall"


def _repeated(stream: StreamDefinition, _: Losses) -> tuple[str, str]:
    key = ", ".join(stream.primary_key)
    return f"A row with their PRIMARY KEY ({key}) had come.", "leave PRIMARY KEY out if values of the key repeat"


def _punctuated(_stream: StreamDefinition, _: Losses) -> tuple[str, str]:
    return "A punctuation of the stream excludes them.", "send a punctuation only after the rows that it matches"


_REPORTS = {
    "order": _out_of_order,
    "skew": _behind_the_clock,
    "ascending": _descending,
    "key": _repeated,
    "punctuation": _punctuated,
}


def _watermark(stream: StreamDefinition, delay: int) -> str:
    time = named(str(stream.schema.time))
    if is_dataframe(stream):
        return f"order_by={str(stream.schema.time)!r}, watermark={_delay(stream, delay)!r}"
    if stream.schema.unit == MICROS:
        return f"WATERMARK FOR {time} AS {time} - INTERVAL '{_delay(stream, delay)}'"
    return f"WATERMARK FOR {time} AS {time} - {delay}"


def _delay(stream: StreamDefinition, delay: int) -> str:
    return interval_text(delay) if stream.schema.unit == MICROS else str(delay)


def _time(stream: StreamDefinition, at: int) -> str:
    time = str(stream.schema.time)
    shown = format_value(EPOCH + timedelta(microseconds=at)) if stream.schema.unit == MICROS else at
    return f"{time} {shown}"


UNITS = ((86_400, "day"), (3_600, "hour"), (60, "minute"), (1, "second"))


def interval_text(micros: int) -> str:
    """An interval at least as long, in a unit of which there are few.

    >>> interval_text(1_500), interval_text(90_000_000), interval_text(5_400_000_001), interval_text(86_400_000_000)
    ('2 milliseconds', '90 seconds', '91 minutes', '24 hours')
    """
    for seconds, unit in UNITS:
        if micros > 2 * seconds * MICROS or (unit == "second" and micros >= MICROS):
            number = -(-micros // (seconds * MICROS))
            return f"{number} {unit}{'s' if number > 1 else ''}"
    number = max(1, -(-micros // 1000))
    return f"{number} millisecond{'s' if number > 1 else ''}"


# --- bad rows -------------------------------------------------------------------------------------------------------


def bad_report(stream: StreamDefinition, held: Losses) -> MillstreamError:
    """What is known of the bad rows of a stream, and what to declare."""
    message = f"stream '{stream.name}': {held.bad:,} of {held.rows:,} rows are bad ({percent(held.bad, held.rows)})"
    end = f"{named(stream.id.bad)} has the rows"
    if not held.reasons:
        return InputError("M5061", message, hint=end)
    most = max(held.reasons.values(), key=lambda kind: kind.number)
    where = f"{most.place}, " if most.place else ""
    example = f"{where}{short(most.input)}: {most.reason}."
    often = "" if len(held.reasons) == 1 else f" Most often ({most.number:,} of {held.bad:,}):"
    hint = what_to_declare(stream, most)
    detail = f"{often.strip()} {example}".strip()
    return InputError("M5061", message, detail=detail, hint="; ".join(filter(None, (hint, end))))
