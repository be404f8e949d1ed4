"""Random scripts of early answers: prods in streams and of queries, queries that prod themselves, restarts.

A script is a transcript whose `expect` blocks are still empty; `with_answers` fills them in by a run in process.
"""

from __future__ import annotations

from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from millstream.ingest.lines import write_line
from millstream.testing.runner import LOCAL, Run, Variant
from millstream.testing.transcript import Expect, Step, parse_transcript

BOTH = "(SELECT k, v, ts FROM s UNION ALL SELECT k, v, ts FROM t)"
INNER = "(SELECT k, SUM(v) AS v FROM s [RANGE 5] GROUP BY k)"
SHAPES = {
    "groups": "k, SUM(v) AS n, COUNT(*) AS m FROM s {} GROUP BY k",
    "whole": "MAX(v) AS n, AVG(v) AS m FROM s {}",
    "having": "k, COUNT(*) AS n FROM s {} GROUP BY k HAVING COUNT(*) > 1",
    "union": f"k, COUNT(*) AS n FROM {BOTH} {{}} GROUP BY k",
    "join": "COUNT(*) AS n FROM s [RANGE 5] a, t [RANGE 5] b WHERE a.k = b.k WINDOW {}",
    "nested": f"MAX(v) AS n FROM {INNER} {{}}",
    "nested groups": f"k, COUNT(*) AS n FROM {INNER} {{}} GROUP BY k",
    "distinct": f"COUNT(*) AS n FROM (SELECT DISTINCT k, v FROM {INNER}) {{}}",
    "estimates": "COUNT(*) AS n, ROUND(estimate, 3) AS e, ROUND(low, 3) AS l, ROUND(complete, 3) AS c FROM s {}",
}
WINDOWS = ("[RANGE 10]", "[RANGE 10 SLIDE 5]", "[RANGE 20 SLIDE 10]", "[RANGE 9 SLIDE 6]")
OWN = ("", "", "EMIT EARLY AT 60 %", "EMIT EARLY EVERY 4", "EMIT EARLY 3 BEFORE END")
OF_STREAMS = ("{}", "{ts <= 15}", "{ts = 20}", "{k = 3}", "{ts < 30, k = 1}")
OF_QUERIES = ("{}", "{window_end <= 20}", "{window_end = 15}")
KEYS = (1, 3, 10)
"""Values of k that are on different shards."""


def random_prods(chance: Random) -> list[str]:
    """The blocks of a script."""
    ordered = chance.random() < 0.7
    time = "ORDER BY ts PUNCTUATED ON (ts +)" if ordered else "WATERMARK FOR ts AS ts - 3 PUNCTUATED ON (ts +)"
    blocks = [f"statement\nCREATE STREAM {name} (k BIGINT, v BIGINT, ts BIGINT) {time}" for name in "st"]
    names = [f"q{number}" for number in range(chance.randint(1, 3))]
    for name in names:
        shape, own = SHAPES[chance.choice(sorted(SHAPES))].format(chance.choice(WINDOWS)), chance.choice(OWN)
        blocks.append(f"query {name}\nSELECT window_end, finality, revision, {shape} {own}".rstrip())
    expects = [f"expect {name}" for name in names]
    now = {"s": 0, "t": 0}
    for part in range(3):
        for stream in chance.sample("st", 2):
            lines = [_element(chance, now, stream) for _ in range(chance.randint(1, 9))]
            blocks.append("\n".join([f"input {stream}", *lines]))
        if chance.random() < 0.5:
            blocks.append(f"prod {chance.choice(names)} {chance.choice(OF_QUERIES)}")
        blocks += [*expects, "restart"] if part < 2 else expects
    blocks += [f"input {stream}\n[*, *, < 1000]" for stream in "st"]
    return [*blocks, *expects]


def _element(chance: Random, now: dict[str, int], stream: str) -> str:
    kind = chance.random()
    if kind < 0.25:
        return chance.choice(OF_STREAMS)
    if kind < 0.3:
        return f"[*, *, < {now[stream]}]"
    now[stream] += chance.randint(0, 5)
    return f"{chance.choice(KEYS)} | {chance.randint(0, 9)} | {now[stream]}"


class Recorder(Run):
    def __init__(self, steps: list[Step], folder: Path) -> None:
        super().__init__(Variant(), LOCAL, steps, folder)
        self.found: list[str] = []

    def _expect(self, step: Expect) -> None:
        rows, _ = self._output(step.query)
        self.found.append("\n".join([f"expect {step.query}", *map(write_line, rows)]))
        rows.clear()


def with_answers(blocks: list[str]) -> str:
    """The transcript of a script, with the rows of a run in process on one shard."""
    steps = parse_transcript("\n\n".join(blocks))
    with TemporaryDirectory() as folder:
        run = Recorder(steps, Path(folder))
        run.run(steps)
        LOCAL.close(run.mill)
    found = iter(run.found)
    return "\n\n".join(next(found) if block.startswith("expect") else block for block in blocks) + "\n"
