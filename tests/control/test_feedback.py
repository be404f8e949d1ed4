"""Assumed feedback: rows that are not wanted are not emitted, all others are, whatever the operators make of it.

Random queries (those of `test_invariance`) run beside equal ones that are told nothing. With SR the rows of those, S
the rows of the query that received feedback, and M the rows that match it: SR − M ⊆ S ⊆ SR, and nothing of M is emitted
after the feedback. At the end all state is as without feedback, and no guard is left.
"""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import millstream as ms
from millstream.algebra.feedback import parse_feedback
from millstream.algebra.punctuation.pattern import Pattern
from millstream.algebra.types import MICROS, Type
from millstream.config import Options
from millstream.control.job.jobs import LocalJobs
from millstream.control.job.local import LocalJob
from millstream.control.mill import LocalMill
from millstream.control.mill.draining import finish
from millstream.errors import BindError, PatternError
from tests.control.invariance.cases import ADVANCE, END, LOOK, Case, begin, cases
from tests.control.invariance.queries import STREAMS
from tests.control.test_invariance import WAYS
from tests.tries import tries

Told = tuple[int, int, str, tuple[int, int]]
"""The element after which feedback is given, the columns (by a number), a form, and two values."""
FORMS = ("= {0}", "< {0}", "<= {0}", "> {0}", ">= {0}", "in [{0}, {1}]", "in {{{0}, {1}}}")


SWITCHED = (
    ("on", "on"),
    ("guard", "on"),
    ("off", "on"),
    ("off", "off"),
    ("on", "off"),
    ("off; windowaggregate: on", "on"),
    ("on; project: off; select: off; windowjoin: off", "on"),
    ("on", "on; project: off; union: off"),
)
"""Switches `exploit` and `propagate`; an operator that must act on what it passes on does so, or passes nothing on."""


