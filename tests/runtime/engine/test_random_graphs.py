"""Random graphs under every strategy and every way of promising time, reconfigured while they run (W17).

Whatever is done to a graph, each node must put out exactly the set-oriented answer, in timestamp order, and end.
"""

from __future__ import annotations

import random
from collections import Counter

import pytest

from millstream.algebra.punctuation.punctuations import Punctuations
from millstream.algebra.schema import FOREVER
from millstream.runtime.engine import Graph, OperatorNode, Sink, Source, Strategy
from tests.reference.query_graph import Node, answers
from tests.runtime.engine.toys import (
    SCHEMA,
    Each,
    Join,
    Pair,
    Recorder,
    TimeCount,
    Union,
    combine,
    cut_into_paths,
    match,
    page,
)

STRATEGIES = ("dfs", "bfs", "rr", "batch:3", "mixed")
MODES = ("none", "heartbeat", "punctuation", "eqg")
COMBINATIONS = [(strategy, mode) for strategy in STRATEGIES for mode in MODES]
GRAPHS = 1500
CHUNK = 50
STEPS = 20_000


def random_graph(rng: random.Random) -> list[Node]:
    nodes = [Node("source") for _ in range(rng.randint(1, 4))]
    joins = 0
    for _ in range(rng.randint(2, 7)):
        read = [rng.randrange(len(nodes)) for _ in range(rng.randint(2, 3))]
        # Favour what nobody reads yet, so that graphs get deep as well as wide.
        unread = sorted(set(range(len(nodes))) - {i for node in nodes for i in node.inputs})
        if unread and rng.random() < 0.7:
            read[0] = rng.choice(unread)
        kind = rng.choice(["filter", "filter", "map", "union", "union", "join", "count"])
        if kind == "join" and joins == 2:
            kind = "union"
        if kind == "filter":
            modulus = rng.choice([1, 2, 3, 4])
            nodes.append(Node(kind, (read[0],), modulus, rng.randrange(modulus)))
        elif kind == "map":
            nodes.append(Node(kind, (read[0],), rng.randint(1, 9)))
        elif kind == "union":
            nodes.append(Node(kind, tuple(read)))
        elif kind == "join":
            joins += 1
            nodes.append(Node(kind, tuple(read[:2]), rng.randint(0, 6), rng.randint(0, 6)))
        else:
            nodes.append(Node(kind, (read[0],), rng.choice([3, 5, 10])))
    return nodes


