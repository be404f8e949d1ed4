"""I-205 in Portland on the evening of 2011-09-15: readings of loop detectors, and probe vehicles that drive in them.

`evening.parquet` has the readings of the main lanes from 16:00 to 18:30 local time, from the PORTAL archive; the probe
vehicles are generated.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import polars as pl

FOLDER = Path(__file__).parent
READINGS = FOLDER / "evening.parquet"


@dataclass(frozen=True, slots=True)
class Station:
    """A place with detectors in all lanes of one direction, N or S."""

    number: int
    direction: str
    milepost: float
    place: str


def stations() -> list[Station]:
    return [Station(*row) for row in pl.read_csv(FOLDER / "stations.csv").iter_rows()]
