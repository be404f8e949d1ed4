"""The data source and the stage for Spark, as classes that load the engine when they are first used.

Spark starts a Python process for each step of planning (to find the source, its schema and its reader, and the state of
the stage), and none of them computes anything. They import this module alone; only the reader next to the driver and
the workers that run tasks load the engine.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming import StatefulProcessor, StatefulProcessorHandle

from millstream.collection import uncollected
from millstream.physical.wire.address import INPUT

if TYPE_CHECKING:
    from millstream.physical.spark.page_source import PageReader
    from millstream.physical.spark.stage import Stage

FORMAT = "millstream"


class LazyReader(DataSourceStreamReader):
    """See `page_source.PageReader`."""

    def __init__(self, options: dict[str, str]) -> None:
        self._options = options
        self._made: PageReader | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {"_options": self._options, "_made": None}

    @property
    def _reader(self) -> PageReader:
        if self._made is None:
            with uncollected():
                from millstream.physical.spark.page_source import PageReader

            self._made = PageReader(self._options)
        return self._made

    def initialOffset(self) -> dict[str, Any]:
        return self._reader.initialOffset()

    def latestOffset(self, start: dict[str, Any], limit: Any) -> dict[str, Any]:
        return self._reader.latestOffset(start, limit)

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        return self._reader.partitions(start, end)

    def read(self, partition: InputPartition) -> Iterator[Any]:
        return self._reader.read(partition)


class PageSource(DataSource):
    """Registered as format `millstream`. Options: `log`, the control log; `parallelism`, the number of reading
    tasks."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> str:
        return INPUT

    def streamReader(self, schema: Any) -> LazyReader:  # noqa: ARG002
        return LazyReader(dict(self.options))


class LazyStage(StatefulProcessor):
    """See `stage.Stage`. `code`: the Python functions of queries, as `shipped.pack` returns them."""

    def __init__(self, job: str, number: int, stages: int, code: bytes = b"", *, cached: bool = True) -> None:
        self._job, self._number, self._stages, self._code, self._cached = job, number, stages, code, cached
        self._made: Stage | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_made": None}

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._values = handle.getMapState("values", "key string", "value binary")

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Any]:
        if self._made is None:
            with uncollected():
                from millstream.physical.failure.transport import reporting
                from millstream.physical.spark.shipped import load
                from millstream.physical.spark.stage import Stage

            with reporting():
                load(self._code)
            self._made = Stage(self._job, self._number, self._stages, self._values, cached=self._cached)
        yield from self._made.handleInputRows(key, rows, timerValues)

    def close(self) -> None:
        if self._made is not None:
            self._made.close()
