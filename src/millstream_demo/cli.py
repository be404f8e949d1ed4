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
from typing import Annotated

import typer
from rich.console import Console

from millstream_demo.narrator import Narrator


class Demo(StrEnum):
    AUCTION = "auction"
    TRAFFIC = "traffic"
    RFID = "rfid"
    SPEEDMAP = "speedmap"
    EARLY = "early"
    CONTAINMENT = "containment"


demo = typer.Typer(add_completion=False, rich_markup_mode=None)


@demo.command("demo")
def run(
    name: Annotated[Demo, typer.Argument(help="the demo")] = Demo.AUCTION,
    seconds: Annotated[float, typer.Option(min=1, help="approximate duration; 15 s of data at least")] = 55,
) -> None:
    """Run a demo on Spark: its statements, results and state, second by second. Takes about a minute."""
    narrator = Narrator(Console(highlight=False, soft_wrap=True), seconds)
    try:
        import_module(f"millstream_demo.{name}").run(narrator)
    except KeyboardInterrupt:
        narrator.say("stopped")
