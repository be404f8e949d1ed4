"""Streams with different clocks: no operator that compares timestamps takes two that count in different units."""

from __future__ import annotations

import itertools

import pytest

from millstream.control.mill import LocalMill
from millstream.errors import MillstreamError
from millstream.logical.contract.accordance import accordance
from millstream.logical.contract.advice import alternatives
from millstream.logical.contract.names import compares_units
from millstream.logical.contract.offers import Declarations
from millstream.logical.contract.redeclare import redeclared
from tests.tries import rotated

KINDS = {
    "numbers": "(k BIGINT, ts BIGINT) ORDER BY ts",
    "loose": "(k BIGINT, ts BIGINT) ORDER BY ts WATERMARK FOR ts AS ts - 3",
    "times": "(k BIGINT, ts TIMESTAMP) ORDER BY ts",
    "stamped": "(k BIGINT) ORDER BY current_time",
    "latent": "(k BIGINT)",
}
UNITED = "(SELECT k FROM a UNION ALL SELECT k FROM b) u"
JOINED = "(SELECT a.k FROM a, b WHERE a.k = b.k) u"
COMPARING = [
    "SELECT a.k FROM a [RANGE 5], b [RANGE 5] WHERE a.k = b.k",
    "SELECT a.k FROM a [ROWS 5], b [ROWS 5] WHERE a.k = b.k",
    "SELECT a.k FROM a [NOW], b WHERE a.k = b.k",
    "SELECT a.k FROM a [RANGE 5] LEFT JOIN b [RANGE 5] ON a.k = b.k",
    "SELECT a.k FROM a LEFT JOIN b ON a.k = b.k LEFT JOIN b [RANGE 5] c ON a.k = c.k",
    "SELECT a.k FROM a, b, b [ROWS 4] c WHERE a.k = b.k AND b.k = c.k",
    "SELECT a.k FROM a OVER (UNLIMITED PRECEDING) KEY JOIN, b WHERE a.k = b.k",
    "SELECT a.k FROM a OVER (ROWS 3 PRECEDING), b WHERE a.k = b.k",
    "SELECT a.k FROM a [RANGE 5] THRIFTY JOIN b [RANGE 5] ON a.k = b.k",
    "SELECT a.k FROM a, b WHERE SEQ(a, b) MODE RECENT",
    "SELECT a.k FROM a, b WHERE SEQ(a, b) MODE RECENT AND a.k = b.k",
    "SELECT a.k FROM a, b WHERE SEQ(b, a) MODE CHRONICLE",
    "SELECT a.k FROM a, b WHERE SEQ(a, b) MODE CHRONICLE AND a.k = b.k",
    f"SELECT COUNT(*) AS n FROM {UNITED} [RANGE 5]",
    f"SELECT k, COUNT(*) OVER (ROWS 3 PRECEDING) AS n FROM {UNITED}",
    f"SELECT u.k FROM {UNITED}, b c WHERE SEQ(u, c) MODE RECENT",
    f"SELECT u.k FROM {UNITED} [RANGE 5], a c [RANGE 5] WHERE u.k = c.k",
    f"SELECT COUNT(*) AS n FROM {JOINED} [RANGE 5]",
    f"SELECT k, SUM(k) OVER (RANGE 3 PRECEDING) AS n FROM {JOINED}",
    f"SELECT u.k FROM {JOINED}, a c WHERE SEQ(c, u) MODE CHRONICLE",
    f"SELECT * FROM DENOISE(TABLE {JOINED.removesuffix(' u')}, DESCRIPTOR(k), 5, 1)",
]
ON_ARRIVAL = [
    "SELECT a.k FROM a, b WHERE a.k = b.k",
    "SELECT a.k FROM a FULL JOIN b ON a.k = b.k",
    "SELECT a.k FROM a, b, b c WHERE a.k = b.k AND b.k = c.k",
    "SELECT a.k, COUNT(*) AS n FROM a, b WHERE a.k = b.k GROUP BY a.k",
    "SELECT k FROM a UNION ALL SELECT k FROM b",
    f"SELECT k FROM {JOINED} UNION ALL SELECT k FROM a",
]


def mill(one: str, other: str, *, derived: bool) -> LocalMill:
    made = LocalMill()
    made.execute("SET contracts = 'off'")
    for name, kind in (("a", one), ("b", other)):
        made.execute(f"CREATE STREAM {name}{'0' if derived else ''} {KINDS[kind]}")
        if derived:
            made.execute(f"CREATE STREAM {name} AS SELECT k FROM {name}0 WHERE k < 100")
    return made


@pytest.mark.parametrize(("pair", "derived"), rotated(itertools.permutations(KINDS, 2), [False, True], 1))
def test_no_operator_compares_timestamps_in_different_units(pair: tuple[str, str], derived: bool) -> None:
    one, other = pair
    made = mill(one, other, derived=derived)
    differ = (one in ("numbers", "loose")) != (other in ("numbers", "loose"))
    for number, query in enumerate(COMPARING + ON_ARRIVAL):
        try:
            made.add_query(f"q{number}", query)
        except MillstreamError as error:
            if differ:
                assert error.code in ("M3009", "M3024", "M2018", "M3029", "M3045", "M3008"), query
                assert error.line is not None, query
            continue
        plan = made.query(f"q{number}").plan
        assert not (differ and query in COMPARING), query
        assert not compares_units(plan), query
        declarations = Declarations.of(made.catalog)
        for advised in alternatives(plan, declarations):
            assert not compares_units(redeclared(plan, advised.declarations)), query
        if query in COMPARING and {one, other} in ({"times", "latent"}, {"times", "stamped"}):
            waits = [p for n in accordance(plan, declarations).walk() for p in n.parts if p.name == "waiting"]
            both = [part.bounds[0] for part in waits if " and " in part.bounds[0]]
            assert all("keeps up with the clock" in bound for bound in both), query
