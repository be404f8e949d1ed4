"""Responses of operators: translation, what is purged with which guard, switches, feedback that stops on its way."""

from __future__ import annotations

from typing import Any

import pytest

import millstream as ms
from millstream.algebra.feedback import Feedback, Intent, parse_feedback
from millstream.algebra.punctuation.pattern import Pattern, parse_pattern
from millstream.algebra.punctuation.restriction import above, below, compare, equal
from millstream.algebra.window_patterns import times_of
from millstream.algebra.windower import Hopping, tumbling
from millstream.config import Options
from millstream.control.mill import LocalMill
from millstream.errors import OptionError
from millstream.lang import ast, parse
from millstream.logical.bind import bind_select
from millstream.logical.plan import Plan
from tests.control.test_feedback import guards


def mill_with(query: str, **options: Any) -> LocalMill:
    mill = LocalMill(Options(**options))
    mill.execute("CREATE STREAM s (k BIGINT, v BIGINT, ts BIGINT) ORDER BY ts PUNCTUATED ON (ts +) PUNCTUATED ON (k #)")
    mill.add_query("q", query)
    return mill


def joined(kind: str = "JOIN") -> Plan:
    mill = LocalMill()
    mill.execute("CREATE STREAM a (a BIGINT, t BIGINT, id BIGINT); CREATE STREAM b (t BIGINT, id BIGINT, b BIGINT)")
    (statement,) = parse(f"SELECT * FROM a {kind} b ON a.t = b.t AND a.id = b.id")
    assert isinstance(statement, ast.SelectStatement)
    plan = mill.optimized(bind_select(statement.select, mill.catalog))
    return next(part for part in plan.walk() if len(part.inputs) == 2)


@pytest.mark.parametrize(
    ("pattern", "to_a", "to_b"),
    [
        ({"a.t": equal(3), "a.id": equal(4)}, "[id = 4, t = 3]", "[id = 4, t = 3]"),
        ({"a.a": equal(50)}, "[a = 50]", "None"),
        ({"a.a": equal(50), "b.b": equal(50)}, "None", "None"),
        ({"a.a": equal(50), "a.t": equal(3), "b.b": equal(50)}, "None", "None"),
        ({"a.a": equal(50), "b.t": equal(3)}, "[a = 50, t = 3]", "None"),
    ],
)
def test_a_join_passes_on_what_one_side_decides(pattern: dict[str, Any], to_a: str, to_b: str) -> None:
    response = joined().respond(Pattern.of(pattern))
    assert tuple(map(str, response.omitted)) == (to_a, to_b)


@pytest.mark.parametrize(
    ("kept", "pattern", "to_a", "to_b"),
    [
        ("LEFT", {"a.id": equal(4)}, "[id = 4]", "[id = 4]"),
        ("LEFT", {"a.id": equal(4), "a.t": equal(1)}, "[id = 4, t = 1]", "[id = 4, t = 1]"),
        ("LEFT", {"a.id": equal(4), "a.a": equal(1)}, "[a = 1, id = 4]", "None"),
        ("LEFT", {"b.id": equal(4)}, "None", "None"),
        ("RIGHT", {"b.id": equal(4)}, "[id = 4]", "[id = 4]"),
        ("FULL", {"a.id": equal(4)}, "None", "None"),
    ],
)
def test_an_outer_join_passes_keys_of_the_kept_side_on(
    kept: str, pattern: dict[str, Any], to_a: str, to_b: str
) -> None:
    response = joined(f"{kept} JOIN").respond(Pattern.of(pattern))
    assert tuple(map(str, response.omitted)) == (to_a, to_b)


def test_windows_become_times() -> None:
    """With windows of length 2 that end at 2, 4, …, the ends up to 8 and so on; with range 3 and slide 2, a tuple at 3
    is also in the window that ends at 6."""
    ends = [str(times_of(compare(op, 8), tumbling(2))) for op in ("<=", "<", ">", ">=")]
    assert ends == ["< 8", "< 6", ">= 8", ">= 6"]
    assert str(times_of(below(6), Hopping(3, 2))) == "< 3"
    assert str(times_of(above(6), Hopping(3, 2))) == ">= 6"
    assert str(times_of(equal(6), tumbling(2))) == "[4, 6)"


@pytest.mark.parametrize(
    ("said", "below"),
    [
        ("[window_end <= 30]", {"[pane_end <= 20]", "[ts < 20]"}),
        ("[window_end > 30]", {"[pane_end > 30]", "[ts >= 30]"}),
        ("[window_end in [20, 50]]", {"[pane_end (10, 40]]", "[ts [10, 40)]"}),
        ("[k = 1, window_end < 30]", {"[k = 1, pane_end <= 10]", "[k = 1, ts < 10]"}),
        ("[window_end = 30]", set()),
        ("[window_start < 30]", set()),
    ],
)
def test_windows_become_panes(said: str, below: set[str]) -> None:
    """A pane is dropped if all its windows are disclaimed: with its guard, in both aggregates."""
    mill = mill_with("SELECT window_start, window_end, k, SUM(v) AS total FROM s [RANGE 20 SLIDE 10] GROUP BY k")
    mill.insert("s", [(1, 1, 5), (1, 1, 15)])
    mill.feedback("q", f"~{said}")
    mill.batch()
    found = {guard.partition(": ")[2] for guard in guards(mill)}
    assert {text for text in found if "window" not in text} == below


