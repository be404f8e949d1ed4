"""The registry of page sources, and the source of a stream by its options."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from millstream.algebra.schema import Schema
from millstream.algebra.values import where_unknown
from millstream.errors import InputError
from millstream.ingest.generators.nexmark.generator import Nexmark, NexmarkOptions
from millstream.ingest.generators.rate import Rate, RateOptions
from millstream.ingest.paged.connectors import CONNECTOR, connector_of
from millstream.ingest.paged.files.other_kinds import check_path
from millstream.ingest.paged.files.partitions import Partitioned
from millstream.ingest.paged.files.source import FileSource
from millstream.ingest.paged.formats import FORMATS
from millstream.ingest.paged.generated import Generated
from millstream.ingest.paged.options import FileOptions
from millstream.ingest.paged.replay import Replay
from millstream.ingest.paged.split import Offset, PagedSource, Split, SplitRows
from millstream.options import check_names, read_options
from millstream.registry import Registry

__all__ = [
    "SOURCES",
    "Offset",
    "Opener",
    "PagedSource",
    "Split",
    "SplitRows",
    "check_options",
    "open_paged",
    "punctuates",
]

Opener = Callable[[str, Schema, Mapping[str, str], Sequence[str]], PagedSource]
"""Opens the source of a stream by its name, its schema, the options (names in lower case, without `connector`), and the
columns that must not be NULL. If it has a method `check` with the same parameters, CREATE STREAM calls it to check the
options, before there may be anything to read. If it has a method `punctuates` with the first three of them, that says
whether the source sends punctuation before its end; without one it may."""


@dataclass(frozen=True, slots=True)
class _Files:
    connector: str

    def __call__(self, name: str, schema: Schema, given: Mapping[str, str], required: Sequence[str]) -> PagedSource:
        kind, options = FORMATS[self.connector], self.check(name, schema, given, required)
        replay = Replay.of(options.speed, schema, name)
        return FileSource(Partitioned(kind.make(schema, tuple(required), options)), options, replay)

    def check(self, name: str, schema: Schema, given: Mapping[str, str], _: Sequence[str]) -> FileOptions:
        check_names(FORMATS[self.connector].of_stream, given)
        if not given.get("path"):
            hint = f"WITH (connector = '{self.connector}', path = '…')"
            raise InputError("M5001", f"the connector '{self.connector}' of stream '{name}' needs a path", hint=hint)
        options = read_options(FORMATS[self.connector].of_stream, given)
        if self.connector != "parquet":
            check_path(options.path)
        Replay.of(options.speed, schema, name)
        return options

    def punctuates(self, name: str, schema: Schema, given: Mapping[str, str]) -> bool:  # noqa: ARG002
        return False


SOURCES: Registry[Opener] = Registry(
    "millstream.sources",
    {name: _Files(name) for name in FORMATS}
    | {"nexmark": Generated("nexmark", NexmarkOptions, Nexmark), "rate": Generated("rate", RateOptions, Rate)},
)
where_unknown(SOURCES.load)  # a split may come from another process, which has imported its package


def open_paged(name: str, schema: Schema, options: Mapping[str, str], required: Sequence[str]) -> PagedSource:
    """Open the source of a stream. A row with NULL in a `required` column is a bad row.

    An invalid connector, option, path or column raises InputError, OptionError or BindError.
    """
    opener, given = _opener(name, options)
    return opener(name, schema, given, required)


def check_options(name: str, schema: Schema, options: Mapping[str, str], required: Sequence[str]) -> None:
    """Raise as `open_paged` does if the connector or an option of a stream is invalid; read nothing. The options of a
    source of another package are known to it alone."""
    if not options:
        return
    opener, given = _opener(name, options)
    if (check := getattr(opener, "check", None)) is not None:
        check(name, schema, given, required)


def punctuates(name: str, schema: Schema, options: Mapping[str, str]) -> bool:
    """Return whether the source of a stream can send punctuation before its end."""
    opener, given = _opener(name, options)
    answer = getattr(opener, "punctuates", None)
    return answer is None or bool(answer(name, schema, given))


def _opener(name: str, options: Mapping[str, str]) -> tuple[Opener, dict[str, str]]:
    given = {option.lower(): value for option, value in options.items()}
    wanted = given.get(CONNECTOR, "").lower()
    connector = connector_of(f"stream '{name}'", given, [wanted] if SOURCES.has(wanted) else SOURCES.names())
    opener = SOURCES.get(connector)
    assert opener is not None
    return opener, given
