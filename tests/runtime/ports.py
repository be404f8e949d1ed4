"""Feed an operator with several inputs as an engine would: on arrival, or in timestamp order, under arbitrary cuts."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product

from hypothesis import strategies as st

from millstream.algebra.punctuation.pattern import Pattern
from millstream.algebra.punctuation.punctuations import Punctuations
from millstream.algebra.punctuation.restriction import ANY, Restriction, above, below, between, equal, one_of
from millstream.algebra.schema import NEVER, TS, Schema, TimeKind
from millstream.algebra.types import Type
from millstream.runtime.operator.contract import Input, Operator
from tests.runtime.driving import Element, Row, Trace, frame, progress_of

LEFT = Schema.of(("ts", Type.BIGINT), ("k", Type.BIGINT), ("x", Type.BIGINT), kind=TimeKind.EXTERNAL, time="ts")
RIGHT = Schema.of(("k", Type.BIGINT), ("y", Type.BIGINT), ("ts", Type.BIGINT), kind=TimeKind.EXTERNAL, time="ts")
Arrival = tuple[int, Element]


@dataclass
class Portion:
    """What one port brings in one step."""

    rows: list[Row] = field(default_factory=list)
    patterns: list[Pattern] = field(default_factory=list)
    progress: int = NEVER
    bound: int = NEVER

    def input(self, schema: Schema) -> Input:
        given = self.patterns or self.progress > NEVER
        punctuations = Punctuations.of(self.patterns, self.progress) if given else None
        return Input(frame(schema, self.rows) if self.rows else None, punctuations, self.bound)


Step = list[Portion]


class Feed:
    """Buffers in front of an operator. Merging, a row goes only when nothing that has to go before it can still come;
    a punctuation goes when the rows before it on its port have gone."""

    def __init__(self, schemas: Sequence[Schema], merges: bool, tie_order: tuple[int, ...] | None) -> None:
        self.schemas, self.merges = schemas, merges
        ports = range(len(schemas))
        self.rank = {port: 0 if tie_order is None else tie_order.index(port) for port in ports}
        self.queues: list[deque[Row | Pattern]] = [deque() for _ in ports]
        self.bounds = [NEVER for _ in ports]

    def push(self, port: int, element: Element) -> None:
        if isinstance(element, int):
            self.bounds[port] = max(self.bounds[port], element)
            return
        if isinstance(element, Pattern):
            self.bounds[port] = max(self.bounds[port], progress_of(element, self.schemas[port].time))
        elif self.merges:
            self.bounds[port] = max(self.bounds[port], element[TS])
        self.queues[port].append(element)

    def _may_go(self, port: int, row: Row) -> bool:
        others = [other for other in range(len(self.queues)) if other != port]
        return not self.merges or all(
            self.bounds[other] > row[TS] or (self.bounds[other] == row[TS] and self.rank[other] >= self.rank[port])
            for other in others
        )

    def step(self) -> Step:
        portions = [Portion() for _ in self.queues]
        for port, queue in enumerate(self.queues):
            while queue and (isinstance(queue[0], Pattern) or self._may_go(port, queue[0])):
                element = queue.popleft()
                if isinstance(element, Pattern):
                    portions[port].patterns.append(element)
                    progress = progress_of(element, self.schemas[port].time)
                    portions[port].progress = max(portions[port].progress, progress)
                else:
                    portions[port].rows.append(element)
            held = [element[TS] for element in queue if not isinstance(element, Pattern)]
            portions[port].bound = min([self.bounds[port], *held])
        return portions


def steps(
    arrivals: Sequence[Arrival],
    schemas: Sequence[Schema],
    merges: bool,
    tie_order: tuple[int, ...] | None,
    cuts: Sequence[bool] = (True,),
) -> Iterator[Step]:
    """The steps, cut after every arrival whose flag is set."""
    feed = Feed(schemas, merges, tie_order)
    for index, (port, element) in enumerate(arrivals):
        feed.push(port, element)
        if index == len(arrivals) - 1 or cuts[index % len(cuts)]:
            yield feed.step()


def run(operator: Operator, made: Iterator[Step], schemas: Sequence[Schema]) -> Trace:
    trace = Trace()
    for step in made:
        inputs = [portion.input(schema) for portion, schema in zip(step, schemas, strict=True)]
        trace.take(operator.process(inputs))
    return trace


def in_order(step: Step, merges: bool, rank: Sequence[int] = (0, 1)) -> Iterator[tuple[int, Row]]:
    """A step's rows, one at a time, in the order in which they are processed."""
    rows = [(port, row) for port, portion in enumerate(step) for row in portion.rows]
    return iter(sorted(rows, key=lambda item: (item[1][TS], rank[item[0]])) if merges else rows)


