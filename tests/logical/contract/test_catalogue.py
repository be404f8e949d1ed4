"""The catalogue of contracts: each realizable one is offered by our operators, the others are not.

A contract is offered if the inputs bound the state, and punctuation that is passed on covers each template of the
output: an operator that passes on more may drop the rest.
"""

from __future__ import annotations

import pytest

from millstream.algebra.punctuation.scheme import covered
from millstream.algebra.punctuation.template import Template
from millstream.logical.contract.accordance import Agreed, accordance
from millstream.logical.contract.offers import Declarations
from millstream.optimizer import optimize
from tests.logical.sample import bind, catalog_of

SELECT = "SELECT a, b, c FROM s WHERE c > 1"
JOIN = "SELECT s.a, s.b, t.c FROM s JOIN t ON s.b = t.b"
COUNT = "SELECT {0}, COUNT(*) AS n FROM s GROUP BY {0}"
ABC, AB, BC = ("(a BIGINT, b BIGINT, c BIGINT)", "(a BIGINT, b BIGINT)", "(b BIGINT, c BIGINT)")


def agreed(query: str, *streams: tuple[str, str, str]) -> Agreed:
    catalog = catalog_of(";".join(f"CREATE STREAM {name} {columns} {schemes}" for name, columns, schemes in streams))
    return accordance(optimize(bind(query, catalog), catalog), Declarations.of(catalog))


def on(*templates: str) -> str:
    return " ".join(f"PUNCTUATED ON ({template})" for template in templates)


def s(*templates: str, columns: str = ABC) -> tuple[str, str, str]:
    return "s", columns, on(*templates)


def t(*templates: str, columns: str = BC) -> tuple[str, str, str]:
    return "t", columns, on(*templates)


OFFERED = {
    "CT1": (SELECT, [s("a +")], [Template.of(a="+")]),
    "CT2": (SELECT, [s("a +", "b #")], [Template.of(a="+"), Template.of(b="#")]),
    "CT3": (SELECT, [s("a +", "b #")], [Template.of(a="+")]),
    "CT4": (SELECT, [s("a +", "b #")], [Template.of(a="+", b="#")]),
    "GCF2, CT9": ("SELECT a FROM s", [s("a +", columns=AB)], [Template.of(a="+")]),
    "GCF3, CT5": (JOIN, [s("b +", columns=AB), t("b +")], [Template.of(b="+")]),
    "GCF4, CT11": (JOIN, [s("b #", columns=AB), t("b #")], [Template.of(b="#")]),
    "CT15": (
        "SELECT s.a, s.b, s.c, t.d FROM s JOIN t ON s.b = t.b AND s.c = t.c",
        [s("b +"), t("c +", columns="(b BIGINT, c BIGINT, d BIGINT)")],
        [Template.of(b="+", c="+")],
    ),
    "GCF5, CT16": (
        "SELECT window_end, COUNT(*) AS n FROM s [RANGE 10 ON b]",
        [s("b +", columns=AB)],
        [Template.of(window_end="+")],
    ),
    "GCF6, CT17": (COUNT.format("a"), [s("a +", columns=AB)], [Template.of(a="#")]),
    "GCF6 of two keys": (COUNT.format("a, b"), [s("a +, b +")], [Template.of(a="#", b="#")]),
    "GCF7, CT18": (COUNT.format("a"), [s("a #", columns=AB)], [Template.of(a="#")]),
    "GCF8, CT19": (COUNT.format("a"), [s("a +", "a #", columns=AB)], [Template.of(a="#")]),
    "GCF9": (COUNT.format("a"), [s("a +", columns=AB)], [Template.of(a="+")]),
    "several groups, one punctuated": (COUNT.format("a, b"), [s("a +")], [Template.of(a="+")]),
    "UNION": (
        "SELECT b FROM s UNION ALL SELECT b FROM t",
        [s("b +", columns=AB), t("b +")],
        [Template.of(b="+")],
    ),
    "outer join": (
        "SELECT s.a, s.b, t.c FROM s LEFT JOIN t ON s.b = t.b",
        [s("b #", columns=AB), t("b #")],
        [Template.of(b="#")],
    ),
    "join of three": (
        "SELECT s.a, s.b, t.c, u.d FROM s JOIN t ON s.b = t.b JOIN u ON t.b = u.b",
        [s("b #", columns=AB), t("b #"), ("u", "(b BIGINT, d BIGINT)", on("b #"))],
        [Template.of(b="#")],
    ),
    "distinct": ("SELECT DISTINCT a, b FROM s", [s("b #", columns=AB)], [Template.of(b="#")]),
    "sequence": (
        "SELECT s.b, t.c FROM s, t WHERE SEQ(s, t) MODE CHRONICLE AND s.b = t.b",
        [s("b #", columns=AB), t("b #")],
        [Template.of(b="#")],
    ),
    "OVER": (
        "SELECT a, b, COUNT(*) OVER (PARTITION BY b ROWS 5 PRECEDING) AS n FROM s",
        [s("b #", columns=AB)],
        [Template.of(b="#")],
    ),
}


