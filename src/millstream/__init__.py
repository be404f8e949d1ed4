"""Millstream: a data stream management system on Apache Spark.

`connect` opens a connection; `millstream.control.mill.LocalMill` runs in this process alone. Importing this package
starts nothing and is quick: a name is loaded when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from millstream.algebra.python.library import aggregate, function
    from millstream.control.connecting import connect
    from millstream.control.connection import Connection
    from millstream.control.query import Query

__version__ = "0.1.0"
__all__ = ["Connection", "Query", "__version__", "aggregate", "connect", "function"]


def __getattr__(name: str) -> Any:
    if name in ("Connection", "Query", "connect"):
        from millstream.control import connecting, connection

        return getattr(connecting if name == "connect" else connection, name)
    if name in ("aggregate", "function"):
        from millstream.algebra.python import library

        return getattr(library, name)
    raise AttributeError(f"module 'millstream' has no attribute '{name}'")
