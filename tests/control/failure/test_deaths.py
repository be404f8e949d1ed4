"""Whenever the process ends, the sinks have the rows of an undisturbed run in the end, each as often.

A small program with queries that come and go and a sink that fails for a while is killed at a write, then started again
with the same checkpoint until its streams end. `Mortal` knows the writes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import millstream as ms
from millstream.algebra.punctuation.pattern import Pattern
from millstream.algebra.schema import Schema
from millstream.control.mill import outlet
from millstream.errors import MillstreamError
from millstream.sinks import SINKS
from tests.control.failure.deaths import Dead, Mortal
from tests.tries import tries

EVENTS, STEP = 240, 60
STREAMS = f"""
CREATE STREAM IF NOT EXISTS auctions (id BIGINT, seller BIGINT, ts TIMESTAMP) ORDER BY ts PRIMARY KEY (id)
  WITH (connector = 'nexmark', stream = 'auction', events = {EVENTS}, max_rows_per_trigger = {STEP});
CREATE STREAM IF NOT EXISTS bids (auction BIGINT, bidder BIGINT, price BIGINT, ts TIMESTAMP)
  ORDER BY ts PUNCTUATED ON (auction #) WITH (connector = 'nexmark', stream = 'bid', events = {EVENTS},
  max_rows_per_trigger = {STEP});
CREATE QUERY IF NOT EXISTS joined AS
  SELECT b.auction, a.seller, b.price, b.ts FROM bids b JOIN auctions a ON b.auction = a.id INTO flaky;
CREATE QUERY IF NOT EXISTS closed AS SELECT auction, bidder FROM bids INTO steady
"""
LATER = {
    2: "CREATE QUERY IF NOT EXISTS tops WITH (start = 'beginning') AS "
    "SELECT auction, MAX(price) AS top FROM bids GROUP BY auction INTO flaky",
    3: "DROP QUERY IF EXISTS closed; CREATE QUERY closed WITH (start = 'beginning') AS "
    "SELECT id AS auction, seller FROM auctions INTO steady",
}
"""Statements by the number of batches after which they run."""


@dataclass
class World:
    """What outlives the process: files, what the sinks have taken, the statements that are left to run."""

    folder: Path
    taken: dict[str, dict[int, list[Any]]] = field(default_factory=dict)
    left: dict[int, str] = field(default_factory=lambda: dict(LATER))
    writes = 0

    def rows(self) -> dict[str, list[Any]]:
        return {name: sorted(row for batch in each.values() for row in batch) for name, each in self.taken.items()}


class Recorded:
    """A sink in the world; one that is `flaky` raises in some of its calls."""

    def __init__(self, world: World, mortal: Mortal, *, flaky: bool) -> None:
        self._world, self._mortal, self._flaky = world, mortal, flaky

    def open(self, query: str, schema: Schema) -> None:
        self._name = f"{query} {' '.join(schema.names)}"

    def write(self, batch: int, rows: pl.DataFrame, punctuations: Sequence[Pattern]) -> None:
        self._world.writes += self._flaky
        if self._flaky and self._world.writes % 7 in (2, 3, 4):
            raise ConnectionError("refused")
        self._mortal.point("before the sink")
        self._world.taken.setdefault(self._name, {})[batch] = rows.rows()
        self._mortal.point("after the sink")

    def close(self) -> None:
        pass


def live(world: World, mortal: Mortal) -> bool:
    """A life of the program; return whether its streams have ended."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(outlet, "FIRST_PAUSE", 0.0)
        made = {
            name: (lambda _, flaky=name == "flaky": Recorded(world, mortal, flaky=flaky))
            for name in ("flaky", "steady")
        }
        patch.setattr(SINKS, "get", lambda name, get=SINKS.get: made.get(name) or get(name))
        mortal.install(patch)
        mill = None
        try:
            mill = ms.connect(local=True, checkpoint=world.folder, shards=2, resume=False)
            with mill.together():
                mill.sql(STREAMS)
            batches = 0
            while not mill.await_end(0):
                mill._work()
                batches += 1
                for due in [number for number in world.left if number <= batches]:
                    if "seller" not in mill.query("closed").text:  # a statement is repeated if the process has ended
                        mill.sql(world.left[due])
                    del world.left[due]
            mill.close()
            return not world.left
        except (Dead, MillstreamError):
            return False
        finally:
            if mill is not None:
                bury(mill)


def bury(mill: ms.Connection) -> None:
    """Free what the operating system frees when a process ends."""
    for job in mill._jobs.all():
        job._state._database.close()
    if mill._jobs._owner is not None:
        mill._jobs._owner.release()


def lives(folder: Path, at: int | None = None, error: Exception | None = None) -> tuple[World, Mortal]:
    world, mortal = World(folder), Mortal(at, error)
    if not live(world, mortal):
        for _ in range(20):
            if live(world, Mortal()):
                break
        else:
            raise AssertionError("it does not end")
    return world, mortal


DROPPED = "closed auction bidder"
"""The results that depend on when a query was dropped."""


def check(world: World, wanted: World, whole: World, what: str) -> None:
    rows, right = world.rows(), wanted.rows()
    dropped, _ = Counter(rows.pop(DROPPED, [])), right.pop(DROPPED)
    assert rows == right, what
    assert dropped <= Counter(whole.rows()[DROPPED]), what


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> tuple[World, Mortal, World]:
    whole, mortal = World(tmp_path_factory.mktemp("whole"), left={}), Mortal()
    assert live(whole, mortal)
    return *lives(tmp_path_factory.mktemp("undisturbed")), whole


@pytest.mark.parametrize("full", [False, True])
def test_no_row_is_lost(undisturbed: tuple[World, Mortal, World], tmp_path: Path, full: bool) -> None:
    wanted, mortal, whole = undisturbed
    assert all(len(rows) > 2 for rows in wanted.rows().values()), {n: len(r) for n, r in wanted.rows().items()}
    for at in range(0, mortal.writes, max(1, mortal.writes // tries(30))):
        error = OSError(28, "No space left on device") if full else None
        world, _ = lives(tmp_path / f"{at}", at, error)
        check(world, wanted, whole, f"{mortal.where[at]}, write {at} of {mortal.writes}")
