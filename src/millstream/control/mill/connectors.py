"""The streams that jobs read themselves: streams with a connector, and Spark DataFrames."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from millstream.algebra.schema import TimeKind
from millstream.control.job.base import Job
from millstream.control.spark.dataframe_source import adopted_streams
from millstream.errors import BindError
from millstream.ingest.paged import PagedSource, open_paged
from millstream.logical.catalog import Catalog, StreamDefinition
from millstream.logical.plan import Plan
from millstream.physical.shard.topology import base_stream, scans

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class Connectors:
    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._opened: dict[str, PagedSource] = {}
        self.frames: dict[str, DataFrame] = {}
        """DataFrames by the name of their stream."""

    def names(self) -> set[str]:
        return {stream.name for stream in self._catalog.streams if stream.options.get("connector")}

    def read_by(self, plan: Plan) -> dict[str, StreamDefinition]:
        """The streams with a connector that a plan reads."""
        found = {base_stream(scan.stream) for scan in scans(plan)}
        return {name: d for name in found if (d := self._catalog.stream(name)).options.get("connector")}

    def open_all(self, streams: dict[str, StreamDefinition]) -> dict[str, DataFrame]:
        """Open these streams and return the DataFrames among them. A stream that cannot be opened raises here: in the
        job it would stop all queries."""
        adopted = adopted_streams(streams)
        for name in streams.keys() - adopted:
            self._paged(name)
        for name in adopted - self.frames.keys():
            hint = f"mill.stream('{name}', df)"
            raise BindError("M2102", f"the DataFrame of stream '{name}' is missing", hint=hint)
        return {name: self.frames[name] for name in adopted}

    def _paged(self, name: str) -> PagedSource:
        if name not in self._opened:
            stream = self._catalog.stream(name)
            self._opened[name] = open_paged(name, stream.schema, stream.options, stream.required)
        return self._opened[name]

    def forget(self, name: str) -> None:
        self._opened.pop(name, None)

    def can_promise(self, name: str) -> bool:
        stream = self._catalog.stream(name)
        return stream.schema.kind is not TimeKind.EXTERNAL or stream.max_skew is not None

    def waiting(self, mill: str, jobs: Iterable[Job]) -> dict[str, int]:
        """Number of rows that wait in each stream that jobs read for a mill, where it is known."""
        found: dict[str, int] = {}
        for job in jobs:
            for key, place in job.places().items():
                owner, _, name = key.partition("/")
                if owner == mill and name in self._catalog:
                    rows = self._paged(name).behind(place["at"])
                    if rows is not None:
                        found[name] = max(rows, found.get(name, 0))
        return found
