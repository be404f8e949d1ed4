"""The streams that jobs read themselves: streams with a connector, and Spark DataFrames."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from millstream.algebra.schema import TimeKind
from millstream.algebra.stream_id import PlaceId, StreamId
from millstream.control.job.base import Job
from millstream.control.spark.dataframe_source import adopted_streams
from millstream.errors import BindError, InputError, MillstreamError, OptionError, advice
from millstream.ingest.paged import PagedSource, check_options, open_paged, punctuates
from millstream.logical.catalog import Catalog, StreamDefinition
from millstream.logical.plan import Plan
from millstream.physical.shard.topology import DATAFRAME, is_dataframe, scans

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


LOG = logging.getLogger("millstream")


class Connectors:
    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._opened: dict[str, PagedSource] = {}
        self._read: set[str] = set()
        """The streams that queries have opened."""
        self.frames: dict[str, DataFrame] = {}
        """DataFrames by the name of their stream."""

    def names(self) -> set[str]:
        return {stream.name for stream in self._catalog.streams if stream.options.get("connector")}

    def check(self, stream: StreamDefinition) -> None:
        """Raise an error if the connector or an option of a new stream is invalid. The files need not exist yet."""
        if not is_dataframe(stream):
            check_options(stream.name, stream.schema, stream.options, stream.required)
        elif others := stream.options.keys() - {"connector"}:
            hint = f"mill.stream('{stream.name}', df)"
            raise OptionError("M6001", f"the connector '{DATAFRAME}' has no option '{min(others)}'", hint=hint)

    def read_by(self, plan: Plan) -> dict[str, StreamDefinition]:
        """The streams with a connector that a plan reads."""
        found = {scan.id.source for scan in scans(plan)}
        return {name: d for name in found if (d := self._catalog.stream(name)).options.get("connector")}

    def open_all(self, streams: dict[str, StreamDefinition]) -> dict[str, DataFrame]:
        """Open these streams and return the DataFrames among them. A stream that cannot be opened raises here: in the
        job it would stop all queries."""
        adopted = adopted_streams(streams)
        for name in sorted(streams.keys() - adopted):
            known = name in self._read
            if (nothing := getattr(self._paged(name), "absent", "")) and self.ends(name) and not known:
                hint = "without once = true the stream waits for files"
                LOG.warning("%s", InputError("M5067", f"stream '{name}' ends at once: {nothing}", hint=hint))
            self._read.add(name)
        for name in adopted - self.frames.keys():
            hint = advice(f"mill.stream({name!r}, df)", "a program provides it, not the command line")
            raise BindError("M2102", f"the DataFrame of stream '{name}' is missing", hint=hint)
        return {name: self.frames[name] for name in adopted}

    def check_rereadable(self, streams: Iterable[str]) -> None:
        """Raise BindError if one of these streams cannot be read from the beginning."""
        for name in sorted({*streams}):
            stream = self._catalog.stream(name)
            if not stream.options.get("connector") or is_dataframe(stream):
                how = "a DataFrame" if stream.options.get("connector") else "fed row by row"
                message = f"stream '{name}' cannot be read from the beginning: it is {how}"
                hint = "start = 'now' sees the rows from now on, start = 'shared' what an equal running query holds"
                raise BindError("M2104", message, hint=hint)

    def rereadable(self, streams: Iterable[str]) -> bool:
        """Return whether all these streams can be read from the beginning."""
        with suppress(BindError):
            self.check_rereadable(streams)
            return True
        return False

    def _paged(self, name: str) -> PagedSource:
        if name not in self._opened:
            stream = self._catalog.stream(name)
            self._opened[name] = open_paged(name, stream.schema, stream.options, stream.required)
        return self._opened[name]

    def drained(self, name: str, place: Mapping[str, Any] | None, now: int) -> bool:
        """Return whether a place in a stream is behind its newest row, and its end if it has ended."""
        if place is None or "failed" in place:
            return place is not None
        source, at = self._paged(name), place["at"]
        return bool(source.latest(at, now) == at and (place["ended"] or not source.ended(at)))

    def ends(self, name: str) -> bool:
        """Return whether a stream is known to end: all its rows are there, or their number is fixed."""
        stream = self._catalog.stream(name)
        if not stream.options.get("connector") or is_dataframe(stream):
            return False
        return bool(getattr(self._paged(name), "ends", False))

    def absent(self, name: str) -> str:
        """That a stream has no files to read, and where they were looked for; empty if it has, or reads none."""
        stream = self._catalog.stream(name)
        if not stream.options.get("connector") or is_dataframe(stream):
            return ""
        with suppress(MillstreamError):  # the folder is gone
            return str(getattr(self._paged(name), "absent", ""))
        return ""

    def punctuates(self, stream: StreamDefinition) -> bool:
        """Return whether the source of a stream can send punctuation."""
        if is_dataframe(stream):
            return False
        return not stream.options.get("connector") or punctuates(stream.name, stream.schema, stream.options)

    def unpunctuated(self) -> frozenset[str]:
        """The streams whose sources send no punctuation."""
        return frozenset(stream.name for stream in self._catalog.streams if not self.punctuates(stream))

    def forget(self, name: str) -> None:
        self._opened.pop(name, None)
        self._read.discard(name)
        self.frames.pop(name, None)

    def can_promise(self, name: str) -> bool:
        stream = self._catalog.stream(name)
        return stream.schema.kind is not TimeKind.EXTERNAL or stream.max_skew is not None

    def waiting(self, mill: str, jobs: Iterable[Job], readings: set[str]) -> dict[str, int]:
        """Number of rows that wait in each stream that jobs read for a mill, where it is known: of the streams, and of
        these readings of them."""
        found: dict[str, int] = {}
        for job in jobs:
            for key, place in job.places().items():
                owner, read, _ = PlaceId.of(key)
                name = StreamId.of(read).base
                if owner == mill and name in self.names() and (name == read or read in readings):
                    rows = self._behind(name, place)
                    if rows is not None:
                        found[name] = max(rows, found.get(name, 0))
        return found

    def _behind(self, name: str, place: Mapping[str, Any]) -> int | None:
        with suppress(Exception):  # the source may have failed, or fail here; then its readers fail in the job
            return None if "failed" in place else self._paged(name).behind(place["at"])
        return None
