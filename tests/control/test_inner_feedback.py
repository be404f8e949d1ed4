"""Feedback that operators inside a plan send, under any switches: results are those of the sender's guard alone.

The sender ignores matching tuples, by a guard on its input, from a moment on. If the operators before it exploit that
correctly, whatever they do and pass on, the results of the query do not change, nor does its state in the end.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from typing import Any

from hypothesis import event, given, settings
from hypothesis import strategies as st

from millstream.algebra.feedback import parse_feedback
from millstream.algebra.types import MICROS, Type
from millstream.control.job.jobs import LocalJobs
from millstream.control.job.local import LocalJob
from millstream.control.mill import LocalMill
from millstream.runtime.engine import Graph
from millstream.runtime.engine.guarding import mount
from millstream.runtime.engine.nodes import OperatorNode
from millstream.runtime.engine.port import Port
from tests.control.invariance.cases import ADVANCE, END, LOOK, Case, begin, cases
from tests.control.invariance.queries import STREAMS
from tests.control.test_invariance import WAYS
from tests.tries import tries

FORMS = ("= {0}", "< {0}", ">= {0}", "in [{0}, {1}]")
Sent = tuple[int, int, int, str, tuple[int, int]]
"""The element after which it is sent, the port and the column (by numbers), a form, and two values."""
SENT = st.tuples(
    st.integers(0, 30),
    st.integers(0, 20),
    st.integers(0, 20),
    st.sampled_from(FORMS),
    st.tuples(st.integers(0, 4), st.integers(0, 4)),
)


def graphs(mill: LocalMill) -> Iterator[Graph]:
    for job in mill.placements.jobs():
        assert isinstance(job, LocalJob)
        yield from (shard.host.graph for shard in job._shards.values())


def send(graph: Graph, sent: Sent, *, passed_on: bool) -> None:
    """Let an operator of a graph disclaim tuples of one of its inputs."""
    _, place, column, form, values = sent
    ports = [port for node in graph.operators.values() for port in node.ports if inner(port)]
    ports = [port for port in ports if numbers(port)]
    if not ports:
        return
    port = ports[place % len(ports)]
    name = numbers(port)[column % len(numbers(port))]
    low, high = (value * 8 if "ts" in name or "window" in name or "pane" in name else value for value in sorted(values))
    schema = port.buffer.producer.operator.schema  # type: ignore[union-attr]
    message = parse_feedback(f"~[{name} {form.format(low, high)}]", schema)
    event(f"to {type(port.buffer.producer.operator).__name__}")  # type: ignore[union-attr]
    if passed_on:
        graph.send(port, message)
    else:
        mount(port, message)


def inner(port: Port) -> bool:
    return isinstance(port.buffer.producer, OperatorNode)


def numbers(port: Port) -> list[str]:
    schema = port.buffer.producer.operator.schema  # type: ignore[union-attr]
    return [a.name for a in schema if a.type in (Type.BIGINT, Type.INT, Type.DOUBLE)]


def outcome(case: Case, sent: list[Sent], seed: int, way: str, switched: tuple[str, str], **how: Any) -> Any:
    """All rows of a query, and the state at the end."""
    chance, options = random.Random(seed), WAYS[way][0].model_copy()
    options.exploit, options.propagate = switched
    mill = LocalMill(options, jobs=LocalJobs(shards=options.shards, cached=True))
    begin(case, mill)
    got: Counter = Counter()

    def take() -> None:
        mill.batch()
        got.update(mill.take_rows("q").rows())

    for number, (stream, line) in enumerate([*case.elements, *((name, f"[*, *, < {END}]") for name in STREAMS)]):
        for each in sent:
            if each[0] % (len(case.elements) + 1) == number:
                take()
                for graph in graphs(mill):
                    send(graph, each, **how)
                    graph.run()
        if stream == ADVANCE:
            mill.advance(int(line) * MICROS)
        elif stream != LOOK:
            mill.feed_line(stream, line)
        if chance.random() < 0.4:
            take()
    for name in STREAMS:
        mill.feed_line(name, "[*, *, *]")
    take()
    return got, mill.state_rows("q")


@given(
    cases(),
    st.lists(SENT, min_size=1, max_size=3),
    st.integers(1, 1000),
    st.sampled_from(sorted(way for way, (_, more) in WAYS.items() if not more.get("restart"))),
    st.tuples(
        st.sampled_from(["on", "guard", "off", "on; select: off; windowjoin: off"]), st.sampled_from(["on", "off"])
    ),
)
@settings(max_examples=tries(60))
def test_feedback_of_inner_operators(
    case: Case, sent: list[Sent], seed: int, way: str, switched: tuple[str, str]
) -> None:
    alone = outcome(case, sent, seed, way, switched, passed_on=False)
    assert outcome(case, sent, seed, way, switched, passed_on=True) == alone
