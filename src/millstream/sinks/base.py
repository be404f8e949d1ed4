"""The protocol of sinks, and the registry that makes them by name.

A sink receives the result of every batch, in order of the batch ids. After a crash the last batch may be repeated, with
the same id and the same bag of rows; a sink must not double it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Protocol, TypeVar, runtime_checkable

import polars as pl

from millstream.algebra.punctuation.pattern import Pattern
from millstream.algebra.schema import Schema
from millstream.arguments import check_function
from millstream.errors import OptionError, did_you_mean
from millstream.options import read_options
from millstream.registry import Registry
from millstream.sinks.callback import CallbackSink
from millstream.sinks.files.parquet import ParquetOptions, ParquetSink
from millstream.sinks.memory import MemorySink
from millstream.sinks.options import DeliveryOptions, SinkOptions
from millstream.sinks.terminal.console import ConsoleOptions, ConsoleSink

METHODS = {"open": "query schema", "write": "batch rows punctuations", "close": ""}
"""The methods of a sink and their arguments."""
Read = TypeVar("Read", bound=SinkOptions)
NO_OPTIONS: Mapping[str, str] = MappingProxyType({})


@runtime_checkable
class Sink(Protocol):
    def open(self, query: str, schema: Schema) -> None:
        """Prepare for the first batch; called at each start, also when the query is resumed."""
        ...

    def write(self, batch: int, rows: pl.DataFrame, punctuations: Sequence[Pattern]) -> None:
        """Keep one batch: it is safe once this returns. `rows` has the visible columns, and may be empty."""
        ...

    def close(self) -> None:
        """Release resources; called when the query stops, for any reason, and possibly twice."""
        ...


Maker = Callable[[Mapping[str, str]], Sink]
"""Makes a sink from its options, which include `run` (`SinkOptions`)."""


def _maker(name: str, options: type[Read], make: Callable[[Read], Sink]) -> Maker:
    return lambda given: make(read_options(options, given, f"sink '{name}'", others=DeliveryOptions.model_fields))


SINKS: Registry[Maker] = Registry(
    "millstream.sinks",
    {
        "console": _maker("console", ConsoleOptions, lambda options: ConsoleSink(options.rows)),
        "memory": _maker("memory", SinkOptions, lambda _: MemorySink()),
        "none": _maker("none", SinkOptions, lambda _: CallbackSink(lambda _batch, _rows: None)),
        "parquet": _maker("parquet", ParquetOptions, ParquetSink),
    },
)


def make_sink(spec: str | Sink | Callable[[int, pl.DataFrame], None], options: Mapping[str, str] = NO_OPTIONS) -> Sink:
    """Return the sink of that name, the given sink itself, or a sink that calls the given function with every batch.

    >>> make_sink("parquett")
    Traceback (most recent call last):
    millstream.errors.OptionError: M6003: unknown sink 'parquett'
      hint: did you mean 'parquet'?
    """
    if isinstance(spec, str):
        maker = SINKS.get(spec)
        if maker is None:
            text = spec.lower() in ("csv", "json")
            hint = "INTO parquet WITH (path = '…'); a Python function as the sink can write any format" if text else ""
            raise OptionError("M6003", f"unknown sink '{spec}'", hint=hint or did_you_mean(spec, SINKS.names()))
        return maker(options)
    read_options(SinkOptions, options, "an object as a sink", others=DeliveryOptions.model_fields)
    if isinstance(spec, Sink) and not isinstance(spec, type):
        for method, takes in METHODS.items():
            check_function(getattr(spec, method), takes, f"{method} of a sink", code="M6003")
        return spec
    if callable(spec) and not isinstance(spec, type):
        check_function(spec, "batch rows", "a sink", code="M6003")
        return CallbackSink(spec)
    hint = "give the name of a sink, a function of a batch id and a DataFrame, or an object with open, write and close"
    raise OptionError("M6003", f"{spec!r} is not a sink", hint=hint)
