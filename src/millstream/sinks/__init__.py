"""Sinks: where the driver delivers the results of a query.

>>> import polars as pl
>>> from millstream.algebra.schema import Schema
>>> from millstream.algebra.types import Type
>>> sink = MemorySink()
>>> sink.open("hot", Schema.of(("auction", Type.BIGINT)))
>>> for batch in (0, 1, 1):
...     sink.write(batch, pl.DataFrame({"auction": [180 + batch]}), [])
>>> sink.take_rows().rows()
[(180,), (181,)]
"""

from __future__ import annotations

from millstream.sinks.base import SINKS, Sink, make_sink
from millstream.sinks.memory import MemorySink
from millstream.sinks.options import DeliveryOptions, SinkOptions, delivery_options

__all__ = ["SINKS", "DeliveryOptions", "MemorySink", "Sink", "SinkOptions", "delivery_options", "make_sink"]
