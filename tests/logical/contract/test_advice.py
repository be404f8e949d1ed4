"""Advice: what to declare, the weakest first; each alternative suffices, and none has a clause too many."""

from __future__ import annotations

import re

import pytest

from millstream.logical.contract.accordance import unbounded
from millstream.logical.contract.advice import Alternative, alternatives, declared_with
from millstream.logical.contract.offers import Declarations
from millstream.logical.contract.redeclare import redeclared
from millstream.optimizer import optimize
from tests.logical.sample import bind, catalog_of

STREAMS = (
    "CREATE STREAM b (k BIGINT, x DOUBLE, ts BIGINT) {1}; CREATE STREAM a (k BIGINT {2}, x DOUBLE, ts BIGINT) {0};"
)
JOIN = "SELECT a.x FROM a JOIN b ON a.k = b.k"


def advised(first: str, second: str, query: str, key: str = "") -> tuple[Alternative, ...]:
    catalog = catalog_of(STREAMS.format(first, second, key))
    return alternatives(optimize(bind(query, catalog), catalog), Declarations.of(catalog))


CASES = {
    ("PUNCTUATED ON (k #)", "", JOIN): ["declare PUNCTUATED ON (k #) on b"],
    ("", "", JOIN): ["declare PUNCTUATED ON (k #) on a and PUNCTUATED ON (k #) on b"],
    ("PUNCTUATED ON (k #)", "PRIMARY KEY (k)", JOIN): [
        "declare PUNCTUATED ON (k #) on b",
        "declare k REFERENCES b (k) on a",
    ],
    ("", "", "SELECT k, COUNT(*) AS n FROM a GROUP BY k"): ["declare PUNCTUATED ON (k #) on a"],
    ("", "", "SELECT k, x, COUNT(*) AS n FROM a GROUP BY k, x"): [
        "declare PUNCTUATED ON (k #) on a",
        "declare PUNCTUATED ON (x #) on a",
    ],
    ("", "", "SELECT COUNT(*) AS n FROM a [RANGE 6 ON k]"): ["declare PUNCTUATED ON (k +) on a"],
    ("ORDER BY ts", "", "SELECT DISTINCT k FROM a"): ["declare PUNCTUATED ON (k #) PUNCTUATED ON (ts +) on a"],
    ("ORDER BY ts", "ORDER BY ts PUNCTUATED ON (k #)", "SELECT k FROM a UNION ALL SELECT k FROM b"): [
        "declare PUNCTUATED ON (ts +) on b",
        "declare WATERMARK FOR ts on b",
    ],
    ("", "", "SELECT a.k FROM a, b WHERE SEQ(a, b) MODE CHRONICLE"): [],
    ("ORDER BY ts", "", "SELECT window_end, COUNT(*) AS n FROM a [RANGE 5]"): [],
}


@pytest.mark.parametrize("case", CASES, ids=[f"{c[2]} {c[0]} {c[1]}" for c in CASES])
def test_the_weakest_come_first(case: tuple[str, str, str]) -> None:
    assert [str(each) for each in advised(*case)] == CASES[case]


def test_advice_for_many_streams() -> None:
    """More clauses than sets are tried of."""
    catalog = catalog_of(";".join(f"CREATE STREAM s{n} (k BIGINT, v BIGINT)" for n in range(7)))
    query = "SELECT s0.v FROM s0 " + " ".join(f"JOIN s{n} ON s{n - 1}.k = s{n}.k" for n in range(1, 7))
    (found,) = alternatives(optimize(bind(query, catalog), catalog), Declarations.of(catalog))
    assert found.text == "declare " + " and ".join(f"PUNCTUATED ON (k #) on s{n}" for n in range(7))
    united = " UNION ALL ".join(f"SELECT k, v FROM s{n}" for n in range(7))
    plan = optimize(bind(f"SELECT DISTINCT k, v FROM ({united}) u", catalog), catalog)
    (found,) = alternatives(plan, Declarations.of(catalog))
    assert len(found.clauses) == 7 and {clause.strength for clause in found.clauses} == {0}


@pytest.mark.parametrize("case", [case for case, found in CASES.items() if found])
def test_each_alternative_suffices_and_is_minimal(case: tuple[str, str, str]) -> None:
    catalog = catalog_of(STREAMS.format(*case[:2], ""))
    plan, declarations = optimize(bind(case[2], catalog), catalog), Declarations.of(catalog)
    for each in alternatives(plan, declarations):
        clauses = {"a": case[0], "b": case[1]}
        for promised, stream in re.findall(r"((?:PUNCTUATED|WATERMARK).*?) on (\w+)", each.text):
            clauses[stream] += f" {promised}"
        key = "".join(re.findall(r"declare k (REFERENCES .*) on a", each.text))
        assert advised(clauses["a"], clauses["b"], case[2], key) == ()  # what the text says suffices
        for left in each.clauses:
            tried = declared_with(declarations, [clause for clause in each.clauses if clause != left])
            assert unbounded(redeclared(plan, tried), tried)
