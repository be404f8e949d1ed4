"""Next-operator selection: traces, latency, the transition table, mixtures (W1, W2, W14; T11-T14)."""

from __future__ import annotations

import pytest

from millstream.errors import OptionError
from millstream.runtime.engine import Strategy, format_table
from tests.runtime.engine.toys import Each, LatentUnion, Rig, running_count, running_sum

FOUR = ((1, 1), (2, 2), (3, 3), (4, 4))


def path_of_two(strategy: str) -> tuple[str, list[tuple[int, int]]]:
    rig = Rig(strategy=strategy)
    source = rig.source("Source")
    first = rig.add("Q1", Each(lambda v: None if v == 2 else v), source)
    out = rig.sink(rig.add("Q2", Each(), first))
    rig.push(source, *FOUR)
    return rig.run(), out.pairs


@pytest.mark.parametrize(
    ("strategy", "trace"),
    [
        (
            "dfs",
            "X(Q1) X(Q2) B(Q2→Q1) X(Q1) X(Q1) X(Q2) B(Q2→Q1) X(Q1) X(Q2) B(Q2→Q1) B(Q1→Source) exit",
        ),
        ("bfs", "X(Q1) X(Q1) X(Q1) X(Q1) X(Q2) X(Q2) X(Q2) B(Q2→Q1) B(Q1→Source) exit"),
        ("rr", "X(Q1) X(Q1) X(Q1) X(Q1) X(Q2) X(Q2) X(Q2) exit"),
        (
            "batch:2",
            "X(Q1) X(Q1) X(Q2) B(Q2→Q1) X(Q1) X(Q1) X(Q2) X(Q2) B(Q2→Q1) B(Q1→Source) exit",
        ),
    ],
)
def test_traces_on_a_path(strategy: str, trace: str) -> None:
    happened, output = path_of_two(strategy)
    assert happened == trace
    assert output == [(1, 1), (3, 3), (4, 4)]


def test_a_batch_that_is_filtered_out_is_followed_by_another() -> None:
    rig = Rig(strategy="batch:2")
    source = rig.source("s")
    rig.sink(rig.add("b", Each(), rig.add("a", Each(lambda v: v if v == 4 else None), source)))
    rig.push(source, *FOUR)
    assert rig.run() == "X(a) X(a) X(a) X(a) X(b) B(b→a) B(a→s) exit"


def path_of_three(strategy: str, *, drop: int | None = None) -> tuple[Rig, str]:
    rig = Rig(strategy=strategy)
    source = rig.source("s")
    node = rig.add("σ", Each(lambda v: None if v == drop else v), source)
    rig.sink(rig.add("Σ2", running_sum(), rig.add("Σ1", running_count(), node)))
    rig.push(source, (1, 1), (2, 2))
    return rig, rig.run()


def executed(trace: str) -> str:
    return " ".join(word for word in trace.split() if word.startswith("X"))


def test_depth_and_breadth_first_order() -> None:
    assert executed(path_of_three("dfs")[1]) == "X(σ) X(Σ1) X(Σ2) X(σ) X(Σ1) X(Σ2)"
    assert executed(path_of_three("bfs")[1]) == "X(σ) X(σ) X(Σ1) X(Σ1) X(Σ2) X(Σ2)"
    assert path_of_three("dfs", drop=1)[1] == "X(σ) X(σ) X(Σ1) X(Σ2) B(Σ2→Σ1) B(Σ1→σ) B(σ→s) exit"


def test_round_robin_does_not_backtrack() -> None:
    rig = Rig(strategy="rr")
    source = rig.source("s")
    rig.sink(rig.add("b", Each(), rig.add("a", Each(lambda _: None), source)))
    rig.push(source, (1, 1), (2, 2))
    assert rig.run() == "X(a) X(a) exit"


def mean_latency(strategy: str, n: int, operators: int = 2) -> float:
    """A burst of n latent tuples through selections and a union that waits for nothing, cost 1 each."""
    rig = Rig(strategy=strategy, mode="none")
    one, two = rig.source("s1"), rig.source("s2")
    node = one
    for number in range(operators - 1):
        node = rig.add(f"σ{number}", Each(), node)
    union = rig.add("∪", LatentUnion(), node, rig.add("other", Each(), two))
    delivered: list[int] = []

    def pay(_: object, tuples: int) -> None:
        rig.now += tuples

    rig.graph.on_step = pay
    rig.graph.sink(union, lambda _: delivered.append(rig.now))
    rig.push(one, *((i, 0) for i in range(n)))
    rig.graph.run()
    assert len(delivered) == n
    return sum(delivered) / n


