"""Millstream's own contestants.

The module `mill`, if there is one, has two functions without parameters: `contestant()` gives a
`measurement.Contestant` named `millstream`, and `latency_contestant()` a `latency.LatencyContestant`. Without it the
others run alone.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING

from millstream_bench.spark.measurement import Contestant

if TYPE_CHECKING:
    from millstream_bench.spark.latency.run import LatencyContestant

MODULE = "millstream_bench.spark.throughput.mill"


def contestants() -> list[Contestant]:
    """Millstream's entry for throughput, or none."""
    return [import_module(MODULE).contestant()] if find_spec(MODULE) else []


def latency_contestants() -> list[LatencyContestant]:
    """Millstream's entry for latency, or none."""
    return [import_module(MODULE).latency_contestant()] if find_spec(MODULE) else []
