"""Millstream: a data stream management system on Apache Spark."""

__version__ = "0.1.0"