class Trial:
    """One graph, one history of arrivals, random interference."""

    def __init__(self, seed: int, *, interference: float = 0.06) -> None:
        self.strategy, self.mode = COMBINATIONS[seed % len(COMBINATIONS)]
        self.rng = random.Random(seed)
        self.interference = interference
        self.now = 0
        self.closing = False
        self.plan = random_graph(self.rng)
        self.graph = Graph()
        self.graph.set_ets(self.mode)
        self.nodes: list[Source | OperatorNode] = []
        self.unpushed: dict[str, list[Pair]] = {}
        for number, node in enumerate(self.plan):
            self.nodes.append(self.build(node, f"{node.kind}{number}"))
        self.records = [Recorder() for _ in self.nodes]
        for node, record in zip(self.nodes, self.records, strict=True):
            record.sink = self.graph.sink(node, record)
        self.branches: list[tuple[list[tuple[int, int]], Recorder, Sink, bool]] = []
        self.streams = self.arrivals()
        self.switch_all()
        self.graph.on_step = self.interfere

    def build(self, node: Node, name: str) -> Source | OperatorNode:
        if node.kind == "source":
            self.unpushed[name] = []
            return self.graph.source(name, SCHEMA, lambda _: self.promise(name))
        operator = {
            "filter": lambda: Each(lambda v: None if v % node.a == node.b else v),
            "map": lambda: Each(lambda v: v + node.a),
            "union": lambda: Union(len(node.inputs)),
            "join": lambda: Join(node.a, node.b),
            "count": lambda: TimeCount(node.a),
        }[node.kind]()
        return self.graph.add(operator, [self.nodes[i] for i in node.inputs], name=name)

    def promise(self, name: str) -> int:
        """A source can promise the clock, but not past what has arrived in a page that is not full yet."""
        return min([self.now, *(t for _, t in self.unpushed[name][:1])])

    def arrivals(self) -> list[list[Pair]]:
        streams: list[list[Pair]] = []
        for _ in range(len(self.unpushed)):
            count = self.rng.choice([0, 2, 5, 9])
            times = sorted(self.rng.randint(1, 25) for _ in range(count))
            streams.append([(self.rng.randint(0, 50), t) for t in times])
        return streams

    def switch_all(self) -> None:
        if self.strategy == "mixed":
            for name in self.graph.operators:
                self.graph.set_strategy(self.rng.choice(STRATEGIES[:4]), [name])
            return
        self.graph.set_strategy(self.strategy)
        if self.strategy == "rr":
            cut_into_paths(self.graph)

    def interfere(self, _: object, __: int) -> None:
        """Called in the middle of walks: change strategies, breaks and branches."""
        rng, graph = self.rng, self.graph
        if rng.random() > self.interference:
            return
        match rng.randrange(5):
            case 0:
                text = rng.choice(["dfs", "bfs", "rr", "batch:1", "batch:2", "batch:7"])
                names = list(graph.operators)
                graph.set_strategy(Strategy.parse(text), rng.sample(names, rng.randint(1, len(names))))
            case 1:
                graph.set_break(rng.choice(list(graph.operators)))
            case 2:
                graph.set_break(rng.choice(list(graph.operators)), broken=False)
            case 3:
                self.add_branch()
            case 4 if self.branches:
                index = rng.randrange(len(self.branches))
                read, record, sink, alive = self.branches[index]
                if alive:
                    graph.remove(sink)
                    self.branches[index] = (read, record, sink, False)

    def add_branch(self) -> None:
        # What is added when the last word about time has been spoken would never hear it.
        if len(self.branches) == 4 or self.closing:
            return
        chosen = [self.rng.randrange(len(self.nodes)) for _ in range(self.rng.choice([1, 2]))]
        operator = Each() if len(chosen) == 1 else Union(2)
        read = [(i, len(self.records[i].pairs)) for i in chosen]
        node = self.graph.add(operator, [self.nodes[i] for i in chosen], name=f"branch{len(self.branches)}")
        record = Recorder()
        self.branches.append((read, record, self.graph.sink(node, record), True))

    def play(self, rows: int) -> None:
        """Let everything arrive, in pages of up to `rows` rows, and run whenever it likes."""
        history = sorted((t, i, v) for i, stream in enumerate(self.streams) for v, t in stream)
        for t, i, v in history:
            self.now = t
            held = self.unpushed[self.nodes[i].name]
            held.append((v, t))
            if len(held) >= self.rng.randint(1, rows):
                self.flush(i)
            if self.mode == "heartbeat" and self.rng.random() < 0.3:
                self.graph.heartbeat()
            if self.rng.random() < 0.6:
                self.run(self.rng.choice([1, 3, None]))
        for i in range(len(self.streams)):
            self.flush(i)
        self.run()

    def flush(self, i: int) -> None:
        held = self.unpushed[self.nodes[i].name]
        if held:
            self.graph.push(self.nodes[i], page(*held))
            held.clear()

    def run(self, steps: int | None = None) -> None:
        limit = steps or STEPS
        taken = self.graph.run(limit)
        assert taken < STEPS, "the graph does not come to rest"

    def finish(self) -> None:
        """Let time pass everywhere, in the way the mode provides."""
        self.now = 10_000
        self.closing = True
        if self.mode == "heartbeat":
            self.graph.heartbeat()
        if self.mode == "none":
            for source in self.graph.sources.values():
                self.graph.push(source, Punctuations.of((), progress=FOREVER))
        self.run()

    def check(self) -> None:
        expected = answers(self.plan, self.streams, match, combine)
        for node, record, wanted in zip(self.nodes, self.records, expected, strict=True):
            where = f"{node.name} of {self.plan} under {self.strategy}, {self.mode}"
            assert Counter(record.pairs) == Counter(wanted), where
            stamps = [t for _, t in record.pairs]
            assert stamps == sorted(stamps), where
        for read, record, _, alive in self.branches:
            since = [pair for i, start in read for pair in self.records[i].pairs[start:]]
            if alive:
                assert Counter(record.pairs) == Counter(since)
            elif len(read) == 1:
                assert record.pairs == since[: len(record.pairs)]
            else:
                assert Counter(record.pairs) <= Counter(since)
        assert self.graph.ledger.held == 0, "something is left in a buffer"


@pytest.mark.parametrize("chunk", range(GRAPHS // CHUNK))
def test_content_order_and_rest(chunk: int) -> None:
    for seed in range(chunk * CHUNK, (chunk + 1) * CHUNK):
        trial = Trial(seed)
        trial.play(rows=1 if seed // len(COMBINATIONS) % 2 else 5)
        trial.finish()
        trial.check()


@pytest.mark.parametrize("mode", ["eqg", "punctuation"])
@pytest.mark.parametrize("chunk", range(4))
def test_on_demand_frees_everything_while_the_clock_stands_still(chunk: int, mode: str) -> None:
    for seed in range(chunk * 50, chunk * 50 + 50):
        trial = Trial(seed, interference=0.02)
        if any(node.kind == "count" for node in trial.plan):
            continue
        trial.mode = mode
        trial.graph.set_ets(mode)
        trial.play(rows=1 if seed % 2 else 4)
        trial.now, trial.closing = 26, True
        trial.run()
        trial.check()
