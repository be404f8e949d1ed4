"""Windows that count rows, in joins of two to four streams: results for every cut, shard count and strategy."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise, product

from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.config import Options
from millstream.control.job.jobs import LocalJobs
from millstream.control.mill import LocalMill
from millstream.control.mill.base import Mill
from millstream.testing.runner import LocalHost
from tests.control.test_invariance import WAYS
from tests.tries import tries

END = 10_000
DELAY = 3
"""The most by which a tuple of a stream that is not ordered may be older than an earlier one."""
MOVES = (f"WATERMARK FOR ts AS ts - {DELAY}", "PUNCTUATED ON (ts +)")
STREAMS = ("s1", "s2", "s3")
Rows = Counter[tuple[int | None, ...]]


@dataclass(frozen=True)
class Tuple:
    """`number` is unique; `key` None: NULL."""

    stream: str
    key: int | None
    number: int
    time: int

    @property
    def line(self) -> str:
        return f"{'NULL' if self.key is None else self.key} | {self.number} | {self.time}"


@dataclass(frozen=True)
class Input:
    """An entry of FROM: a stream, perhaps without the numbers up to `above`, and its window."""

    stream: str
    rows: int | None = None
    range: int | None = None
    above: int | None = None

    def text(self, alias: str) -> str:
        source = self.stream if self.above is None else f"(SELECT * FROM {self.stream} WHERE v > {self.above})"
        window = f"[ROWS {self.rows}]" if self.rows is not None else f"[RANGE {self.range}]"
        return f"{source} {alias} {'' if self.rows is None and self.range is None else window}"


@dataclass(frozen=True)
class Case:
    inputs: tuple[Input, ...]
    less: bool
    """True if the first number of a result must be less than the last one."""
    least: int | None
    """Lower bound of the first number."""
    tuples: tuple[Tuple, ...]
    closed: tuple[tuple[int, str, int], ...] = ()
    """Keys that a stream closes, each with the number of tuples before."""
    outer: str = ""
    """LEFT, RIGHT or FULL, of two inputs."""
    times: tuple[str, ...] = ("", "", "")
    """For each stream what its time has beside ORDER BY: nothing, and its tuples arrive in order, or one of `MOVES`."""

    @property
    def query(self) -> str:
        names = [f"x{n}" for n in range(len(self.inputs))]
        sources = [made.text(name) for made, name in zip(self.inputs, names, strict=True)]
        conditions = [f"{a}.k = {b}.k" for a, b in pairwise(names)]
        conditions += [f"x0.v < {names[-1]}.v"] if self.less else []
        conditions += [] if self.least is None else [f"x0.v >= {self.least}"]
        columns = ", ".join(f"{name}.v AS v{n}" for n, name in enumerate(names))
        if self.outer:
            return f"SELECT {columns} FROM {f' {self.outer} JOIN '.join(sources)} ON {' AND '.join(conditions)}"
        return f"SELECT {columns} FROM {', '.join(sources)} WHERE {' AND '.join(conditions)}"

    @property
    def lines(self) -> Iterator[tuple[str, str]]:
        for new in self.tuples:
            yield from ((stream, f"[{key}, *, *]") for at, stream, key in self.closed if at == new.number)
            yield new.stream, new.line
            if self.times[STREAMS.index(new.stream)] == MOVES[1]:
                yield new.stream, f"[*, *, < {new.time - DELAY}]"
        yield from ((name, "[*, *, *]" if self.outer else f"[*, *, < {END}]") for name in STREAMS)

    def defined(self) -> Rows:
        """Results by the definition: every part is in its own window when the newest part arrives."""
        came: list[list[Tuple]] = [[] for _ in self.inputs]
        found: Rows = Counter()
        arrivals = [
            (new.time, place, new)
            for place, made in enumerate(self.inputs)
            for new in self.tuples
            if new.stream == made.stream and (made.above is None or new.number > made.above)
        ]
        for now, place, new in sorted(arrivals, key=lambda arrival: arrival[:2]):
            parts = [[new] if other == place else self._window(other, came[other], now) for other in range(len(came))]
            for result in product(*parts):
                numbers = tuple(part.number for part in result)
                fits = (not self.less or numbers[0] < numbers[-1]) and (self.least is None or numbers[0] >= self.least)
                if fits and new.key is not None and all(part.key == new.key for part in result):
                    found[numbers] += 1
            came[place].append(new)
        used = [{result[side] for result in found} for side in (0, 1)]
        for side, other in ((0, "RIGHT"), (1, "LEFT")):
            if self.outer not in ("", other):
                alone = [new.number for new in came[side] if new.number not in used[side]]
                found.update((None, number) if side else (number, None) for number in alone)
        return found

    def _window(self, place: int, came: list[Tuple], now: int) -> list[Tuple]:
        made = self.inputs[place]
        if made.rows is not None:
            return came[len(came) - min(made.rows, len(came)) :]
        return [old for old in came if made.range is None or now - old.time <= made.range]


@st.composite
def inputs(draw: st.DrawFn, counting: bool) -> Input:
    stream = draw(st.sampled_from(STREAMS))
    above = draw(st.sampled_from([None, None, None, 4]))
    if counting or draw(st.booleans()):
        return Input(stream, rows=draw(st.integers(0 if counting else 1, 3)), above=above)
    return Input(stream, range=draw(st.sampled_from([None, 0, 3, 8])), above=above)


@st.composite
def cases(draw: st.DrawFn, most: int = 4) -> Case:
    count = draw(st.integers(2, most))
    chosen = draw(st.integers(0, count - 1))
    made = tuple(draw(inputs(counting=place == chosen)) for place in range(count))
    now, tuples, closed = 0, list[Tuple](), list[tuple[int, str, int]]()
    times = draw(st.one_of(st.just(("",) * 3), st.tuples(*[st.sampled_from(["", *MOVES])] * 3)))
    for number in range(draw(st.integers(0, 25))):
        now += draw(st.integers(0, 2))
        stream = draw(st.sampled_from(STREAMS))
        gone = {key for _, name, key in closed if name == stream}
        key = draw(st.sampled_from([None, *(key for key in range(3) if key not in gone)]))
        if key is not None and draw(st.integers(0, 9)) == 0:
            closed.append((number, stream, key))
            key = None
        late = draw(st.integers(0, DELAY)) if times[STREAMS.index(stream)] else 0
        tuples.append(Tuple(stream, key, number, now - late))
    less, least = draw(st.booleans()), draw(st.sampled_from([None, None, 3]))
    return Case(made, less, least, tuple(tuples), tuple(closed), times=times)


@st.composite
def outer_cases(draw: st.DrawFn) -> Case:
    made = draw(cases(most=2))
    kept = draw(st.sampled_from(["LEFT", "LEFT", "RIGHT", "RIGHT", "FULL"]))
    return replace(made, least=None, outer=kept)


Outcome = tuple[Rows, Counter[str], int]


def outcome(mill: Mill, case: Case, seed: int, again: Callable[[Mill], Mill] | None) -> Outcome:
    """Rows and punctuations as bags and the state at the end, with batches cut at random; `again` restarts the mill."""
    chance, emitted = random.Random(seed), Counter[str]()
    rows: Rows = Counter()
    for name, time in zip(STREAMS, case.times, strict=True):
        mill.execute(f"CREATE STREAM {name} (k BIGINT, v BIGINT, ts BIGINT) ORDER BY ts {time}")
    mill.add_query("q", case.query)
    for stream, line in case.lines:
        mill.feed_line(stream, line)
        if seed and chance.random() < 0.3:
            mill.batch()
            rows.update(mill.take_rows("q").rows())
            emitted.update(map(str, mill.take_punctuations("q")))
            if again is not None and chance.random() < 0.3:
                mill = again(mill)
    mill.batch()
    rows.update(mill.take_rows("q").rows())
    emitted.update(map(str, mill.take_punctuations("q")))
    return rows, emitted, mill.state_rows("q")


def restored(mill: Mill) -> Mill:
    assert isinstance(mill, LocalMill)
    return mill.restarted()


@given(
    st.one_of(cases(), outer_cases()),
    st.integers(1, 1000),
    st.lists(st.sampled_from(sorted(WAYS)), min_size=2, max_size=2, unique=True),
)
@settings(max_examples=tries(50))
def test_against_the_definition(case: Case, seed: int, ways: list[str]) -> None:
    whole = outcome(LocalMill(), case, 0, None)
    assert whole[0] == case.defined(), case.query
    for way in ways:
        options, more = WAYS[way]
        mill = LocalMill(options.model_copy(), jobs=LocalJobs(shards=options.shards, cached=more.get("cached", True)))
        found = outcome(mill, case, seed, restored if more.get("restart") else None)
        assert found == whole, (way, case.query)


@given(st.one_of(cases(), outer_cases()), st.integers(1, 1000), st.integers(1, 3), st.booleans())
@settings(max_examples=tries(20))
def test_jobs_return_the_same(case: Case, seed: int, shards: int, cached: bool) -> None:
    host = LocalHost(cached=cached)
    found = outcome(host.open(Options(shards=shards)), case, seed, host.restart)
    whole = outcome(LocalMill(), case, 0, None)
    assert found == whole and whole[0] == case.defined(), case.query
