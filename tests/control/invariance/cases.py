"""Random queries with their input, and the outcome of a run: tuples, punctuations, moves of the clock and looks."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass

from hypothesis import assume
from hypothesis import strategies as st

from millstream.algebra.types import MICROS
from millstream.config import Options
from millstream.control.job.jobs import LocalJobs
from millstream.control.mill import LocalMill
from millstream.control.mill.draining import finish
from tests.control.invariance.queries import HELD, SHAPES, STREAMS, in_seconds, queries
from tests.time_kinds import IN_ORDER, KINDS

ADVANCE = "advance"
"""An element that moves the clock by its number of seconds, in place of a stream."""
LOOK = "look"
"""An element where the results so far are compared."""
END = 10_000
KEYS = (1, 3, 10)
"""Values of k that are on different shards, of two as of three."""
UNDECLARED = ("[*, 2, *]", "[*, {0, 5}, *]", "[*, < 3, *]", "[< 3, *, *]", "[{1, 3}, *, *]", "[3, 4, *]", "[*, *, *]")
"""Punctuation that no stream declares; the last one ends the stream."""
TABLE = [(0, "zero"), (1, "one"), (1, "uno"), (10, "ten")]


@dataclass(frozen=True)
class Case:
    kinds: tuple[str, str, str]
    query: str
    elements: tuple[tuple[str, str], ...]
    closing: bool = False


@st.composite
def cases(draw: st.DrawFn, shapes: tuple[str, ...] = SHAPES) -> Case:
    explicit = st.sampled_from([kind for kind in KINDS if kind not in ("latent", "internal")])
    skewed = st.sampled_from(["ordered", "skewed", "lagging"])
    alike = st.sampled_from([(kind,) * 3 for kind in ("ordered", "latent", "internal", "skewed")])
    shape = draw(st.sampled_from(shapes))
    kinds = draw(st.one_of(st.tuples(explicit, explicit, explicit), st.tuples(skewed, skewed, skewed), alike))
    if shape in ("joined windows", "windows and tuples") and "internal" in kinds:
        kinds = ("ordered",) * 3
    if shape in HELD and {"internal", "latent"} & {*kinds}:
        kinds = ("ordered",) * 3  # bounds on a column that is not the time would have to be declared
    # Some need an order that does not depend on arrival, some compare times with numbers.
    if shape in (
        "sequence",
        "key join",
        "joined windows",
        "windows and tuples",
        "denoise",
        "slots and tuples",
        "written table",
    ):
        kinds = tuple("ordered" if kind == "latent" else kind for kind in kinds)
    query = draw(queries(kinds, shape))
    if "internal" in kinds:
        query = in_seconds(query)
    assume(query.count("[ROWS 0]") < 2)  # there would never be a result
    elements: list[tuple[str, str]] = []
    now = 0
    for _ in range(draw(st.integers(0, 30))):
        if draw(st.integers(0, 3)) == 0:
            elements.append((ADVANCE, str(draw(st.integers(1, 4)))))
        if draw(st.integers(0, 5)) == 0:
            elements.append((LOOK, ""))
        number = draw(st.integers(0, 2))
        now += draw(st.integers(0, 3))
        jitter = 0 if kinds[number] in IN_ORDER else draw(st.integers(-3, 0))
        key = draw(st.sampled_from([*map(str, KEYS), "NULL"]))
        row = f"{key} | {draw(st.integers(0, 6))} | {now + jitter}"
        closing = draw(st.sampled_from(["", "", "", f"[*, *, < {now - 3}]", f"[{draw(st.sampled_from(KEYS))}, *, *]"]))
        use = closing if closing and kinds[number] == "punctuated" else row
        if draw(st.integers(0, 9)) == 0:
            use = draw(st.sampled_from(UNDECLARED))
        elements.append((STREAMS[number], use))
    return Case(kinds, query, tuple(elements), shape == "closed")


def begin(case: Case, mill: LocalMill) -> None:
    for name, kind in zip(STREAMS, case.kinds, strict=True):
        clause = "CLOSES s1 (k) BY (k)" if case.closing and name == "s2" else ""
        mill.execute(f"CREATE STREAM {name} (k BIGINT, v BIGINT, ts BIGINT) {KINDS[kind]} {clause}")
    mill.execute("CREATE TABLE t (k BIGINT, name VARCHAR)")
    mill.insert("t", TABLE)
    if "FROM d" in case.query:  # values of 4 and more do not fit
        derived = f"SELECT k, v * {1 << 61} AS v, ts FROM s1"
        mill.execute(f"CREATE STREAM d WITH (on_overflow = 'bad') AS {derived}")
    for table, options in (("w", ""), ("spread", "WITH (partitioned = true)")):
        if f"JOIN {table} " in case.query:
            mill.execute(f"CREATE TABLE {table} (k BIGINT PRIMARY KEY, v BIGINT) {options}")
            mill.execute(f"INSERT INTO {table} SELECT k, v FROM s2 ON CONFLICT DO UPDATE SET v = excluded.v")
    mill.add_query("q", case.query)


def outcome(
    case: Case, options: Options, seed: int, *, restart: bool = False, cached: bool = True
) -> tuple[list[Counter], Counter, list[int], list[int]]:
    """The rows between looks as bags, all punctuations as a bag, the state at each look and before the streams end, and
    the numbers of late tuples. Batches are cut at random."""
    chance = random.Random(seed)
    mill = LocalMill(options, jobs=LocalJobs(shards=options.shards, cached=cached))
    begin(case, mill)
    rows: list[Counter] = [Counter()]
    emitted: Counter = Counter()
    state: list[int] = []

    def take(*, looks: bool = True) -> None:
        mill.batch()
        if looks:
            finish(mill)  # how far work with a budget has come depends on the batches
        rows[-1].update(mill.take_rows("q").rows())
        emitted.update(map(str, mill.take_punctuations("q")))

    for stream, line in [*case.elements, *((name, f"[*, *, < {END}]") for name in STREAMS)]:
        if stream == ADVANCE:
            mill.advance(int(line) * MICROS)
        elif stream == LOOK:
            take()
            state.append(mill.state_rows("q"))
            rows.append(Counter())
        else:
            mill.feed_line(stream, line)
        if seed and chance.random() < 0.4:
            take(looks=False)
            if restart:
                mill = mill.restarted()
    take()
    state.append(mill.state_rows("q"))
    for name in STREAMS:
        mill.feed_line(name, "[*, *, *]")
    take()
    return rows, emitted, state, [mill.counts(name)["late"] for name in STREAMS]
