"""The query-graph engine: buffers, next-operator selection, time-stamp registers, enabling timestamps."""

from millstream.runtime.engine.graph import Graph
from millstream.runtime.engine.nodes import OperatorNode, Sink, Source
from millstream.runtime.engine.statistics import NodeStatistics
from millstream.runtime.engine.table import Row, format_table
from millstream.runtime.engine.timestamps import EtsMode
from millstream.strategies import Strategy

__all__ = [
    "EtsMode",
    "Graph",
    "NodeStatistics",
    "OperatorNode",
    "Row",
    "Sink",
    "Source",
    "Strategy",
    "format_table",
]
