"""Access points with bursts: the highest counter of five seconds, every second, behind a costly look-up.

The look-up takes a limited number of messages per batch. In a burst messages wait for it, and so do the final rows. A
prod a second overtakes the messages that wait: windows in a burst are answered over what has been looked up so far.

    python examples/early/wireless.py [--spark]
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator

import polars as pl

import millstream as ms

SECONDS, BURST = 30, range(10, 14)
QUIET, BUSY, BUDGET = 20, 120, 40
"""Messages of a second, of a second in a burst, and those that are looked up per batch."""
STREAM = "CREATE STREAM log (ts BIGINT, access_point VARCHAR, counter BIGINT) PUNCTUATED ON (ts +)"
QUERY = f"""
SELECT window_end, MAX(known) AS highest, COUNT(*) AS messages, finality, revision
FROM EXPENSIVE(TABLE log, look_up(counter) AS known, budget => {BUDGET}) [RANGE 5 SLIDE 1 ON ts]
"""


@ms.function(arguments=["BIGINT"], returns="BIGINT", vectorized="polars")
def look_up(counter: pl.Series) -> pl.Series:
    """In place of a query to a database."""
    return counter


def messages(seed: int = 0) -> Iterator[list[tuple[int, str, int]]]:
    """The messages of each second. Counters rise and fall."""
    chance, counter = random.Random(seed), 500
    for second in range(SECONDS):
        made = []
        for _ in range(BUSY if second in BURST else QUIET):
            counter = abs(counter + chance.randint(-30, 30))
            made.append((second, f"ap{chance.randint(1, 9)}", counter))
        yield made


def run(mill: ms.Connection) -> pl.DataFrame:
    """All rows, with the second of their arrival."""
    mill.sql(STREAM)
    query = mill.sql(QUERY).start(name="highest")
    found = []
    for second, made in enumerate(messages()):
        mill.insert("log", made)
        mill.punctuate("log", f"[ts < {second + 1}]")
        mill.prod("log", f"{{ts = {second + 1}}}")
        found.append(query.take().with_columns(pl.lit(second + 1).alias("second")))
    return pl.concat(found)


def main(arguments: list[str]) -> None:
    with ms.connect(local="--spark" not in arguments) as mill:
        rows = run(mill)
    print("second  window end  highest  messages  finality")
    for end, highest, count, finality, _, second in rows.rows():
        print(f"{second:6}  {end:10}  {highest:7}  {count:8}  {finality}")


if __name__ == "__main__":
    main(sys.argv[1:])
