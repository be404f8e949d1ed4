"""RFID readers at a packing line: a case arrives, and products are put into it until the next case arrives.

The demo feeds the readings itself, like two readers. The case of a product is certain only when no other case can have
been read before the product, so the engine requests the time of the silent reader of cases. The last third of the demo
runs without such requests.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

import polars as pl

from millstream_demo.narrator import Narrator
from millstream_demo.shared import connected, lasting, shown

if TYPE_CHECKING:
    from millstream import Connection

PER_SECOND = 1.5
"""Products read per second, on average."""
CASE_SECONDS = (4.0, 7.0)
"""Shortest and longest time between two cases, in seconds."""

STREAMS = """
CREATE STREAM cases (tag VARCHAR) ORDER BY current_time;

CREATE STREAM products (tag VARCHAR) ORDER BY current_time
"""
CONTAINED = """
SELECT c.tag AS case_tag, p.tag AS product
FROM cases c, products p WHERE SEQ(c, p) MODE RECENT
"""
ADDED = "SELECT window_end, COUNT(*) AS products FROM products [RANGE 5 SECONDS]"
WITHOUT = "SET ets = 'none'"
Reading = tuple[float, str, str]
"""Time in seconds, reader, tag."""


def readings(seed: int = 1) -> Iterator[Reading]:
    """An endless sequence of cases every few seconds, and products at random times."""
    draw = random.Random(seed)
    next_case, next_product = 0.0, 0.5
    cases = products = 0
    while True:
        if next_case <= next_product:
            cases += 1
            yield next_case, "cases", f"C{cases}"
            next_case += draw.uniform(*CASE_SECONDS)
        else:
            products += 1
            yield next_product, "products", f"P{products}"
            next_product += draw.expovariate(PER_SECOND)


def run(narrator: Narrator) -> None:
    with connected(narrator, "Which product is in which case: two RFID readers, on Spark") as mill:
        shown(narrator, mill, STREAMS)
        narrator.say("A product is in the case that was read last before it:")
        line = PackingLine(narrator, mill)
        shown(narrator, mill, CONTAINED).start(line.packed, name="contained")
        third = lasting(narrator) / 3
        narrator.say("Each product, its case, and the seconds from the reading to the answer:\n")
        narrator.columns("case", "product", "seconds", "in state")
        line.run(third)
        narrator.say("\nA second query, added to the running Spark job:")
        shown(narrator, mill, ADDED).start(line.counted, name="per_five_seconds")
        line.run(third)
        narrator.say("\nFrom now on the engine does not request the time of the silent reader:")
        shown(narrator, mill, WITHOUT)
        switched = time.monotonic()
        line.run(third)
        before = [wait for read, wait in line.waits if read < switched]
        after = [wait for read, wait in line.waits if read >= switched]
        waiting = [time.monotonic() - read for read in line.unanswered.values()]
        narrator.say(
            f"\nWith requests for the time, the case of a product was known after {_mean(before)} on average.\n"
            f"Without them it takes {_mean(after + waiting)} so far, and {len(waiting)} products still wait for\n"
            "the next case."
        )
        narrator.say("\nNext, by millstream docs PAGE: operators/sequence for sequences, engine for time on demand")


class PackingLine:
    """Feed the readings when they are due, and print the answers."""

    def __init__(self, narrator: Narrator, mill: Connection) -> None:
        self._narrator, self._mill = narrator, mill
        self._readings = readings()
        self._next = next(self._readings)
        self._begun = time.monotonic()
        self.unanswered: dict[str, float] = {}
        """Times at which products were read whose case is not known yet, by tag."""
        self._answers: list[tuple[str, str, float]] = []
        self._counts: list[tuple[str, int]] = []
        self.waits: list[tuple[float, float]] = []
        """The time at which a product was read, and the seconds until its case was known."""

    def run(self, seconds: float) -> None:
        """Feed readings and print answers for `seconds` seconds."""
        until = time.monotonic() + seconds
        while (now := time.monotonic()) < until:
            self._mill.check()
            due, stream, tag = self._next
            if now - self._begun >= due:
                if stream == "products":
                    self.unanswered[tag] = now
                self._mill.insert(stream, [(tag,)])
                self._next = next(self._readings)
            self._show()
            time.sleep(0.02)

    def packed(self, batch: int, rows: pl.DataFrame) -> None:  # noqa: ARG002
        """The sink of the sequence query."""
        now = time.monotonic()
        self._answers += [(case, product, now) for case, product in rows.rows()]

    def counted(self, batch: int, rows: pl.DataFrame) -> None:  # noqa: ARG002
        """The sink of the counting query."""
        self._counts += [(f"{end:%H:%M:%S}", count) for end, count in rows.rows()]

    def _show(self) -> None:
        while self._answers:
            case, product, at = self._answers.pop(0)
            read = self.unanswered.pop(product)
            self.waits.append((read, at - read))
            self._narrator.line(case, product, at - read, self._mill.query("contained").progress().state_rows)
        while self._counts:
            end, count = self._counts.pop(0)
            self._narrator.say(f"    until {end}: {count} products in 5 s")


def _mean(waits: list[float]) -> str:
    return f"{sum(waits) / len(waits):.1f} s" if waits else "–"
