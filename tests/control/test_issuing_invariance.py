"""Operators that send feedback by themselves, in random plans under random cuts, shards, strategies and switches.

| | results |
|---|---|
| THRIFTY JOIN, IMPATIENT JOIN | those of the plain join |
| INSTRUMENT with `~[…]` | those without it, but for tuples that match (Definition 1) |
| LIMIT n | n of those without it, or all |
| WITH PACE | those without it, but for tuples that are too late |
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import Phase, assume, find, given, settings
from hypothesis import strategies as st

from millstream.config import Options
from tests.control.invariance.cases import Case, cases, outcome
from tests.control.invariance.queries import STREAMS
from tests.control.test_invariance import WAYS, stems
from tests.tries import tries

JOINED = ("join", "over join", "by another key", "joined windows", "joined groups")
SWITCHES = (("on", "on"), ("on", "on"), ("off", "off"), ("guard", "on"), ("on", "off"), ("off", "on"))
ways = st.sampled_from(sorted(WAYS))
switches = st.sampled_from(SWITCHES)


def told(case: Case, seed: int, way: str, switched: tuple[str, str]) -> tuple[list[Counter], list[int]]:
    """The rows of a case between looks, and the numbers of late tuples."""
    options, how = WAYS[way]
    options = options.model_copy(update={"exploit": switched[0], "propagate": switched[1]})
    rows, _, _, late = outcome(case, options, seed, **how)
    return rows, late


@st.composite
def issuing_joins(draw: st.DrawFn) -> tuple[Case, Case]:
    """A join that sends feedback, and the plain one."""
    case = draw(cases(JOINED))
    assume("[ROWS" not in case.query and " JOIN " in case.query)
    word = draw(st.sampled_from(["THRIFTY", "IMPATIENT"]))
    return replace(case, query=case.query.replace(" JOIN ", f" {word} JOIN ", 1)), case


@given(issuing_joins(), st.integers(1, 1000), ways, switches)
@settings(max_examples=tries(60))
def test_joins_have_the_rows_of_plain_ones(
    pair: tuple[Case, Case], seed: int, way: str, switched: tuple[str, str]
) -> None:
    issuing, plain = pair
    rows, _, _, late = outcome(plain, Options(), 0)
    assert told(issuing, seed, way, switched) == (rows, late)


@given(cases(("join", "three", "outer", "joined groups")), st.integers(1, 1000), ways, switches)
@settings(max_examples=tries(60))
def test_closed_keys_change_no_rows(case: Case, seed: int, way: str, switched: tuple[str, str]) -> None:
    """Plain joins tell their inputs which keys the other input has closed."""
    kinds = ("punctuated",) * 3
    assume("[ROWS" not in case.query)
    case = replace(case, kinds=kinds, elements=tuple(punctuated(case.elements, seed)))
    rows, _, _, late = outcome(case, Options(propagate="off"), 0)
    assert told(case, seed, way, switched) == (rows, late)


def punctuated(elements: Sequence[tuple[str, str]], seed: int) -> list[tuple[str, str]]:
    """Elements with punctuation on keys among them; no tuple follows the punctuation of its key."""
    closed: set[tuple[str, str]] = set()
    made: list[tuple[str, str]] = []
    for number, (stream, line) in enumerate(elements):
        key = line.partition(" ")[0]
        if stream not in STREAMS:
            made.append((stream, line))
        elif not line.startswith("[") and (stream, key) not in closed:
            made.append((stream, line))
            if (number + seed) % 3 == 0:
                other = str((number + seed) % 3)
                closed.add((stream, other))
                made.append((stream, f"[{other}, *, *]"))
    return made


@given(cases(("select", "union", "join")), st.integers(0, 2), st.integers(1, 1000), ways, switches)
@settings(max_examples=tries(40))
def test_an_instrument(case: Case, every: int, seed: int, way: str, switched: tuple[str, str]) -> None:
    assume("[ROWS" not in case.query)
    often = every or "ONCE"
    told_of = f"INSTRUMENT(TABLE ({case.query}), '~[v < 3]', {often})"
    rows, _, _, late = outcome(case, Options(), 0)
    everything = sum(rows, Counter())
    found = told(replace(case, query=f"SELECT * FROM {told_of} AS i"), seed, way, switched)
    emitted = sum(found[0], Counter())
    assert found[1] == late and not emitted - everything
    assert all(row[1] < 3 for row in everything - emitted)
    assert every or not any(row[1] is not None and row[1] < 3 for row in emitted)


@given(
    cases(("select", "union", "join", "aggregate", "outer")), st.integers(1, 6), st.integers(1, 1000), ways, switches
)
@settings(max_examples=tries(40))
def test_a_limit(case: Case, most: int, seed: int, way: str, switched: tuple[str, str]) -> None:
    everything = sum(outcome(case, Options(), 0)[0], Counter())
    emitted = sum(told(replace(case, query=f"{case.query} LIMIT {most}"), seed, way, switched)[0], Counter())
    assert not emitted - everything
    assert emitted.total() == min(most, everything.total())


@given(cases(("union",)), st.integers(1, 6), st.integers(1, 1000), ways, switches)
@settings(max_examples=tries(40))
def test_a_paced_union(case: Case, tolerance: int, seed: int, way: str, switched: tuple[str, str]) -> None:
    # PACE takes tuples as they arrive and asks for no time: where sources promise it on demand, fewer tuples are late.
    assume(not {"internal", "skewed"} & {*case.kinds})
    rows, _, _, late = outcome(case, Options(), 0)
    everything = sum(rows, Counter())
    query = f"{case.query} WITH PACE ON MAX(ts) {tolerance}"
    found = told(replace(case, query=query), seed, way, switched)
    emitted = sum(found[0], Counter())
    newest = max((row[2] for row in everything), default=0)
    assert found[1] == late and not emitted - everything
    assert all(row[2] < newest - tolerance for row in everything - emitted)


@pytest.mark.parametrize("stem", ["thrifty_join", "impatient_join"])
def test_every_operator_is_here(stem: str) -> None:
    tried = settings(max_examples=200, phases=[Phase.generate], database=None)
    assert stem in stems(find(issuing_joins(), lambda pair: stem in stems(pair[0]), settings=tried)[0])