def test_a_sum_over_panes_of_several_shards_stays_at_its_output() -> None:
    text = "SELECT window_end, SUM(v) AS total FROM (SELECT v, ts FROM s WHERE v > 1 UNION ALL SELECT k, ts FROM s) u "
    mill = mill_with(f"{text} [RANGE 6 SLIDE 2]", shards=2)
    mill.feedback("q", "~[total > 5]")
    mill.insert("s", [(1, 2, 1), (9, 1, 2)])
    mill.punctuate("s", "[*, *, < 20]")
    mill.batch()
    assert not mill.take_rows("q").filter(total=12).height


def test_the_punctuation_that_covers_a_guard_removes_it() -> None:
    mill = LocalMill()
    mill.execute("CREATE STREAM s (wid BIGINT, v BIGINT) PUNCTUATED ON (wid +) PUNCTUATED ON (wid #)")
    mill.add_query("q", "SELECT wid, v FROM s WHERE v > 0")
    mill.feedback("q", "~[wid < 2]")
    mill.punctuate("s", "[1, *]")
    mill.batch()
    assert guards(mill)
    mill.punctuate("s", "[< 3, *]")
    mill.batch()
    assert not guards(mill)


# --- purge and guard are one step -------------------------------------------------------------------------------------


@pytest.mark.parametrize("exploit", ["on", "guard", "off"])
@pytest.mark.parametrize("propagate", ["on", "on; windowaggregate: off"])
def test_a_group_is_purged_with_its_guard_or_not_at_all(exploit: str, propagate: str) -> None:
    """A guard alone would emit 10 for group 1, a purge alone 20; the result is 15."""
    mill = mill_with("SELECT k, AVG(v) AS mean FROM s GROUP BY k", exploit=exploit, propagate=propagate)
    mill.insert("s", [(1, 10, 1), (2, 1, 1)])
    mill.feedback("q", "~[k = 1]")
    mill.batch()
    below_the_sink = [guard for guard in guards(mill) if "WindowAggregate" in guard.partition(":")[0]]
    assert (mill.state_rows("q"), bool(below_the_sink)) == ((1, True) if exploit == "on" else (2, False))
    mill.insert("s", [(1, 20, 2)])
    mill.punctuate("s", "[1, *, *]", "[2, *, *]")
    mill.batch()
    assert mill.take_rows("q").rows() == [(2, 1.0)]


def test_a_join_may_keep_what_it_holds() -> None:
    """Of the responses of a join, `guard` drops later tuples only."""
    for exploit, state in (("on", 0), ("guard", 1), ("off", 1)):
        mill = LocalMill(Options(exploit=exploit, propagate="on; windowjoin: off"))
        mill.execute("CREATE STREAM l (k BIGINT, v BIGINT); CREATE STREAM r (k BIGINT, w BIGINT)")
        mill.add_query("q", "SELECT l.k, v, w FROM l JOIN r ON l.k = r.k")
        mill.insert("l", [(1, 1)])
        mill.feedback("q", "~[v = 1]")
        mill.insert("l", [(1, 1), (1, 2)])
        mill.insert("r", [(1, 5)])
        mill.batch()
        assert mill.take_rows("q").rows() == [(1, 2, 5)]
        assert mill.state_rows("q") == {0: 2, 1: 3}[state] + (exploit == "off")


# --- switches ---------------------------------------------------------------------------------------------------------


def guarded(mill: LocalMill) -> set[str]:
    """The kinds of operators that have guards, and 'sink'."""
    return {guard.partition(":")[0].partition("-")[0].strip("<") for guard in guards(mill)}


def test_switches_of_operators() -> None:
    text = "SELECT window_end, k, COUNT(*) AS n FROM s [RANGE 10] WHERE v > 0 GROUP BY k"
    everywhere = mill_with(text)
    everywhere.feedback("q", "~[k = 1]")
    everywhere.batch()
    stopped = mill_with(text, propagate="on; windowaggregate: off")
    stopped.feedback("q", "~[k = 1]")
    stopped.batch()
    relayed = mill_with(text, exploit="on; q.project: off")
    relayed.feedback("q", "~[k = 1]")
    relayed.batch()
    assert len(guards(everywhere)) == 4 and len(guards(stopped)) == 3 and len(guards(relayed)) == 3


