"""Endless streams that keep their promises: keys open and close, and time advances.

Step i inserts a tuple with key `i // 5` into the first stream, and into the second if the key is even. `v` is the
number of the step, counted from 1, in the first stream and its negative in the others, so that the first shares no
value with them. If the streams `meet`, all of them get the tuples of the first.
Each stream that declares it closes keys and numbers that are over, whether or not it has had them.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from millstream.config import Options
from millstream.control.mill import LocalMill

COLUMNS = "(k BIGINT, v BIGINT, ts BIGINT)"
EVERY = 20
"""Steps between two rounds of punctuation."""
KEY = 5
"""Steps per key."""
LAG = 40
"""Steps after which a key or a number is closed."""
LASTING = 100
"""Steps for which bounds on the time of one key keep rising after its last tuple; longer than all windows."""


@dataclass
class Feed:
    """`streams`: declarations by name; `silent`: a stream without tuples; `meet`: equal tuples in all streams;
    `sparse`: a stream with the last tuple of each round alone; `steps`: the number of steps so far; `peaks`: the most
    tuples that each operator held after a round, in its state and at its inputs, and guards."""

    streams: dict[str, str]
    query: str
    options: Options = field(default_factory=Options)
    silent: str = ""
    meet: bool = False
    sparse: str = ""
    steps: int = 0
    peaks: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.mill = LocalMill(self.options)
        for name, clauses in self.streams.items():
            self.mill.execute(f"CREATE STREAM {name} {COLUMNS} {clauses}")
        self.contract = self.mill.execute(f"EXPLAIN CONTRACT {self.query}")
        self.mill.add_query("q", self.query)

    @property
    def bounded(self) -> bool:
        return self.contract.endswith("\ncontract: bounded")

    @property
    def peak(self) -> int:
        return sum(self.peaks.values())

    def held(self) -> Counter[str]:
        """The tuples that each operator holds now, and its guards."""
        held: Counter[str] = Counter()
        for graph in self.mill.statistics("q"):
            for name, node in graph.items():
                held[name] += node.state + node.buffered + sum(test.values for test in node.tests)
        return held

    def guards(self) -> Counter[str]:
        """The guards of each operator now."""
        return Counter(
            {
                name: sum(test.values for test in node.tests)
                for graph in self.mill.statistics("q")
                for name, node in graph.items()
            }
        )

    def close(self) -> None:
        """Close everything, as declared: all keys and numbers, and all time."""
        after = self.steps + LASTING
        for name, clauses in self.streams.items():
            keys, numbers = range(after // KEY), range(after)
            made = [f"[k = {key}]" for key in keys] if "(k #)" in clauses else []
            made += [f"[k < {after}]"] if "(k +)" in clauses else []
            made += [f"[v = {sign * (n + 1)}]" for n in numbers for sign in (1, -1)] if "(v #)" in clauses else []
            made += [f"[k = {key}, ts < {after}]" for key in keys] if "(k #, ts +)" in clauses else []
            timed = "ORDER BY ts" in clauses and "PUNCTUATED" not in clauses
            made += [f"[ts < {after}]"] if "(ts +)" in clauses or "WATERMARK" in clauses or timed else []
            self.mill.punctuate(name, *made)
        self.mill.batch()
        self.mill.advance(LASTING * 1_000_000)
        self.mill.batch()

    def _measure(self) -> None:
        held = self.held()
        self.peaks |= {name: max(count, self.peaks.get(name, 0)) for name, count in held.items()}

    def run(self, until: int) -> int:
        """Run up to a step; return the sum of the peaks of all operators."""
        while self.steps < until:
            steps = range(self.steps, self.steps + EVERY)
            for place, name in enumerate(self.streams):
                other = bool(place) and not self.meet
                rows = [(i // KEY, -1 - i if other else i + 1, i) for i in steps if not other or i // KEY % 2 == 0]
                sent = rows[-1:] if name == self.sparse else rows
                self.mill.insert(name, sent if name != self.silent else [])
            self.steps += EVERY
            for name, clauses in self.streams.items():
                self.mill.punctuate(name, *self._promised(clauses))
            self.mill.batch()
            self.mill.advance(EVERY * 1_000_000)
            self._measure()
        return self.peak

    def _promised(self, clauses: str) -> list[str]:
        """The punctuations that are due after a round."""
        over = self.steps - LAG
        if over < 0:
            return []
        made: list[str] = []
        ended = range(over, over + EVERY)
        if "(ts +)" in clauses:
            made.append(f"[ts < {self.steps}]")
        if "(k #)" in clauses:
            made += [f"[k = {key}]" for key in range(over // KEY, (over + EVERY) // KEY)]
        if "(k +)" in clauses:
            made.append(f"[k < {(over + EVERY) // KEY}]")
        if "(v #)" in clauses:
            made += [f"[v = {sign * (step + 1)}]" for step in ended for sign in (1, -1)]
        if "(k #, ts +)" in clauses:
            keys = range(max(0, self.steps - LASTING) // KEY, self.steps // KEY)
            made += [f"[k = {key}, ts < {self.steps}]" for key in keys]
        return made
