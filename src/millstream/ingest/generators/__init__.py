"""Streams out of nothing: generators whose elements are a pure function of their options and their numbers.

>>> made = generator("rate", {"rate": "2"}).make("rate", 3, 5)
>>> made.rows.rows()
[(3, datetime.datetime(1970, 1, 1, 0, 0, 1, 500000)), (4, datetime.datetime(1970, 1, 1, 0, 0, 2))]
"""

from __future__ import annotations

from collections.abc import Mapping

from millstream.errors import InputError, did_you_mean
from millstream.ingest.generators.base import Generator
from millstream.ingest.generators.nexmark import Nexmark, NexmarkOptions
from millstream.ingest.generators.options import read_options
from millstream.ingest.generators.rate import Rate, RateOptions
from millstream.ingest.generators.traffic import Traffic
from millstream.ingest.generators.traffic_options import TrafficOptions

__all__ = ["GENERATORS", "Generator", "generator"]

GENERATORS = ("nexmark", "rate", "traffic")


def generator(name: str, options: Mapping[str, str]) -> Generator:
    """The generator of that name; OptionError if an option is unknown or has a value that cannot be."""
    match name.lower():
        case "nexmark":
            return Nexmark(read_options(NexmarkOptions, options))
        case "rate":
            return Rate(read_options(RateOptions, options))
        case "traffic":
            return Traffic(read_options(TrafficOptions, options))
        case _:
            raise InputError("M5002", f"unknown generator '{name}'", hint=did_you_mean(name, GENERATORS))
