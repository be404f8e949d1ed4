"""KEY JOIN outside CHRONICLE: against the reference, for all cuts, shards and strategies."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.config import Options
from millstream.control.mill import LocalMill
from millstream.errors import PlanError
from tests.reference.key_join import Tuple, Window, key_join, recent_once
from tests.tries import tries

END = 10_000
STREAMS = """
CREATE STREAM a (k BIGINT, v BIGINT, ts BIGINT) ORDER BY ts;
CREATE STREAM b (k BIGINT, v BIGINT, ts BIGINT) ORDER BY ts
"""
WAYS = (
    Options(),
    Options(page_rows=1),
    Options(shards=3, page_rows=2),
    Options(strategy="rr"),
    Options(strategy="dfs; keyjoin: bfs", breaks="project"),
)
Arrivals = list[tuple[int, Tuple]]


@st.composite
def arrivals(draw: st.DrawFn) -> Arrivals:
    made: Arrivals = []
    now = 0
    for number in range(draw(st.integers(0, 24))):
        now += draw(st.integers(0, 2))
        made.append((draw(st.integers(0, 1)), (draw(st.integers(0, 1)), number, now)))
    return made


windows = st.sampled_from([0, 2, 5, "rows:1", "rows:2", None])


def over(window: Window, once: bool) -> str:
    size = {"int": f"RANGE {window}", "str": str(window).replace(":", " ").upper()}.get(
        type(window).__name__, "UNLIMITED"
    )
    return f"OVER ({size} PRECEDING){' KEY JOIN' if once else ''}"


def result(query: str, given_: Arrivals, options: Options, cuts: set[int]) -> list[tuple[int, int]]:
    mill = LocalMill(options.model_copy())
    mill.execute(STREAMS)
    mill.add_query("q", query)
    found: list[tuple[int, int]] = []
    for number, (side, row) in enumerate(given_):
        mill.insert("ab"[side], [row])
        if number in cuts:
            mill.batch()
            if number % 3 == 0:
                found += mill.take_rows("q").rows()
                mill = mill.restarted()
    mill.batch()
    for stream in "ab":
        mill.punctuate(stream, f"[*, *, < {END}]")
    mill.batch()
    return sorted([*found, *mill.take_rows("q").rows()])


@given(
    arrivals(),
    windows,
    st.one_of(st.just("rows:0"), windows),
    st.sampled_from([(True, False), (False, True), (True, True)]),
    st.sampled_from(["", "AND x.v + y.v > 12", "AND y.v > 5", "AND x.k <> 1"]),
    st.sampled_from(WAYS),
    st.sets(st.integers(0, 24)),
)
@settings(max_examples=tries(120))
def test_pairs_are_those_of_the_reference(
    given_: Arrivals,
    left: Window,
    right: Window,
    once: tuple[bool, bool],
    where: str,
    way: Options,
    cuts: set[int],
) -> None:
    if right == "rows:0":  # the second stream only probes
        once, second = (True, False), ""
    else:
        second = over(right, once[1])
    query = f"SELECT x.v, y.v AS w FROM a AS x {over(left, once[0])}, b AS y {second} WHERE x.k = y.k {where}"

    def condition(one: Tuple, other: Tuple) -> bool:
        checks = {"x.v + y.v > 12": one[1] + other[1] > 12, "y.v > 5": other[1] > 5, "x.k <> 1": one[0] != 1}
        return one[0] == other[0] and checks.get(where.removeprefix("AND "), True)

    expected = sorted(key_join(given_, (left, right), once, condition))
    assert result(query, given_, way, cuts) == expected


@given(arrivals(), st.booleans(), st.sampled_from(WAYS[:4]), st.sets(st.integers(0, 24)))
@settings(max_examples=tries(80))
def test_recent_pairs_each_first_tuple_once(given_: Arrivals, checked: bool, way: Options, cuts: set[int]) -> None:
    where = "AND x.v + y.v > 12" if checked else ""
    source = "a AS x OVER (UNLIMITED PRECEDING) KEY JOIN, b AS y"
    query = f"SELECT x.v, y.v AS w FROM {source} WHERE SEQ(x, y) MODE RECENT AND x.k = y.k {where}"
    expected = sorted(recent_once(given_, lambda one, other: not checked or one[1] + other[1] > 12))
    assert result(query, given_, way, cuts) == expected


def test_used_tuples_leave_the_state() -> None:
    query = "SELECT x.v FROM a AS x OVER (UNLIMITED PRECEDING) KEY JOIN, b AS y WHERE x.k = y.k"
    given_ = [(0, (1, 1, 1)), (0, (2, 2, 2)), (1, (1, 3, 3)), (1, (1, 4, 4))]
    mill = LocalMill()
    mill.execute(STREAMS)
    mill.add_query("q", query)
    for side, row in given_:
        mill.insert("ab"[side], [row])
    mill.punctuate("a", "[*, *, < 5]")
    mill.batch()
    assert mill.take_rows("q").rows() == [(1,)]
    assert mill.state_rows("q") == 1


def test_a_condition_above_the_join_uses_no_other_pair() -> None:
    inner = "SELECT x.v AS v, y.v AS w FROM a AS x OVER (RANGE 9 PRECEDING) KEY JOIN, b AS y WHERE x.k = y.k"
    given_ = [(0, (1, 1, 1)), (1, (1, 3, 3)), (1, (1, 4, 4))]
    assert result(f"SELECT v, w FROM ({inner}) AS j WHERE w > 3", given_, Options(), set()) == []


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("SELECT v FROM a OVER (RANGE 5 PRECEDING) KEY JOIN", "KEY JOIN needs a join of two streams"),
        ("SELECT x.v FROM a x OVER (RANGE 5 PRECEDING) KEY JOIN LEFT JOIN b y ON x.k = y.k", "in an outer join"),
        ("SELECT x.v FROM a x OVER (RANGE 5 PRECEDING) KEY JOIN, b y, a z WHERE x.k = y.k AND y.k = z.k", "of three"),
        ("SELECT x.k FROM n x OVER (ROWS 5 PRECEDING) KEY JOIN, n y WHERE x.k = y.k", "in the order of time"),
    ],
)
def test_what_is_not_available_is_refused(query: str, message: str) -> None:
    mill = LocalMill()
    mill.execute(f"{STREAMS}; CREATE STREAM n (k BIGINT, v BIGINT)")
    with pytest.raises(PlanError, match=message):
        mill.add_query("q", query)
