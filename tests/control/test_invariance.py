"""The central property: results are the same bag for every page cut, batch cut, shard count, stage and strategy, at
every point where one looks, and so is the state.

Random queries over random streams of every kind of time, with random tuples, punctuations and moves of the clock, run
in one piece and then in every other way: selections, unions, joins of two and of three streams, outer joins, joins with
a table, streams that another one closes, aggregates (also over joins by another key, which need another stage),
sequences, duplicates. The same tuples are late in all of them. `test_every_operator_is_here` checks that the list
covers all plan nodes. DataFrames of several partitions are left out: which of their rows are late depends on the
batches (`tests/physical/wire/test_partitions.py`).
"""

from __future__ import annotations

import itertools
from contextlib import suppress

import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st
from hypothesis.errors import NoSuchExample

from millstream.config import Options
from millstream.control.mill import LocalMill
from millstream.logical import nodes
from millstream.logical.plan import NODES
from tests.control.invariance.cases import Case, begin, cases, outcome
from tests.control.invariance.queries import SHAPES
from tests.tries import tries

WAYS = {
    "cut": (Options(), {}),
    "one-row pages": (Options(page_rows=1), {}),
    "restarted": (Options(page_rows=3), {"restart": True}),
    "read back": (Options(page_rows=3), {"cached": False}),
    "without panes": (Options(paned=False), {}),
    "one operator for joins": (Options(multi_join="always"), {}),
    "trees of joins": (Options(multi_join="never"), {}),
    "two shards": (Options(shards=2), {}),
    "three shards": (Options(shards=3, page_rows=2), {}),
    "shards read back": (Options(shards=2, page_rows=3), {"cached": False}),
    "shards restarted": (Options(shards=3), {"restart": True}),
    "breadth first": (Options(strategy="bfs", page_rows=2), {}),
    "batches": (Options(strategy="batch:2", page_rows=2), {}),
    "round robin": (Options(strategy="rr", page_rows=2), {}),
    "mixed": (Options(strategy="dfs; union: bfs; windowjoin: rr; q.project: batch:2", page_rows=2, shards=2), {}),
    "broken": (Options(strategy="batch:4; select: bfs", breaks="project; select; windowaggregate", page_rows=2), {}),
}
SAME_PUNCTUATION = {"cut", "one-row pages", "restarted", "read back", "without panes"}
SAME_STATE = {"cut", "one-row pages", "restarted", "read back", "two shards", "three shards", "shards restarted"}
GROUPED = {"one operator, cut": Options(), "on two shards": Options(shards=2), "pages": Options(page_rows=1)}


@given(cases(), st.integers(1, 1000), st.lists(st.sampled_from(sorted(WAYS)), min_size=2, max_size=2, unique=True))
@settings(max_examples=tries(80))
def test_no_cut_shard_or_strategy_changes_the_results(case: Case, seed: int, ways: list[str]) -> None:
    rows, punctuation, state, late = outcome(case, Options(), 0)
    for way in ways:
        options, more = WAYS[way]
        found = outcome(case, options.model_copy(), seed, **more)
        assert found[3] == late, way
        assert found[0] == rows, way
        assert way not in SAME_PUNCTUATION or found[1] == punctuation, way
        assert way not in SAME_STATE or found[2] == state, way


@given(cases(("three",)), st.integers(1, 1000), st.sampled_from(sorted(GROUPED)))
@settings(max_examples=tries(60))
def test_joins_of_three_in_one_operator_hold_the_same(case: Case, seed: int, way: str) -> None:
    always = {"multi_join": "always"}
    rows, _, state, late = outcome(case, Options(**always), 0)
    found = outcome(case, GROUPED[way].model_copy(update=always), seed)
    assert (found[0], found[2], found[3]) == (rows, state, late)


nodes.load()


def stems(case: Case) -> set[str]:
    """The nodes that a case runs on two shards."""
    mill = LocalMill(Options(shards=2))
    begin(case, mill)
    plans = [query.plan for query in mill.queries.values()]
    return {part.stem for plan in plans for made in mill.prepare("q", plan) for part in made.plan.walk()}


ELSEWHERE = {
    "pace": "test_pace: it depends on the order of arrival",
    "limit": "test_limit: which rows are the first depends on the order of arrival",
    "instrument": "test_feedback_statement, transcripts: when it sends feedback depends on the batches",
    "thrifty_join": "test_issuing_joins",
    "impatient_join": "test_issuing_joins",
    "prodder": "test_prods, test_early",
    "revise": "test_prods, test_early",
    "assess": "test_estimates",
}


@pytest.mark.parametrize("shapes", [("join",), SHAPES], ids=["joins", "all"])
def test_every_operator_is_here(shapes: tuple[str, ...]) -> None:
    wanted = {stem for stem, node in NODES.items() if node.runs and node.__module__.startswith("millstream.")}
    wanted = {"placeholders"} if len(shapes) == 1 else wanted - {*ELSEWHERE, "placeholders"}  # few joins need them
    seen: set[str] = set()

    def complete(case: Case) -> bool:
        seen.update(stems(case))
        return wanted <= seen

    # A few of each shape, then more: of all shapes together the rare operators come late.
    for number, shape in itertools.product((4, 30, 300), shapes):
        if not wanted <= seen:
            with suppress(NoSuchExample):
                few = settings(max_examples=number, phases=[Phase.generate], database=None)
                find(cases((shape,)), complete, settings=few)
    assert wanted <= seen
