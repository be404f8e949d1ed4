"""State tables against a plain list of rows, and what they tell a checkpoint."""

from __future__ import annotations

from operator import itemgetter
from typing import Any

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.runtime.state import StateTable

SCHEMA = {"n": pl.Int64(), "s": pl.String()}
rows = st.lists(st.tuples(st.integers(0, 9), st.sampled_from(["a", "b", None])), max_size=4)
ascending = rows.map(lambda made: sorted(made, key=itemgetter(0)))
actions = st.one_of(
    st.tuples(st.just("append"), rows | ascending),
    st.tuples(st.just("below"), st.integers(0, 10)),
    st.tuples(st.just("keep"), st.integers(0, 2)),
    st.tuples(st.just("purge"), st.integers(0, 9)),
    st.tuples(st.just("replace"), rows),
    st.tuples(st.just("frame"), st.none()),
    st.tuples(st.just("checkpoint"), st.none()),
)


def frame(made: list[tuple[Any, ...]]) -> pl.DataFrame:
    return pl.DataFrame(made, schema=SCHEMA, orient="row")


@settings(max_examples=100, deadline=None)
@given(st.lists(actions, max_size=60), st.booleans())
def test_against_a_list(given: list[tuple[str, Any]], clock: bool) -> None:
    table, model = StateTable(SCHEMA), []
    saved: dict[int, pl.DataFrame] = {}
    time = 0
    for action, value in given:
        if action == "append":
            if clock:  # rows that never fall, as ordered streams bring them
                value = [(time + number, text) for number, text in sorted(value, key=itemgetter(0))]
                time = value[-1][0] if value else time
            table.append(frame(value).select("s", "n"))
            model += value
        elif action == "below":
            gone = [row for row in model if row[0] < value]
            assert table.purge_below("n", value) == len(gone)
            model = [row for row in model if row[0] >= value]
        elif action == "keep":
            mask = [row[0] % 3 != value for row in model]
            table.keep(pl.Series(mask, dtype=pl.Boolean))
            model = [row for row, kept in zip(model, mask, strict=True) if kept]
        elif action == "purge":
            removed = table.purge(pl.col("n") == value)
            assert removed.rows() == [row for row in model if row[0] == value]
            model = [row for row in model if row[0] != value]
        elif action == "replace":
            table.replace(frame(value))
            model = list(value)
        elif action == "frame":
            assert table.frame().rows() == model
        else:
            changes = table.changes()
            for key in changes.dropped:
                saved.pop(key, None)
            saved |= changes.put
            kept = [row for key in sorted(saved) for row in saved[key].rows()]
            assert kept == model
        assert len(table) == len(model)
    assert table.frame().rows() == model


def test_a_frame_handed_out_never_changes() -> None:
    table = StateTable(SCHEMA)
    table.append(frame([(1, "a")]))
    early = table.frame()
    table.append(frame([(2, "b")]))
    later = table.frame()
    table.append(frame([(3, "c")]), later.clone().extend(frame([(3, "c")])))
    table.purge_below("n", 2)
    assert early.rows() == [(1, "a")]
    assert later.rows() == [(1, "a"), (2, "b")]
    assert table.frame().rows() == [(2, "b"), (3, "c")]


def test_many_segments_become_one() -> None:
    table = StateTable(SCHEMA)
    for number in range(40):
        table.append(frame([(number, "x")]))
    assert len(table.changes().put) < 10
    assert table.purge_below("n", 38) == 38
    assert table.frame()["n"].to_list() == [38, 39]
