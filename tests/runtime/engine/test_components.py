"""Components of a graph: what belongs together, and turns."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.runtime.engine.scheduler import TURN
from tests.runtime.engine.toys import Each, Recorder, Rig, running_count
from tests.tries import tries

STRATEGIES = ["dfs", "bfs", "batch:4", "rr"]


def two_paths(strategy: str) -> tuple[Rig, list[Recorder]]:
    """Two components of two operators each, over the sources S1 and S2."""
    rig = Rig(strategy=strategy)
    sinks = []
    for number in (1, 2):
        source = rig.source(f"S{number}")
        sinks.append(rig.sink(rig.add(f"count{number}", running_count(), rig.add(f"each{number}", Each(), source))))
    return rig, sinks


def test_operators_that_share_a_buffer_are_one_component() -> None:
    rig, _ = two_paths("dfs")
    assert list(rig.graph.components().values()) == [0, 0, 1, 1]
    rig.add("other", Each(), rig.graph.sources["S2"])
    assert list(rig.graph.components().values()) == [0, 0, 1, 1, 1]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_busy_component_does_not_starve_another(strategy: str) -> None:
    rig, (_, second) = two_paths(strategy)
    busy, other = rig.graph.sources.values()
    rig.push(busy, *((v, v) for v in range(20 * TURN)))
    rig.push(other, *((v, v) for v in range(3)))
    rig.graph.run(max_steps=TURN + 6)
    assert second.values == [1, 2, 3]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_busy_components_share_the_steps(strategy: str) -> None:
    rig, _ = two_paths(strategy)
    for source in rig.graph.sources.values():
        rig.push(source, *((v, v) for v in range(20 * TURN)))
    rig.graph.run(max_steps=10 * TURN)
    executed = [str(event[1]) for event in rig.events if event[0] == "execute"]
    assert {number: sum(name.endswith(number) for name in executed) for number in "12"} == {"1": 320, "2": 320}


def test_a_lone_component_is_not_interrupted() -> None:
    rig, _ = two_paths("dfs")
    rig.push(rig.graph.sources["S1"], *((v, v) for v in range(2 * TURN)))
    assert rig.run().count("exit") == 1


@given(st.lists(st.integers(0, 1), max_size=400), st.sampled_from(STRATEGIES), st.integers(1, 100))
@settings(max_examples=tries(60))
def test_turns_change_no_result(order: list[int], strategy: str, limit: int) -> None:
    rig, sinks = two_paths(strategy)
    sources = list(rig.graph.sources.values())
    for time, number in enumerate(order):
        rig.push(sources[number], (number, time))
    while rig.graph.run(max_steps=limit) == limit:
        pass
    assert [sink.values for sink in sinks] == [list(range(1, order.count(n) + 1)) for n in (0, 1)]