@pytest.mark.parametrize("name", OFFERED)
def test_realizable_contracts_are_offered(name: str) -> None:
    query, streams, promised = OFFERED[name]
    found = agreed(query, *streams)
    assert found.contract is not None and not found.unbounded(), found.unbounded()
    passed = [offer.template for offer in found.offers.templates if not offer.seen]
    assert all(any(covered(wanted, own) for own in passed) for wanted in promised), found.offers


def test_a_selection_cannot_close_what_its_input_does_not() -> None:
    """CT6: bounds on `a` close no single value of `b`."""
    found = agreed(SELECT, s("a +"))
    assert [str(offer.template) for offer in found.offers.templates] == ["(a +)"]


def test_a_join_is_not_bounded_by_other_columns() -> None:
    """CT12: punctuation on columns that are not joined purges nothing."""
    found = agreed(JOIN, s("a #", columns=AB), t("c #"))
    assert found.contract is None and len(found.unbounded()) == 2
    assert found.refused is not None and (found.refused.reader, found.refused.antecedents) == (3, (2,))


def test_the_projection_of_the_example_passes_feedback_on() -> None:
    """CT20: feedback on `b` is translated, and its guards end with punctuation on `b`."""
    found = agreed("SELECT a, b FROM s", s("b +"))
    assert found.contract is not None and found.contract.exploits
    assert str(found.contract.feedback_in) == str(found.contract.feedback_out[0]) == "{(b +)}"


MESSAGES = "(ts BIGINT, source BIGINT, dest BIGINT)"
RATIO = """
SELECT l.window_end, l.source, l.dest, l.n * 1.0 / r.n AS ratio
FROM (SELECT window_end, source, dest, COUNT(*) AS n FROM s [RANGE 60 SLIDE 60] GROUP BY source, dest) l
JOIN (SELECT window_end, source, dest, COUNT(*) AS n FROM t [RANGE 60 SLIDE 60] GROUP BY source, dest) r
ON l.window_end = r.window_end AND l.source = r.dest AND l.dest = r.source
"""


def test_the_message_ratio() -> None:
    rising = f"ORDER BY ts {on('ts +')}"
    found = agreed(RATIO, ("s", MESSAGES, rising), ("t", MESSAGES, rising))
    assert found.contract is not None
    assert Template.of(window_end="+") in {offer.template for offer in found.offers.templates}
    ended = agreed(
        RATIO,
        ("s", MESSAGES, f"{rising} {on('source #')}"),
        ("t", MESSAGES, f"{rising} {on('dest #')}"),
    )
    assert Template.of(source="#") in {offer.template for offer in ended.offers.templates}


def test_what_is_relied_on_suffices() -> None:
    found = agreed(JOIN, s("b #", "a #", columns=AB), t("b #", "c #"))
    assert found.declarations() == ("s PUNCTUATED ON (b #)", "t PUNCTUATED ON (b #)")
    counted = agreed(COUNT.format("a"), ("s", "(a BIGINT, ts BIGINT)", "ORDER BY ts"))
    assert counted.contract is None and counted.refused is not None
    window = agreed("SELECT COUNT(*) AS n FROM s [RANGE 5]", ("s", "(a BIGINT, ts BIGINT)", "ORDER BY ts"))
    assert window.declarations() == ("s ORDER BY ts",)


def test_readers_of_a_shared_stream_rely_on_it_together() -> None:
    query = "SELECT x.a FROM s x JOIN s y ON x.a = y.b"
    found = agreed(query, s("a #", "b #", "c #"))
    scans = [node for node in found.walk() if not node.inputs]
    assert len(scans) == 2 and scans[0].relies == scans[1].relies
    assert found.declarations() == ("s PUNCTUATED ON (a #)", "s PUNCTUATED ON (b #)")
