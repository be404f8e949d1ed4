"""Generators of synthetic streams: their elements are a pure function of the options and the event numbers.

>>> made = generator("rate", {"rate": "2"}).make("rate", 3, 5)
>>> made.rows.rows()
[(3, datetime.datetime(1970, 1, 1, 0, 0, 1, 500000)), (4, datetime.datetime(1970, 1, 1, 0, 0, 2))]
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from millstream.errors import InputError, did_you_mean
from millstream.ingest.generators.base import Generator
from millstream.ingest.generators.nexmark.generator import Nexmark, NexmarkOptions
from millstream.ingest.generators.options import GeneratorOptions
from millstream.ingest.generators.rate import Rate, RateOptions
from millstream.ingest.generators.rfid import Rfid, RfidOptions
from millstream.ingest.generators.traffic.generator import Traffic
from millstream.ingest.generators.traffic.options import TrafficOptions
from millstream.options import read_options

__all__ = ["GENERATORS", "Generator", "generator"]

GENERATORS: Mapping[str, tuple[type[GeneratorOptions], Callable[[Any], Generator]]] = {
    "nexmark": (NexmarkOptions, Nexmark),
    "rate": (RateOptions, Rate),
    "rfid": (RfidOptions, Rfid),
    "traffic": (TrafficOptions, Traffic),
}


def generator(name: str, options: Mapping[str, str], others: Iterable[str] = ()) -> Generator:
    """Return the generator of that name; raise OptionError if an option is unknown or its value is invalid. `others`:
    the options that all generators share, for hints."""
    if name.lower() not in GENERATORS:
        raise InputError("M5002", f"unknown generator '{name}'", hint=did_you_mean(name, GENERATORS))
    known, make = GENERATORS[name.lower()]
    return make(read_options(known, options, others=others))
