"""Strategies and breaks of single operators, set in SQL: where they reach, and what they survive."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.config import Options
from millstream.control.mill import LocalMill
from millstream.errors import MillstreamError
from millstream.testing.runner import LocalHost, Variant, run_text
from tests.paths import TRANSCRIPTS
from tests.tries import tries

STREAMS = """
CREATE STREAM a (k BIGINT, v BIGINT, ts BIGINT) ORDER BY ts;
CREATE STREAM b (k BIGINT, v BIGINT, ts BIGINT) ORDER BY ts
"""
UNION = "SELECT k, v, ts FROM a WHERE v > 0 UNION ALL SELECT k, v, ts FROM b WHERE v > 1"
COUNTED = f"SELECT window_end, COUNT(*) AS n FROM ({UNION}) AS u [RANGE 5 SLIDE 5]"


def opened(shards: int = 1) -> LocalMill:
    mill = LocalMill(Options(shards=shards))
    mill.execute(STREAMS)
    mill.execute(f"CREATE QUERY q AS {UNION}")
    return mill


def table(mill: LocalMill, query: str = "q") -> dict[str, str]:
    """The macros in the graphs that run a query, by the kinds of operators."""
    graphs = [host.graph for host in mill.hosts(query)]
    found = [{row.state.partition("-")[0]: row.transition for row in graph.table()} for graph in graphs]
    assert all(one == found[0] for one in found)
    return found[0]


MIXED = {"Select": "BFS-Source-Sink", "Union": "DFS-Source-Sink"}


def mixed(shards: int = 1) -> LocalMill:
    mill = opened(shards)
    mill.execute("SET strategy = 'dfs; q.select: bfs'; SET breaks = 'select'")
    return mill


@pytest.mark.parametrize("shards", [1, 3])
def test_operators_of_one_graph_have_different_strategies_and_breaks(shards: int) -> None:
    mill = mixed(shards)
    assert table(mill) == MIXED
    mill.execute("SET strategy = 'dfs'; SET breaks = ''")
    assert table(mill) == {"Select": "DFS-Source", "Union": "DFS-Sink"}


def test_they_survive_new_queries_other_settings_and_restarts() -> None:
    mill = mixed(2)
    mill.execute("CREATE QUERY r AS SELECT k, v, ts FROM a WHERE v > 7")
    mill.execute("SET purge_threshold = 3; SET ets = 'punctuation'")
    assert table(mill) == MIXED
    mill = mill.restarted()
    assert table(mill) == MIXED
    mill.execute("DROP QUERY r")
    assert table(mill) == MIXED
    assert mill.options.breaks == "select"


def test_a_rule_for_a_query_is_not_for_others() -> None:
    mill = mixed()
    mill.execute("SET breaks = ''; CREATE QUERY p AS SELECT k FROM a WHERE v > 5 UNION ALL SELECT k FROM b WHERE v > 6")
    lines = mill.execute("EXPLAIN PHYSICAL p").splitlines()
    assert not any("BFS" in line for line in lines) and any("DFS" in line for line in lines)
    assert "BFS-Source" in mill.execute("EXPLAIN PHYSICAL q")


def test_a_later_query_of_the_kind_gets_the_strategy() -> None:
    mill = opened()
    mill.execute("SET strategy = 'dfs; union: bfs'; CREATE QUERY p AS SELECT k FROM a UNION ALL SELECT k FROM b")
    assert table(mill, "p")["Union"] == "BFS-Sink"


def test_explain_shows_strategies_and_breaks() -> None:
    mill = opened()
    mill.execute("SET strategy = 'dfs; union: bfs'; SET breaks = 'select 2'")
    shown = mill.execute("EXPLAIN PHYSICAL q").split("\n\n")[1]
    assert shown.splitlines() == [
        "state     pred       succ   transition",
        "Select    –          Union  DFS-Source",
        "Select 2  –          –      DFS-Source-Sink",
        "Union     Select, –  –      BFS-Sink",
    ]


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("SET strategy = 'dfs; q.onion: bfs'", "unknown operator 'q.onion'"),
        ("SET strategy = 'dfs; onion: bfs'", "unknown operator 'onion'"),
        ("SET strategy = 'dfs; q.select 3: bfs'", "unknown operator 'q.select 3'"),
        ("SET strategy = 'dfs; r.union: bfs'", "unknown query 'r'"),
        ("SET strategy = 'dfs; q.union'", "option 'strategy' cannot be"),
        ("SET strategy = 'q.union: bfs'", "option 'strategy' cannot be"),
        ("SET strategy = 'dfs; q.union: quick'", "option 'strategy' cannot be"),
        ("SET breaks = 'q.union 2'", "unknown operator 'q.union 2'"),
        ("SET breaks = 'select 99'", "unknown operator 'select 99'"),
        ("SET strategy = 'dfs; select 99: bfs'", "unknown operator 'select 99'"),
        ("SET breaks = 'select 0'", "option 'breaks' cannot be"),
        ("SET breaks = 'select ２'", "option 'breaks' cannot be"),
        ("SET breaks = 'select 99999999999999999999'", "option 'breaks' cannot be"),
        ("SET strategy = 'batch:１6'", "option 'strategy' cannot be"),
        ("SET strategy = 'batch:1_0'", "option 'strategy' cannot be"),
        ("SET strategy = 'batch:99999999999'", "option 'strategy' cannot be"),
        ("SET breaks = 'q . union'", "option 'breaks' cannot be"),
    ],
)
def test_errors_change_nothing(statement: str, message: str) -> None:
    mill = opened()
    with pytest.raises(MillstreamError, match=message):
        mill.execute(statement)
    assert (mill.options.strategy, mill.options.breaks) == ("batch:16", "")


names = st.sampled_from(["dfs", "bfs", "rr", "batch:2"])
places = st.sampled_from(["select", "q.select 2", "q.union", "project", "windowaggregate", "exchange", "gather"])
rules = st.lists(st.tuples(places, names), max_size=3)
steps = st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 3), st.integers(0, 4)), max_size=25)


@given(steps, names, rules, st.lists(places, max_size=3), st.integers(1, 3), st.sampled_from([1, 2, 8192]))
@settings(max_examples=tries(60))
def test_no_mixture_changes_a_result(
    steps: list[tuple[str, int, int]],
    default: str,
    mixture: list[tuple[str, str]],
    broken: list[str],
    shards: int,
    page_rows: int,
) -> None:
    found = []
    for changed in (False, True):
        mill = LocalMill(Options(shards=shards if changed else 1, page_rows=page_rows))
        mill.execute(STREAMS)
        mill.execute(f"CREATE QUERY q AS {UNION}; CREATE QUERY c AS {COUNTED}")
        time = 0
        for number, (stream, v, wait) in enumerate(steps):
            if changed and number == len(steps) // 2:
                text = "; ".join([default, *(f"{place}: {name}" for place, name in mixture)])
                mill.execute(f"SET strategy = '{text}'; SET breaks = '{'; '.join(broken)}'")
            time += wait
            mill.insert(stream, [(v, v, time)])
        mill.batch()
        found.append([sorted(mill.take_rows(query).rows()) for query in "qc"])
    assert found[0] == found[1]


class WatchedHost(LocalHost):
    """Notes the macros of the running graph after every statement."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[set[str]] = []

    def open(self, options: Options) -> LocalMill:
        mill = super().open(options)
        execute = mill.execute

        def watched(text: str) -> str:
            said = execute(text)
            if "q" in mill.queries:
                mill.sync()
                graphs = [host.graph for host in mill.hosts("q")]
                self.seen.append({row.transition.partition("-")[0] for graph in graphs for row in graph.table()})
            return said

        mill.execute = watched  # type: ignore[method-assign]
        return mill


