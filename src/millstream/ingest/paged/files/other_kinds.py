"""Files of another kind than that of their source: recognised by their first bytes, and refused. Text may be compressed
by gzip."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path
from typing import BinaryIO, NamedTuple, cast

from millstream.errors import InputError
from millstream.ingest.paged.files.formats import File, check_whole, unreadable


class _Kind(NamedTuple):
    """Files that are not plain text: how they begin, and how their names end."""

    start: bytes
    ending: str
    name: str
    hint: str


PARQUET, GZIP = b"PAR1", b"\x1f\x8b"
UNREADABLE = (OSError, EOFError, zlib.error)
"""Errors of reading a file, which may be compressed."""
CONVERTED = "Convert it to UTF-8: iconv -f ISO-8859-1 -t UTF-8 FILE, if it is Latin-1"
OTHER_KINDS = (
    _Kind(GZIP, "", "compressed (gzip)", "connector = 'csv' and 'json' read text compressed by gzip"),
    _Kind(b"\x28\xb5\x2f\xfd", ".zst", "compressed (zstd)", "Decompress it: unzstd FILE"),
    _Kind(b"BZh", ".bz2", "compressed (bzip2)", "Decompress it: bunzip2 FILE"),
    _Kind(b"\xfd7zXZ\x00", ".xz", "compressed (xz)", "Decompress it: unxz FILE"),
    _Kind(b"PK\x03\x04", ".zip", "compressed (zip)", "Unpack it: unzip FILE"),
    _Kind(b"\x04\x22\x4d\x18", ".lz4", "compressed (lz4)", "Decompress it: unlz4 FILE"),
    _Kind(PARQUET, ".parquet", "a parquet file", "connector = 'parquet'"),
    _Kind(b"\xff\xfe", "", "UTF-16", "Convert it to UTF-8: iconv -f UTF-16 -t UTF-8 FILE"),
    _Kind(b"\xfe\xff", "", "UTF-16", "Convert it to UTF-8: iconv -f UTF-16 -t UTF-8 FILE"),
)


def check_text(file: File) -> None:
    """Raise InputError if the first bytes of a file are not those of a text in UTF-8."""
    check_whole(file)
    try:
        with open_text(file) as opened:
            start = opened.read(8)
    except UNREADABLE as error:
        raise undecodable(file, error) from error
    for kind in OTHER_KINDS:
        if start.startswith(kind.start):
            raise InputError("M5046", f"file '{file.path}' is {kind.name}, not plain text in UTF-8", hint=kind.hint)


def is_compressed(file: File) -> bool:
    return _start(file).startswith(GZIP)


def open_text(file: File) -> BinaryIO:
    """Open a file of text, which may be compressed."""
    return cast(BinaryIO, gzip.open(file.path)) if is_compressed(file) else Path(file.path).open("rb")


def undecodable(file: File, error: Exception) -> InputError:
    """The error of a text that cannot be read. One that ends within compressed data may not be whole yet."""
    if isinstance(error, gzip.BadGzipFile | zlib.error):
        return unreadable(file, reason(error), "It is damaged, or has other bytes behind its end: see gzip -t FILE.")
    return unreadable(file, reason(error))


def reason(error: Exception) -> str:
    return str(getattr(error, "strerror", None) or error)


def check_parquet(file: File) -> None:
    """Raise InputError if the first bytes of a file, which is not empty, are not those of a parquet file."""
    start = _start(file)
    if not start or start.startswith(PARQUET):
        return
    found = [kind for kind in OTHER_KINDS if start.startswith(kind.start)]
    is_json = start.lstrip(b"\xef\xbb\xbf \t\r\n").startswith((b"{", b"["))
    hint = found[0].hint if found else f"connector = '{'json' if is_json else 'csv'}' reads text"
    what = f"is {found[0].name}, not a parquet file" if found else "is not a parquet file"
    raise InputError("M5046", f"file '{file.path}' {what}", hint=hint)


def _start(file: File) -> bytes:
    try:
        with Path(file.path).open("rb") as opened:
            return opened.read(8)
    except OSError as error:
        raise unreadable(file, reason(error)) from error


def check_path(path: str) -> None:
    """Raise InputError if a path ends as compressed files do."""
    for kind in OTHER_KINDS:
        if kind.ending and path.lower().endswith(kind.ending):
            raise InputError("M5046", f"path '{path}' is {kind.name}, not plain text in UTF-8", hint=kind.hint)