def covered(pattern: Pattern, known: Sequence[Pattern]) -> bool:
    """Whether every choice of values from the pattern's sets is covered by some known pattern."""
    sets = {name: restriction.values for name, restriction in pattern.items if restriction.values}
    rest = {name: restriction for name, restriction in pattern.items if not restriction.values}
    choices = (dict(zip(sets, map(equal, chosen), strict=True)) for chosen in product(*sets.values()))
    return all(any(other.covers(Pattern.of({**rest, **choice})) for other in known) for choice in choices)


def same_promises(one: Sequence[Pattern], other: Sequence[Pattern]) -> bool:
    """The same bag, if no pattern is covered by different ones; otherwise both cover the same, for which of two inputs
    came first then decides what is put out. None comes twice."""
    assert max(Counter(one).values(), default=1) == 1, one
    everything = set(one) | set(other)
    if not any(covered(pattern, list(everything - {pattern})) for pattern in everything):
        return Counter(one) == Counter(other)
    return all(covered(p, other) for p in one) and all(covered(p, one) for p in other)


def restrictions() -> st.SearchStrategy[Restriction]:
    values = st.integers(0, 3)
    return st.one_of(
        values.map(equal),
        values.map(equal),
        values.map(below),
        st.builds(lambda v: below(v, closed=True), values),
        values.map(above),
        st.lists(values, min_size=2, max_size=2, unique=True).map(one_of),
        st.builds(lambda v: between(v, v + 1), values),
    )


@st.composite
def arrivals(
    draw: st.DrawFn,
    ordered: bool,
    others: Sequence[str] = ("x", "y"),
    size: int = 24,
    silent: bool = True,
    narrow: bool = False,
) -> list[Arrival]:
    """Grammatical elements of as many ports as there are names of a further column. `k` and that column are small
    numbers or NULL; on ordered ports the timestamps never fall. Narrow: there are two keys, so that much joins, and
    every punctuation bounds the time of one of them."""
    made: list[Arrival] = []
    clock = [0] * len(others)
    bound = [NEVER] * len(others)
    promised: list[list[Pattern]] = [[] for _ in others]
    for _ in range(draw(st.integers(0, size))):
        port = draw(st.integers(0, len(others) - 1))
        kind = draw(st.integers(0, 9))
        if kind < 6:
            time = clock[port] + draw(st.integers(0, 2)) if ordered else draw(st.integers(0, 14))
            nullable = st.sampled_from([0, 1, 2, 3, None])
            key = draw(st.integers(0, 1)) if narrow else draw(nullable)
            row = {"ts": time, "k": key, others[port]: draw(nullable), TS: time}
            if time >= bound[port] and not any(pattern.matches(row) for pattern in promised[port]):
                clock[port] = max(clock[port], time)
                made.append((port, row))
            continue
        if kind == 6 and silent:
            bound[port] = max(bound[port], clock[port] + draw(st.integers(-1, 2)))
            made.append((port, bound[port]))
            clock[port] = max(clock[port], bound[port]) if ordered else clock[port]
            continue
        pattern = draw(_narrow_patterns(clock[port]) if narrow else _patterns(others[port], clock[port]))
        if not pattern.is_empty and not any(known.covers(pattern) for known in promised[port]):
            promised[port].append(pattern)
            bound[port] = max(bound[port], progress_of(pattern, "ts"))
            clock[port] = max(clock[port], bound[port]) if ordered else clock[port]
            made.append((port, pattern))
    return made


@st.composite
def _patterns(draw: st.DrawFn, other: str, clock: int) -> Pattern:
    times = st.builds(lambda d, closed: below(clock + d, closed), st.integers(-3, 2), st.booleans())
    time = draw(times) if draw(st.booleans()) else ANY
    key = draw(restrictions()) if draw(st.integers(0, 2)) else ANY
    rest = draw(restrictions()) if draw(st.integers(0, 4)) == 0 else ANY
    return Pattern.of({"ts": time, "k": key, other: rest})


def _narrow_patterns(clock: int) -> st.SearchStrategy[Pattern]:
    bounds, keys = st.integers(clock - 2, clock + 2), st.integers(0, 1)
    return st.builds(lambda bound, key: Pattern.of(ts=below(bound), k=equal(key)), bounds, keys)


cuts = st.lists(st.booleans(), min_size=1, max_size=8)
