"""Small operators over one integer column, obvious rather than fast, and a harness that records what a graph does."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import polars as pl

from millstream.algebra.element import Element, Page
from millstream.algebra.punctuation.punctuations import Punctuations
from millstream.algebra.schema import TS, Schema
from millstream.algebra.types import Type
from millstream.runtime.engine import Graph, OperatorNode, Sink, Source
from millstream.runtime.engine.breaks import canonical_cut
from millstream.runtime.operator.capabilities import AwaitsTime
from millstream.runtime.operator.contract import NOTHING, Input, Operator, Output

SCHEMA = Schema.of(("v", Type.BIGINT))
Pair = tuple[int, int]
"""(value, timestamp)"""


def page(*pairs: Pair) -> Page:
    return Page(frame(*pairs))


def frame(*pairs: Pair) -> pl.DataFrame:
    return pl.DataFrame({"v": [v for v, _ in pairs], TS: [t for _, t in pairs]}, schema=SCHEMA.polars)


def pairs_of(rows: pl.DataFrame | None) -> list[Pair]:
    return [] if rows is None else rows.rows()


def made(pairs: Sequence[Pair], punctuations: Punctuations | None = None) -> Output:
    return Output(frame(*pairs) if pairs else None, punctuations)


class Toy(Operator):
    schema = SCHEMA


class Each(Toy):
    """Maps every tuple to a value, or drops it for None."""

    def __init__(self, function: Callable[[int], int | None] = lambda v: v) -> None:
        self.function = function

    def process(self, inputs: Sequence[Input]) -> Output:
        pairs = [(new, t) for v, t in pairs_of(inputs[0].rows) if (new := self.function(v)) is not None]
        return made(pairs, inputs[0].punctuations)


class Running(Toy):
    """A running aggregate without slide."""

    def __init__(self, function: Callable[[int, int], int]) -> None:
        self.function, self.state = function, 0

    def process(self, inputs: Sequence[Input]) -> Output:
        pairs = []
        for v, t in pairs_of(inputs[0].rows):
            self.state = self.function(self.state, v)
            pairs.append((self.state, t))
        return made(pairs, inputs[0].punctuations)


def running_count() -> Running:
    return Running(lambda n, _: n + 1)


def running_sum() -> Running:
    return Running(lambda n, v: n + v)


class CountSlide(Toy):
    """The count so far, after every s-th tuple."""

    def __init__(self, slide: int) -> None:
        self.slide, self.seen = slide, 0

    def process(self, inputs: Sequence[Input]) -> Output:
        pairs = []
        for _, t in pairs_of(inputs[0].rows):
            self.seen += 1
            if self.seen % self.slide == 0:
                pairs.append((self.seen, t))
        return made(pairs, inputs[0].punctuations)


class TimeCount(Toy, AwaitsTime):
    """COUNT over [end - size, end), every `size`; windows without tuples are silent."""

    timed = True

    def __init__(self, size: int) -> None:
        self.size = size
        self.counts: dict[int, int] = {}
        self.closed = -(1 << 62)

    def process(self, inputs: Sequence[Input]) -> Output:
        for _, t in pairs_of(inputs[0].rows):
            end = t // self.size * self.size + self.size
            assert end > self.closed, "a tuple came after its window was closed"
            self.counts[end] = self.counts.get(end, 0) + 1
        self.closed = max(self.closed, inputs[0].bound // self.size * self.size)
        done = sorted(end for end in self.counts if end <= self.closed)
        return made([(self.counts.pop(end), end) for end in done])

    def waiting(self) -> bool:
        return bool(self.counts)

    def output_bound(self, bounds: Sequence[int]) -> int:
        return bounds[0] // self.size * self.size + self.size

    def scalars(self) -> dict[str, object]:
        return {"counts": dict(self.counts), "closed": self.closed}

    def restore_scalars(self, values: dict[str, object]) -> None:
        self.counts, self.closed = dict(values["counts"]), values["closed"]


def merged(inputs: Sequence[Input], order: Sequence[int] | None = None) -> list[tuple[int, int, int]]:
    """(timestamp, port, value) of all inputs in timestamp order, ties by port order."""
    places = {port: place for place, port in enumerate(order or range(len(inputs)))}
    found = [
        (t, places[port], n, port, v) for port, i in enumerate(inputs) for n, (v, t) in enumerate(pairs_of(i.rows))
    ]
    return [(t, port, v) for t, _, _, port, v in sorted(found)]


class Union(Toy):
    merges = True

    def __init__(self, arity: int = 2) -> None:
        self.arity = arity

    def process(self, inputs: Sequence[Input]) -> Output:
        return made([(v, t) for t, _, v in merged(inputs)])


class LatentUnion(Toy):
    arity = 2

    def process(self, inputs: Sequence[Input]) -> Output:
        return made([(v, t) for t, _, v in merged(inputs)])


def match(a: int, b: int) -> bool:
    return a % 3 == b % 3


def combine(a: int, b: int) -> int:
    return (31 * a + 17 * b + 1) % 997


class Join(Toy):
    """Symmetric window join; windows are inclusive and checked against the probing tuple."""

    arity = 2
    merges = True

    def __init__(
        self,
        left: int,
        right: int,
        on: Callable[[int, int], bool] = match,
        into: Callable[[int, int], int] = combine,
    ) -> None:
        self.sizes, self.on, self.into = (left, right), on, into
        self.windows: tuple[list[Pair], list[Pair]] = ([], [])

    def process(self, inputs: Sequence[Input]) -> Output:
        found = []
        for t, port, v in merged(inputs):
            other = self.windows[1 - port]
            other[:] = [(w, s) for w, s in other if t - s <= self.sizes[1 - port]]
            for w, _ in other:
                a, b = (v, w) if port == 0 else (w, v)
                if self.on(a, b):
                    found.append((self.into(a, b), t))
            self.windows[port].append((v, t))
        return made(found)

    def scalars(self) -> dict[str, object]:
        return {"windows": [list(w) for w in self.windows]}

    def restore_scalars(self, values: dict[str, object]) -> None:
        self.windows = tuple(list(w) for w in values["windows"])


class After(Toy):
    """B after A; results are 100 * a + b. On equal timestamps B goes first."""

    arity = 2
    merges = True
    tie_order = (1, 0)

    def __init__(self, *, chronicle: bool) -> None:
        self.chronicle = chronicle
        self.window: list[int] = []

    def process(self, inputs: Sequence[Input]) -> Output:
        found = []
        for t, port, v in merged(inputs, self.tie_order):
            if port == 0:
                self.window = [*self.window, v] if self.chronicle else [v]
            elif self.window:
                found.append((100 * self.window[0] + v, t))
                self.window = self.window[1:] if self.chronicle else self.window
        return made(found)


class Silent(Toy):
    """Several inputs, elements taken as they arrive, remembered and nothing put out."""

    arity = 2

    def __init__(self) -> None:
        self.seen: list[tuple[int, list[int]]] = []

    def process(self, inputs: Sequence[Input]) -> Output:
        self.seen += [(port, [v for v, _ in pairs_of(i.rows)]) for port, i in enumerate(inputs) if i.rows is not None]
        return NOTHING


class Rig:
    """A graph with a settable clock, recorded sinks and a recorded trace."""

    def __init__(self, mode: str = "eqg", strategy: str = "dfs") -> None:
        self.graph = Graph()
        self.graph.set_ets(mode)
        self.graph.set_strategy(strategy)
        self.now = 0
        self.events: list[tuple[object, ...]] = []
        self.graph.trace = self.events.append

    def source(self, name: str, clock: int | None = None) -> Source:
        return self.graph.source(name, SCHEMA, lambda _: self.now if clock is None else clock)

    def add(self, name: str, operator: Operator, *inputs: Source | OperatorNode, **options: object) -> OperatorNode:
        return self.graph.add(operator, inputs, name=name, **options)

    def sink(self, node: Source | OperatorNode) -> Recorder:
        recorder = Recorder()
        recorder.sink = self.graph.sink(node, recorder)
        return recorder

    def push(self, source: Source, *pairs: Pair) -> None:
        """Push tuples, each as a page of its own."""
        for pair in pairs:
            self.graph.push(source, page(pair))

    def promise(self, source: Source, value: int) -> None:
        self.graph.push(source, Punctuations.of((), progress=value))

    def run(self, max_steps: int | None = None) -> str:
        """Run, and tell what happened in the notation of the worked examples."""
        self.events.clear()
        self.graph.run(max_steps)
        return told(self.events)


def told(events: Iterable[tuple[object, ...]]) -> str:
    words = {
        "execute": "X({})",
        "backtrack": "B({}→{})",
        "fork": "{}",
        "ets": "ETS({}={})",
        "handover": "H({}⇢{}={})",
        "exit": "exit",
    }
    return " ".join(words[str(event[0])].format(*event[1:]) for event in events)


class Recorder:
    """A sink that keeps everything."""

    sink: Sink

    def __init__(self) -> None:
        self.elements: list[Element] = []

    def __call__(self, element: Element) -> None:
        self.elements.append(element)

    @property
    def pairs(self) -> list[Pair]:
        return [pair for e in self.elements if isinstance(e, Page) for pair in e.frame.rows()]

    @property
    def values(self) -> list[int]:
        return [v for v, _ in self.pairs]

    @property
    def story(self) -> list[Pair | int]:
        """Tuples as pairs, time bounds as bare numbers, in order."""
        story: list[Pair | int] = []
        for element in self.elements:
            story += element.frame.rows() if isinstance(element, Page) else [element.progress]
        return story


def cut_into_paths(graph: Graph) -> None:
    """Set breaks so that every fragment is a path, as round robin requires."""
    for node in canonical_cut(graph.operators.values()):
        graph.set_break(node)
