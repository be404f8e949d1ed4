"""EXPLAIN CONTRACT: golden files, the rules one by one, hints that help, and the pages that show it.

A file `tests/golden/*.contract.txt` starts with the query; below stands its contract. To add one, write the query and
run the tests with MILLSTREAM_UPDATE_GOLDEN=1.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from millstream.control.mill import LocalMill
from millstream.logical.contract.accordance import Agreed, accordance
from millstream.logical.contract.offers import Declarations
from millstream.optimizer import optimize
from tests.logical.sample import GOLDEN, bind, catalog_of, explain_contract, sample_catalog
from tests.paths import DOCS

FILES = sorted(GOLDEN.glob("*.contract.txt"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name.removesuffix(".contract.txt"))
def test_golden(path: Path) -> None:
    query = path.read_text(encoding="utf-8").split("\n\n")[0].strip()
    catalog = sample_catalog()
    made = f"{query}\n\n{explain_contract(optimize(bind(query, catalog), catalog), catalog)}\n"
    if os.environ.get("MILLSTREAM_UPDATE_GOLDEN"):
        path.write_text(made, encoding="utf-8")
    assert made == path.read_text(encoding="utf-8")


def test_there_are_golden_contracts() -> None:
    assert len(FILES) >= 5


def contract(script: str, query: str, ets: str = "demand") -> Agreed:
    catalog = catalog_of(script)
    return accordance(optimize(bind(query, catalog), catalog), Declarations.of(catalog, ets))


STREAMS = "CREATE STREAM a (k BIGINT, x DOUBLE, ts BIGINT) {}; CREATE STREAM b (k BIGINT, x DOUBLE, ts BIGINT) {};"
TIMED, KEYED = "ORDER BY ts PUNCTUATED ON (ts +)", "ORDER BY ts PUNCTUATED ON (ts +) PUNCTUATED ON (k #)"


@pytest.mark.parametrize(
    ("first", "second", "query", "passed"),
    [
        (KEYED, "", "SELECT k AS key, x FROM a WHERE x > 1", "(key #), time"),
        (KEYED, "", "SELECT k + 1 AS k, ts FROM a", "(ts +), time"),
        (KEYED, TIMED, "SELECT k, ts FROM a UNION ALL SELECT k, ts FROM b", "(ts +), time"),
        (KEYED, "ORDER BY ts", "SELECT k, ts FROM a UNION ALL SELECT k, ts FROM b", "(ts +), time"),
        (KEYED, "PUNCTUATED ON (k +)", "SELECT k FROM a UNION ALL SELECT k FROM b", "(k #), time when asked"),
        ("PRIMARY KEY (k)", "PRIMARY KEY (k)", "SELECT k FROM a UNION ALL SELECT k FROM b", "time when asked"),
        (KEYED, KEYED, "SELECT b.k, a.ts FROM a JOIN b ON a.k = b.k", "(k #), (ts +), time"),
        (KEYED, TIMED, "SELECT b.k, b.ts FROM a JOIN b ON a.k = b.k", "(ts +), time"),
        ("ORDER BY ts", KEYED, "SELECT a.ts, b.k, b.ts FROM a, b WHERE SEQ(a, b) MODE RECENT", "(k #), (ts_1 +), time"),
        (KEYED, "", "SELECT k, COUNT(*) AS n FROM a GROUP BY k", "(k #), time"),
        (KEYED, "", "SELECT x, COUNT(*) AS n FROM a GROUP BY x", "nothing"),
        (KEYED, "", "SELECT k, window_end FROM a [RANGE 6 SLIDE 2] GROUP BY k", "(k #), (window_end +), time"),
        ("ORDER BY ts", "", "SELECT window_end, COUNT(*) AS n FROM a [RANGE 6]", "time"),
        (
            "PUNCTUATED ON (k +)",
            "",
            "SELECT window_end, COUNT(*) FROM a [RANGE 6 ON k]",
            "(window_end +), time when asked",
        ),
    ],
)
def test_what_is_passed_on(first: str, second: str, query: str, passed: str) -> None:
    said = str(contract(STREAMS.format(first, second), query).offers)
    assert set(re.split(r", (?![^(]*\))", said)) == set(re.split(r", (?![^(]*\))", passed))


def test_a_key_that_may_be_nan_is_not_closed() -> None:
    script = STREAMS.format("PUNCTUATED ON (x #)", "PUNCTUATED ON (x #)")
    assert len(contract(script, "SELECT a.k FROM a JOIN b ON a.x = b.x").unbounded()) == 2
    assert not contract(script, "SELECT DISTINCT x FROM a").unbounded()


def test_an_equality_of_expressions_is_no_key_and_the_hint_says_so() -> None:
    script = STREAMS.format("PUNCTUATED ON (k #)", "PUNCTUATED ON (k #)")
    catalog = catalog_of(script)
    computed = optimize(bind("SELECT a.k FROM a JOIN b ON a.k + 1 = b.k", catalog), catalog)
    hint = "make both sides of ((a.k + 1) = b.k) columns of one type, in a subquery of FROM, or add a ROWS window to a"
    assert f"hint: {hint}" in explain_contract(computed, catalog)
    column = contract(script, "SELECT x.k FROM (SELECT k + 1 AS k FROM a) x JOIN b ON x.k = b.k")
    assert len(column.unbounded()) == 1


@pytest.mark.parametrize("declared", ["ORDER BY ts", TIMED, "ORDER BY ts WATERMARK FOR ts AS ts - 3"])
@pytest.mark.parametrize(
    "query",
    [
        "SELECT window_start, SUM(n) AS n FROM {w} GROUP BY window_start",
        "SELECT window_end, SUM(n) AS n FROM {w} GROUP BY window_end",
        "SELECT window_time, SUM(n) AS n FROM {w} GROUP BY window_time",
        "SELECT window_end, SUM(n) AS n FROM {w} [RANGE 10]",
        "SELECT window_end, SUM(n) AS n FROM {w} [RANGE 10 ON window_end]",
        "SELECT DISTINCT window_start FROM {w}",
        "SELECT w.k FROM {w} JOIN {w2} ON w.window_start = v.window_start",
        "SELECT w.k FROM {w} JOIN {w2} ON w.window_end BETWEEN v.window_end - 5 AND v.window_end",
    ],
)
def test_windows_close_their_ends_and_their_starts(declared: str, query: str) -> None:
    inner = "(SELECT window_start, window_end, window_time, k, COUNT(*) AS n FROM {} [RANGE 5] GROUP BY k) {}"
    written = query.format(w=inner.format("a", "w"), w2=inner.format("b", "v"))
    assert not contract(STREAMS.format(declared, declared), written).unbounded()


def test_time_without_windows_stops_where_groups_stay_open() -> None:
    over = "SELECT window_end, COUNT(*) AS n FROM (SELECT {0}, MAX(ts) AS t FROM a GROUP BY {0}) g [RANGE 6]"
    assert not contract(STREAMS.format(KEYED, ""), over.format("k")).unbounded()
    assert len(contract(STREAMS.format(KEYED, ""), over.format("x")).unbounded()) == 2


HINTED = [
    ("ORDER BY ts", "ORDER BY ts", "SELECT a.x FROM a JOIN b ON a.k = b.k"),
    ("PRIMARY KEY (k)", "PUNCTUATED ON (k #)", "SELECT a.x FROM a JOIN b ON a.k = b.k"),
    ("ORDER BY ts", "ORDER BY ts PUNCTUATED ON (k #)", "SELECT k FROM a UNION ALL SELECT k FROM b"),
    ("ORDER BY ts", "", "SELECT DISTINCT k FROM (SELECT k FROM a WHERE x > 1) u"),
    ("ORDER BY ts", "ORDER BY ts", "SELECT DISTINCT k FROM (SELECT k FROM a UNION ALL SELECT k FROM b) u"),
    ("PUNCTUATED ON (k #)", "", "SELECT x, COUNT(*) AS n FROM a GROUP BY x"),
    ("", "ORDER BY current_time", "SELECT a.k FROM a [RANGE 5 SECONDS] JOIN b [RANGE 5 SECONDS] ON a.k = b.k"),
    ("ORDER BY ts", "ORDER BY ts", "SELECT a.x FROM a, b WHERE SEQ(a, b) MODE CHRONICLE AND a.k = b.k"),
    ("", "", "SELECT COUNT(*) AS n FROM a [RANGE 6 ON k]"),
]


@pytest.mark.parametrize(("first", "second", "query"), HINTED)
def test_following_the_hints_bounds_the_state(first: str, second: str, query: str) -> None:
    clauses = {"a": first, "b": second}
    for _ in range(4):
        catalog = catalog_of(STREAMS.format(clauses["a"], clauses["b"]))
        text = explain_contract(optimize(bind(query, catalog), catalog), catalog)
        found = re.search(r"hint: declare (.*)", text)
        if found is None:
            break
        for promised, stream in re.findall(r"((?:PUNCTUATED|ORDER)[^,]*?)(?: or [^,]*?)? on (\w+)", found[1]):
            clauses[stream] += f" {promised}"
    assert text.endswith("\ncontract: bounded"), text


SHOWN = [
    pytest.param(DOCS / page, number, id=f"{page}-{number}")
    for page, count in (("contracts.md", 4), ("language.md", 1))
    for number in range(count)
]


@pytest.mark.parametrize(("page", "number"), SHOWN)
def test_contracts_in_the_docs(page: Path, number: int) -> None:
    text = page.read_text(encoding="utf-8")
    found = list(re.finditer(r"```\n(CREATE [^`]*?;\nEXPLAIN CONTRACT [^`]*?;\n)\n(.*?)```", text, re.DOTALL))[number]
    said = LocalMill().execute(found[1]) + "\n"
    if os.environ.get("MILLSTREAM_UPDATE_GOLDEN"):
        page.write_text(text[: found.start(2)] + said + text[found.end(2) :], encoding="utf-8")
        return
    assert found[2] == said