def pattern_of(mill: LocalMill, told: Told) -> str:
    """Feedback on one or two columns of the query."""
    _, which, form, values = told
    names = [a.name for a in mill.schema("q") if a.type in (Type.BIGINT, Type.INT, Type.DOUBLE)]
    chosen = dict.fromkeys([names[which % len(names)], *([names[which // 7 % len(names)]] if which % 3 else [])])
    parts: list[str] = []
    for name in chosen:
        low, high = (value * 8 if name in ("ts", "t", "window_end") else value for value in sorted(values))
        parts.append(f"{name} {form.format(low, high)}")
    return f"~[{', '.join(parts)}]"


def feedback_beside(mill: LocalMill, name: str, text: str) -> None:
    """Send feedback that is applied with the next elements, in one batch, as it happens on Spark."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mill, "take_effect", lambda: None)
        mill.feedback(name, text)


def guards(mill: LocalMill) -> list[str]:
    """The patterns of all guards, on all shards."""
    found: list[str] = []
    for job in mill.placements.jobs():
        assert isinstance(job, LocalJob)
        for shard in job._shards.values():
            readers = [reader for reader in shard.host.graph.readers() if reader.guard is not None]
            found += [f"{reader}: {pattern}" for reader in readers for pattern in reader.guard.patterns]
    return found


@given(
    cases(),
    st.lists(
        st.tuples(
            st.integers(0, 30),
            st.integers(0, 60),
            st.sampled_from(FORMS),
            st.tuples(st.integers(0, 4), st.integers(0, 4)),
        ),
        min_size=1,
        max_size=3,
    ),
    st.integers(1, 1000),
    st.sampled_from(sorted(WAYS)),
    st.lists(st.sampled_from(SWITCHED), min_size=1, max_size=3),
    st.booleans(),
)
@settings(max_examples=tries(120))
def test_rows_that_are_not_wanted(
    case: Case, said: list[Told], seed: int, way: str, switched: list[tuple[str, str]], beside: bool
) -> None:
    """`beside`: feedback is in one batch with the elements that follow it."""
    options, more = WAYS[way]
    chance = random.Random(seed)
    options = options.model_copy()
    mill = LocalMill(options, jobs=LocalJobs(shards=options.shards, cached=more.get("cached", True)))
    begin(case, mill)
    names = mill.schema("q").names
    if not any(a.type in (Type.BIGINT, Type.INT, Type.DOUBLE) for a in mill.schema("q")):
        return
    mill.add_query("all_rows", case.query)
    got: Counter = Counter()
    everything: Counter = Counter()
    told: list[Pattern] = []

    def matching(row: tuple[Any, ...]) -> bool:
        return any(pattern.matches(dict(zip(names, row, strict=True))) for pattern in told)

    def take() -> None:
        mill.batch()
        rows = mill.take_rows("q").rows()
        assert not [row for row in rows if matching(row)]
        got.update(rows)
        everything.update(mill.take_rows("all_rows").rows())

    def tell(number: int) -> None:
        for each in said:
            if each[0] % (len(case.elements) + 1) == number:
                take()
                text = pattern_of(mill, each)
                for option, value in zip(("exploit", "propagate"), switched[len(told) % len(switched)], strict=True):
                    mill.set_option(option, value)
                (feedback_beside if beside else LocalMill.feedback)(mill, "q", text)
                told.append(parse_feedback(text, mill.schema("q")).pattern)

    for number, (stream, line) in enumerate([*case.elements, *((name, f"[*, *, < {END}]") for name in STREAMS)]):
        tell(number)
        if stream == ADVANCE:
            mill.advance(int(line) * MICROS)
        elif stream == LOOK:
            take()
        else:
            mill.feed_line(stream, line)
        if chance.random() < 0.4:
            take()
            if more.get("restart"):
                mill = mill.restarted()
    take()
    for name in STREAMS:
        mill.feed_line(name, "[*, *, *]")
    take()
    finish(mill)
    take()
    assert not got - everything
    missing = everything - got
    assert all(matching(row) for row in missing)
    assert mill.state_rows("q") == mill.state_rows("all_rows")
    assert "__late" in case.query or not guards(mill)  # late tuples have no punctuation


@given(
    cases(),
    st.lists(
        st.tuples(
            st.integers(0, 30),
            st.integers(0, 60),
            st.sampled_from(FORMS),
            st.tuples(st.integers(0, 4), st.integers(0, 4)),
        ),
        min_size=1,
        max_size=3,
    ),
    st.integers(1, 1000),
    st.sampled_from(sorted(WAYS)),
)
@settings(max_examples=tries(40))
def test_rows_that_are_wanted_first(case: Case, said: list[Told], seed: int, way: str) -> None:
    """The same bag of rows as without feedback, in the end the same state, and nothing remembered."""
    options, more = WAYS[way]
    chance, options = random.Random(seed), options.model_copy()
    mill = LocalMill(options, jobs=LocalJobs(shards=options.shards, cached=more.get("cached", True)))
    begin(case, mill)
    if not any(a.type in (Type.BIGINT, Type.INT, Type.DOUBLE) for a in mill.schema("q")):
        return
    mill.add_query("all_rows", case.query)
    got: dict[str, Counter] = {"q": Counter(), "all_rows": Counter()}

    def take() -> None:
        mill.batch()
        for name, rows in got.items():
            rows.update(mill.take_rows(name).rows())

    for number, (stream, line) in enumerate([*case.elements, *((name, f"[*, *, < {END}]") for name in STREAMS)]):
        for each in said:
            if each[0] % (len(case.elements) + 1) == number:
                mill.feedback("q", f"?{pattern_of(mill, each)[1:]}")
        if stream == ADVANCE:
            mill.advance(int(line) * MICROS)
        elif stream != LOOK:
            mill.feed_line(stream, line)
        if chance.random() < 0.4:
            take()
            assert got["q"] == got["all_rows"]
            if more.get("restart"):
                mill = mill.restarted()
    for name in STREAMS:
        mill.feed_line(name, "[*, *, *]")
    take()
    assert got["q"] == got["all_rows"]
    assert mill.state_rows("q") == mill.state_rows("all_rows")
    assert "__late" in case.query or not remembered(mill)


def remembered(mill: LocalMill) -> list[str]:
    """The feedback that readers have sent and that is not covered, on all shards."""
    graphs = [shard.host.graph for job in mill.placements.jobs() for shard in job._shards.values()]  # type: ignore[attr-defined]
    return [str(sent) for graph in graphs for buffer in graph.buffers() for sent in buffer.remembered.values()]


def mill_with(query: str, **options: Any) -> LocalMill:
    mill = LocalMill(Options(**options))
    mill.execute("CREATE STREAM s (k BIGINT, v BIGINT, ts BIGINT) ORDER BY ts PUNCTUATED ON (ts +) PUNCTUATED ON (k #)")
    mill.add_query("q", query)
    return mill


def test_punctuation_that_covers_a_guard_removes_it() -> None:
    mill = mill_with("SELECT k, v, ts FROM s WHERE v > 0")
    mill.feedback("q", "~[k = 5]")
    mill.feedback("q", "~[ts < 20]")
    mill.feedback("q", "~[k = 6, ts < 30]")
    mill.batch()
    assert len(guards(mill)) == 6  # at the sink, and before the selection
    mill.punctuate("s", "[6, *, *]")
    mill.batch()
    assert {guard.partition(": ")[2] for guard in guards(mill)} == {"[k = 5]", "[ts < 20]"}
    mill.punctuate("s", "[5, *, *]", "[*, *, < 20]")
    mill.batch()
    assert not guards(mill)


@pytest.mark.parametrize("pattern", ["[k = 5]", "[k = 5, ts < 40]", "[ts <= 18]"])
def test_feedback_after_its_punctuation_leaves_nothing(pattern: str) -> None:
    mill = mill_with("SELECT k, v, ts FROM s WHERE v > 0")
    mill.punctuate("s", "[5, *, *]", "[*, *, < 20]")
    mill.batch()
    mill.feedback("q", f"~{pattern}")
    mill.batch()
    assert not guards(mill)


def test_a_guard_is_part_of_the_checkpoint() -> None:
    mill = mill_with("SELECT window_end, k, COUNT(*) AS n FROM s [RANGE 10] GROUP BY k", shards=2)
    mill.insert("s", [(1, 1, 1), (2, 1, 1)])
    mill.feedback("q", "~[k = 1]")
    mill.batch()
    mill = mill.restarted()
    mill.insert("s", [(1, 1, 2), (2, 1, 2)])
    mill.punctuate("s", "[*, *, < 10]")
    mill.batch()
    assert mill.take_rows("q").rows() == [(10, 2, 2)]


@pytest.mark.parametrize("shards", [1, 2, 3])
def test_feedback_in_one_batch_with_rows_of_an_earlier_stage(shards: int) -> None:
    """The stage of the join omits tuples of the group from this batch on, so the aggregate may not emit the group."""
    mill = LocalMill(Options(shards=shards))
    joined = "SELECT a.g AS g, a.ts AS ts FROM s [RANGE 1] a JOIN u [RANGE 1] b ON a.k = b.k AND a.ts = b.ts"
    for name in "su":
        mill.execute(f"CREATE STREAM {name} (k BIGINT, g BIGINT, ts BIGINT) ORDER BY ts")
    mill.add_query("q", f"SELECT window_end, g, COUNT(*) AS n FROM ({joined}) [RANGE 10] GROUP BY g")
    assert len(mill.placement("q").parts) == min(shards, 2)
    for times in (range(1, 4), range(4, 25)):
        for name in "su":
            mill.insert(name, [(k, k % 2, ts) for ts in times for k in range(6)])
        mill.batch()
        if times.start == 1:
            feedback_beside(mill, "q", "~[g = 1]")
    assert sorted(mill.take_rows("q").rows()) == [(10, 0, 27), (20, 0, 30)]


def test_a_later_reader_of_a_shared_operator_gets_all_rows() -> None:
    mill = mill_with("SELECT k, v FROM s WHERE v > 0")
    mill.feedback("q", "~[k = 1]")
    mill.add_query("later", "SELECT k, v FROM s WHERE v > 0")
    mill.execute("CREATE QUERY shares WITH (start = 'shared') AS SELECT k, v FROM s WHERE v > 0")
    mill.insert("s", [(1, 1, 1), (2, 1, 1)])
    mill.batch()
    assert mill.take_rows("q").rows() == [(2, 1)]
    assert mill.take_rows("later").rows() == mill.take_rows("shares").rows() == [(1, 1), (2, 1)]
    mill.feedback("later", "~[k < 2]")
    mill.feedback("shares", "~[k <= 1]")
    mill.batch()
    assert len(guards(mill)) == 4  # three sinks, and what all of them ignore before the selection


def test_feedback_shows_in_progress() -> None:
    with ms.connect(local=True) as mill:
        mill.sql("CREATE STREAM s (k BIGINT, v BIGINT)")
        query = mill.sql("CREATE QUERY q AS SELECT k, v FROM s WHERE v > 0")
        query.feedback("~[k = 1]")
        mill.insert("s", [(1, 1), (2, 1), (1, 2)])
        assert query.take().rows() == [(2, 1)]
        assert "guards [k = 1]: 2 rows dropped" in str(query.progress())


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("~[nothing = 5]", "M4004"),
        ("~[k = five]", "M4007"),
        ("[k = 5]", "M4011"),
        *((f"{sign}[ ]", "M4011") for sign in "~?!"),
        ("~k = 5", "M4001"),
        ("![k = 5]", "M4015"),
    ],
)
def test_mistakes(text: str, code: str) -> None:
    mill = mill_with("SELECT k, v FROM s")
    with pytest.raises(PatternError) as caught:
        mill.feedback("q", text)
    assert caught.value.code == code
    with pytest.raises(BindError, match="M2092"):
        mill.feedback("nothing", "~[k = 5]")