def test_the_transcript_that_switches_strategies_does_switch_them() -> None:
    """The answers must not depend on the strategy, so the transcript alone passes if SET does nothing."""
    host, path = WatchedHost(), TRANSCRIPTS / "engine" / "strategy_switch.transcript"
    assert run_text(path.read_text(), Variant(), path.stem, host).passed
    assert host.seen == [{"BFS"}, {"KB"}, {"RR"}]


def test_a_place_that_is_gone_does_not_hinder_other_settings() -> None:
    mill = LocalMill()
    mill.execute("CREATE STREAM a (k BIGINT, ts BIGINT) ORDER BY ts; CREATE QUERY q AS SELECT k FROM a WHERE k > 1")
    mill.execute("SET breaks = 'q.project'; DROP QUERY q; SET strategy = 'bfs'")
    assert mill.options.strategy == "bfs" and mill.options.breaks == "q.project"


def test_a_numbered_operator_needs_a_query_that_has_it() -> None:
    with pytest.raises(MillstreamError, match="unknown operator 'select 1'"):
        LocalMill().execute("SET breaks = 'select 1'")


def test_a_query_created_again_gets_its_strategy_again() -> None:
    mill = mixed(2)
    mill.execute(f"DROP QUERY q; CREATE QUERY q AS {UNION}")
    assert table(mill) == MIXED
    mill = mill.restarted()
    assert table(mill) == MIXED


def test_a_setting_that_is_refused_changes_nothing_over_a_restart() -> None:
    mill = mixed(2)
    with pytest.raises(MillstreamError, match=r"unknown operator 'q\.onion'"):
        mill.execute("SET strategy = 'bfs; q.onion: dfs'")
    mill = mill.restarted()
    assert table(mill) == MIXED and mill.options.breaks == "select"


def test_a_busy_query_does_not_hold_up_another() -> None:
    """Two queries of one graph, without a common operator: both have their rows after the batch."""
    mill = LocalMill(Options(page_rows=1))
    mill.execute(STREAMS)
    mill.execute("CREATE QUERY busy AS SELECT v FROM a WHERE v > 0; CREATE QUERY other AS SELECT v FROM b WHERE v > 0")
    mill.insert("a", [(1, 1, time) for time in range(500)])
    mill.insert("b", [(1, 1, 1)])
    mill.batch()
    assert (len(mill.take_rows("busy")), len(mill.take_rows("other"))) == (500, 1)
