"""The files of a transcript, in a folder of its own, for streams and tables with a connector.

A statement names a file or folder by a path that starts at that folder. A file `NAME.parquet` is given as the lines of
a CSV file with a header. With a cut the files of a folder are cut as well, into files of a few lines each, and a batch
reads one file: results must not depend on it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from io import BytesIO
from pathlib import Path, PurePosixPath

import polars as pl

from millstream.atomic_file import write_whole

_PATH = re.compile(r"(\bpath\s*=\s*')([^']+)'", re.IGNORECASE)
_STREAM = re.compile(
    r"(\bCREATE\s+STREAM\b.*\bWITH\s*\()(?=.*\bconnector\s*=\s*'(?:csv|json|parquet)')", re.IGNORECASE | re.DOTALL
)
_HEADLESS = re.compile(r"\bheader\s*=\s*'?false", re.IGNORECASE)


class Files:
    """`statements`: the texts of all statements of the transcript; `size`: returns the number of lines of the next
    file, None: files are not cut."""

    def __init__(self, folder: Path, statements: Iterable[str], size: Callable[[], int] | None) -> None:
        self._folder, self._size = folder, size
        texts = list(statements)
        self._named = {PurePosixPath(path) for text in texts for _, path in _PATH.findall(text)}
        self._headless = any(_HEADLESS.search(text) for text in texts)

    def write(self, name: str, lines: tuple[str, ...]) -> None:
        """Write a file; it appears whole."""
        path = PurePosixPath(name)
        if self._size is None or path in self._named:
            self._write(path, lines)
            return
        headed = path.suffix == ".parquet" or (path.suffix == ".csv" and not self._headless)
        head, rest, number = lines[:headed], lines[headed:], 0
        while rest or not number:
            size, number = self._size(), number + 1
            self._write(path.with_name(f"{path.stem}.{number:04}{path.suffix}"), head + rest[:size])
            rest = rest[size:]

    def _write(self, path: PurePosixPath, lines: tuple[str, ...]) -> None:
        target = self._folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        text = "".join(f"{line}\n" for line in lines).encode()
        write_whole(target, _parquet(text) if path.suffix == ".parquet" else text)

    def resolved(self, statement: str) -> str:
        """The statement with paths that start at the folder, and with a file in each batch if files are cut."""
        text = _PATH.sub(lambda found: f"{found[1]}{self._folder / found[2]}'", statement)
        if self._size is not None and "max_files_per_trigger" not in text.lower():
            text = _STREAM.sub(r"\1max_files_per_trigger = '1', ", text, count=1)
        return text


def _parquet(text: bytes) -> bytes:
    """The rows of a CSV file as parquet; a column without values is one of integers."""
    frame, made = pl.read_csv(text, infer_schema_length=None), BytesIO()
    empty = [name for name in frame.columns if frame.get_column(name).null_count() == frame.height]
    frame.with_columns(pl.col(empty).cast(pl.Int64)).write_parquet(made)
    return made.getvalue()