def test_switches_hold_for_later_feedback_and_survive_a_restart() -> None:
    mill = mill_with("SELECT k, v FROM s WHERE v > 0")
    mill.set_option("propagate", "off")
    mill.set_option("exploit", "off")
    mill.feedback("q", "~[k = 1]")
    mill.batch()
    assert len(guards(mill)) == 1  # that of the sink always stays
    mill = mill.restarted()
    mill.feedback("q", "~[v = 2]")
    mill.batch()
    assert len(guards(mill)) == 2
    assert "exploit off, propagate off" in mill.execute("EXPLAIN FEEDBACK q")
    assert "Project: exploit off, propagate off" in mill.execute("EXPLAIN q")
    mill.execute("SET exploit = 'on'; SET propagate = 'on'")
    assert "exploit" not in mill.execute("EXPLAIN q")
    mill.feedback("q", "~[k = 2]")
    mill.batch()
    assert len(guards(mill)) > 2
    mill.insert("s", [(1, 1, 1), (2, 1, 1), (3, 1, 1)])
    mill.batch()
    assert mill.take_rows("q").rows() == [(3, 1)]


def test_having_gives_groups_up_if_the_aggregate_acts() -> None:
    mill = mill_with("SELECT k, COUNT(*) AS n FROM s GROUP BY k HAVING COUNT(*) < 2", exploit="off")
    mill.insert("s", [(1, 1, 1), (1, 1, 1), (2, 1, 1)])
    mill.batch()
    assert mill.state_rows("q") == 2
    mill.execute("SET exploit = 'on'")
    mill.batch()
    assert mill.state_rows("q") == 1
    mill.execute("SET exploit = 'off'")
    mill = mill.restarted()
    mill.insert("s", [(1, 1, 1), (2, 1, 1), (3, 1, 1)])
    mill.batch()
    assert mill.state_rows("q") == 2  # group 1 does not form again, group 2 is not given up
    mill.punctuate("s", "[1, *, *]", "[2, *, *]", "[3, *, *]")
    mill.batch()
    assert mill.take_rows("q").rows() == [(3, 1)] and mill.state_rows("q") == 0


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"exploit": "on; windowaggregate: off"}, "M6036"),
        ({"exploit": "on; q.windowaggregate: off"}, "M6036"),
        ({"exploit": "off; windowaggregate: on", "propagate": "on"}, None),
        ({"exploit": "off", "propagate": "off; over: on"}, "M6036"),
        ({"propagate": "on; windowaggregate: off", "exploit": "on; windowaggregate: off"}, None),
        ({"exploit": "on; select: off"}, None),
        ({"exploit": "on; q.union: off"}, "M6033"),
        ({"exploit": "on; nothing: off"}, "M6033"),
        ({"exploit": "perhaps"}, "M6002"),
    ],
)
def test_an_operator_must_act_on_what_it_passes_on(options: dict[str, str], code: str | None) -> None:
    mill = mill_with("SELECT k, COUNT(*) AS n FROM s GROUP BY k")
    try:
        for name, value in options.items():
            mill.set_option(name, value)
    except OptionError as error:
        assert error.code == code
    else:
        assert code is None


def test_switches_in_python() -> None:
    with ms.connect(local=True, exploit="off", propagate="off") as mill:
        assert mill.mill.options.exploit == "off"


# --- messages ---------------------------------------------------------------------------------------------------------


def test_feedback_that_stops_is_counted() -> None:
    mill = mill_with("SELECT k, AVG(v) AS mean FROM s GROUP BY k")
    mill.feedback("q", "~[mean > 5]")
    mill.feedback("q", "~[k = 1]")
    mill.batch()
    readings = {reading.kind: reading for reading in mill.statistics("q")[0].values()}
    assert (readings["WindowAggregate"].told, readings["WindowAggregate"].stopped) == (2, 1)


def test_what_all_readers_of_a_fork_say() -> None:
    schema = mill_with("SELECT k, v FROM s").schema("q")
    disclaimed, desired = (parse_feedback(text, schema) for text in ("~[k = 5]", "?[k = 5]"))
    assert disclaimed.at_fork([[]]) is None and desired.at_fork([[]]) is desired
    relayed = Feedback(Intent.ASSUMED, parse_pattern("[k = 5]", schema), relayed=True)
    assert disclaimed.covers(relayed) and not relayed.covers(disclaimed)


def test_desired_rows_come_first() -> None:
    """Of windows that close together, groups are in order; rows in the order of time keep it."""
    mill = mill_with("SELECT window_end, k, COUNT(*) AS n FROM s [RANGE 10] GROUP BY k")
    mill.add_query("all_rows", "SELECT k, ts FROM s")
    mill.execute("CREATE STREAM u (k BIGINT)")
    mill.add_query("latent", "SELECT k FROM u")
    mill.feedback("q", "?[k = 3]")
    mill.feedback("all_rows", "?[k = 3]")
    mill.feedback("latent", "?[k >= 3]")
    mill = mill.restarted()
    mill.insert("s", [(1, 1, 1), (2, 1, 2), (3, 1, 3)])
    mill.punctuate("s", "[*, *, < 30]")
    mill.insert("u", [(1,), (3,), (2,), (4,)])
    mill.batch()
    assert [row[1] for row in mill.take_rows("q").rows()] == [3, 1, 2]
    assert [row[0] for row in mill.take_rows("latent").rows()] == [3, 4, 1, 2]
    assert sorted(mill.take_rows("all_rows").rows()) == [(1, 1), (2, 2), (3, 3)]