@pytest.mark.parametrize("n", [1, 2, 4, 5, 10, 100])
def test_analytic_latency(n: int) -> None:
    assert mean_latency("dfs", n) == pytest.approx(n + 1)
    assert mean_latency("bfs", n) == pytest.approx(1.5 * n + 0.5)
    assert mean_latency("rr", n) == pytest.approx(1.5 * n + 0.5)


@pytest.mark.parametrize(("k", "n"), [(5, 10), (5, 100), (1, 7), (10, 10), (20, 100)])
def test_analytic_latency_of_batches(k: int, n: int) -> None:
    assert mean_latency(f"batch:{k}", n) == pytest.approx(n + (k + 1) / 2)


@pytest.mark.parametrize("m", [3, 5])
def test_analytic_latency_of_longer_paths(m: int) -> None:
    n = 10
    assert mean_latency("dfs", n, m) == pytest.approx(m * (n + 1) / 2)
    assert mean_latency("bfs", n, m) == pytest.approx((m - 1) * n + (n + 1) / 2)


TABLE_1 = """
state  pred  succ  transition
σ      –     Σ1    DFS-Source
Σ1     σ     Σ2    DFS-NOS
Σ2     Σ1    –     DFS-Sink
""".strip()

TABLE_2 = """
state  pred  succ  transition
σ      –     Σ1    DFS-Source
Σ1     σ     –     DFS-Sink
Σ2     –     –     DFS-Source-Sink
""".strip()


def test_table_edits() -> None:
    rig, _ = path_of_three("dfs")
    graph = rig.graph
    assert format_table(graph.table()) == TABLE_1
    graph.set_break("Σ1")
    assert format_table(graph.table()) == TABLE_2
    graph.set_break("Σ1", broken=False)
    assert format_table(graph.table()) == TABLE_1
    graph.set_strategy("bfs")
    assert format_table(graph.table()) == TABLE_1.replace("DFS", "BFS")
    graph.set_strategy("batch:3")
    assert format_table(graph.table()) == TABLE_1.replace("DFS", "KB")
    graph.set_strategy("rr", ["Σ1"])
    assert [row.transition for row in graph.table()] == ["KB-Source", "RR-NOS", "KB-Sink"]


def test_single_operator_is_source_and_sink() -> None:
    rig = Rig()
    rig.sink(rig.add("only", Each(), rig.source("s")))
    assert [tuple(row) for row in rig.graph.table()] == [("only", "–", "–", "DFS-Source-Sink")]


def test_a_mixture_runs_each_operator_by_its_own_rule() -> None:
    rig, _ = path_of_three("dfs")
    rig.graph.set_strategy("bfs", ["σ"])
    rig.push(rig.graph.sources["s"], (1, 3), (2, 4))
    assert executed(rig.run()) == "X(σ) X(σ) X(Σ1) X(Σ2) X(Σ1) X(Σ2)"


def test_switching_in_the_middle_of_a_walk() -> None:
    rig = Rig(strategy="bfs")
    source = rig.source("s")
    out = rig.sink(rig.add("b", Each(), rig.add("a", Each(), source)))
    rig.push(source, *FOUR)
    steps = 0

    def switch(_: object, __: int) -> None:
        nonlocal steps
        steps += 1
        if steps == 2:
            rig.graph.set_strategy("dfs")

    rig.graph.on_step = switch
    assert executed(rig.run()) == "X(a) X(a) X(b) X(b) X(a) X(b) X(a) X(b)"
    assert out.values == [1, 2, 3, 4]


def test_a_run_can_be_cut_short() -> None:
    rig = Rig()
    source = rig.source("s")
    out = rig.sink(rig.add("b", Each(), rig.add("a", Each(), source)))
    rig.push(source, *FOUR)
    assert [rig.graph.run(3) for _ in range(4)] == [3, 3, 2, 0]
    assert out.values == [1, 2, 3, 4]


@pytest.mark.parametrize("text", ["dsf", "", "batch:x", "batch:0", "batch", "batch:", "bfs:2"])
def test_unknown_strategies(text: str) -> None:
    with pytest.raises(OptionError):
        Strategy.parse(text)


def test_unknown_operator() -> None:
    with pytest.raises(OptionError, match="unknown operator 'σ2'"):
        path_of_three("dfs")[0].graph.set_break("σ2")
