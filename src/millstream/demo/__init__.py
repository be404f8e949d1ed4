"""`millstream demo`: small programs on Spark that explain themselves while they run. They use only the Python API.

| demo | shows |
|---|---|
| auction | a join without windows whose state is the open auctions, and a query added while it runs |
| traffic | means per segment and minute, and a join of probe vehicles with them |
| rfid | readings of tags without noise and duplicates: `DENOISE`, `OVER` and aggregate functions |
| speedmap | a map of mean speeds; a zoom tells the query what is out of sight, by feedback |
| early | an hour of windows of a freeway, answered before their end, with the final answers beside |
| containment | which product is in which case, and the delay of silent streams without timestamps on demand |
"""

from __future__ import annotations

from enum import StrEnum
from importlib import import_module

from rich.console import Console

from millstream.demo.narrator import Narrator


class Demo(StrEnum):
    AUCTION = "auction"
    TRAFFIC = "traffic"
    RFID = "rfid"
    SPEEDMAP = "speedmap"
    EARLY = "early"
    CONTAINMENT = "containment"


def run(console: Console, demo: Demo = Demo.AUCTION, seconds: float = 55.0) -> None:
    """Run a demo for about `seconds` seconds, or until Ctrl-C."""
    narrator = Narrator(console, seconds)
    try:
        import_module(f"millstream.demo.{demo}").run(narrator)
    except KeyboardInterrupt:
        narrator.say("stopped")
