"""Windows over windows: sums of sums are the direct sums, and are emitted at the same time.

Inner windows divide the outer ones, so both close by the same bounds on time. Queries over windows and over tuples run
side by side, and must have emitted the same rows after every batch.
"""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.config import Options
from millstream.control.mill import LocalMill
from tests.tries import tries

KINDS = {
    "ordered": "ORDER BY ts",
    "punctuated": "ORDER BY ts PUNCTUATED ON (ts +) PUNCTUATED ON (ts +, k #)",
    "watermarked": "ORDER BY ts WATERMARK FOR ts AS ts - 3",
}
WAYS = [
    Options(),
    Options(page_rows=1),
    Options(paned=False),
    Options(shards=3),
    Options(shards=2, page_rows=2),
    Options(strategy="bfs", page_rows=2),
    Options(strategy="rr", page_rows=2),
    Options(ets="punctuation"),
]


@dataclass(frozen=True)
class Case:
    kind: str
    pane: int
    between: int
    range: int
    slide: int
    batches: tuple[tuple[str, ...], ...]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    kind = draw(st.sampled_from(sorted(KINDS)))
    pane = draw(st.integers(1, 4))
    between = pane * draw(st.integers(1, 3))
    slide = between * draw(st.integers(1, 3))
    range_ = slide * draw(st.integers(1, 3))
    now, batches = draw(st.integers(-20, 0)), []
    for _ in range(draw(st.integers(1, 6))):
        lines = []
        for _ in range(draw(st.integers(0, 6))):
            now += draw(st.integers(0, 5))
            at = now - (0 if kind == "ordered" else draw(st.integers(0, 3)))
            row = f"{at} | {draw(st.integers(0, 2))} | {draw(st.integers(-5, 9))}"
            key = draw(st.integers(0, 2))
            closing = draw(st.sampled_from(["", "", f"[< {now - 3}, *, *]", f"[< {now}, {key}, *]"]))
            lines.append(closing if closing and kind == "punctuated" else row)
        batches.append(tuple(lines))
    return Case(kind, pane, between, range_, slide, tuple(batches))


def queries(case: Case) -> dict[str, str]:
    """Pairs of queries that mean the same: `x` over tuples, `x_rolled` over windows."""
    window = f"[RANGE {case.range} SLIDE {case.slide}]"
    inner = f"(SELECT window_end, k, SUM(v) AS v, COUNT(*) AS n FROM s [RANGE {case.pane}] GROUP BY k) AS w"
    middle = f"(SELECT k, SUM(v) AS v, SUM(n) AS n FROM {inner} [RANGE {case.between}] GROUP BY k) AS x"
    ends = f"(SELECT window_start, window_end, k, SUM(v) AS v FROM s {window} GROUP BY k) AS e"
    return {
        "keyed": f"SELECT window_end, k, SUM(v) AS v, COUNT(*) AS n FROM s {window} GROUP BY k",
        "keyed_rolled": f"SELECT window_end, k, SUM(v) AS v, SUM(n) AS n FROM {inner} {window} GROUP BY k",
        "all": f"SELECT window_start, SUM(v) AS v, COUNT(*) AS n FROM s {window}",
        "all_rolled": f"SELECT window_start, SUM(v) AS v, SUM(n) AS n FROM {middle} {window}",
        "by_start": f"SELECT window_start, SUM(v) AS v FROM s {window}",
        "by_start_rolled": f"SELECT window_start, SUM(v) AS v FROM {ends} GROUP BY window_start",
        "by_end": f"SELECT window_end, SUM(v) AS v FROM s {window}",
        "by_end_rolled": f"SELECT window_end, SUM(v) AS v FROM {ends} GROUP BY window_end",
    }


@pytest.mark.parametrize("way", range(len(WAYS)))
@settings(max_examples=tries(10))
@given(cases())
def test_sums_of_sums_are_the_direct_sums(way: int, case: Case) -> None:
    mill = LocalMill(WAYS[way].model_copy())
    mill.execute(f"CREATE STREAM s (ts BIGINT, k BIGINT, v BIGINT) {KINDS[case.kind]}")
    pairs = queries(case)
    for name, query in pairs.items():
        mill.add_query(name, query)
    for lines in (*case.batches, ("[< 10000, *, *]",), ("[*, *, *]",)):
        for line in lines:
            mill.feed_line("s", line)
        mill.batch()
        taken = {name: sorted(mill.take_rows(name).rows()) for name in pairs}
        for name in pairs:
            if not name.endswith("_rolled"):
                assert taken[name] == taken[f"{name}_rolled"], name
        shown = {name: {p for p in mill.take_punctuations(name) if p.attributes} for name in pairs}
        assert shown["keyed"] == shown["keyed_rolled"]
        assert not shown["all"] | shown["all_rolled"] | shown["by_start"] | shown["by_start_rolled"]
    assert all(mill.state_rows(name) == 0 for name in pairs)
