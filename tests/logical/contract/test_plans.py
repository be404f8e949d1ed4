"""The accordance of random plans against brute force over all contracts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain, combinations, product

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from millstream.algebra.punctuation.scheme import accepts
from millstream.errors import MillstreamError
from millstream.logical.contract.accordance import accordance
from millstream.logical.contract.feedback import covering
from millstream.logical.contract.form import outcome
from millstream.logical.contract.offers import Declarations, Offers, Time
from millstream.logical.nodes.scan import Scan
from millstream.logical.plan import Plan
from millstream.optimizer import optimize
from tests.control.test_contract_runs import EXTERNAL, KEYS, STAMPED, queries
from tests.logical.contract.test_search import well_formed
from tests.logical.sample import bind, catalog_of
from tests.tries import tries

COLUMNS = "(k BIGINT, v BIGINT, ts BIGINT)"
SLOW = [HealthCheck.filter_too_much, HealthCheck.too_slow]


@st.composite
def analysed(draw: st.DrawFn) -> tuple[Plan, Declarations]:
    kinds = draw(st.sampled_from([EXTERNAL, STAMPED, KEYS]))
    streams = "; ".join(f"CREATE STREAM {n} {COLUMNS} {draw(st.sampled_from(kinds))}" for n in ("s1", "s2"))
    catalog = catalog_of(streams)
    try:
        plan = optimize(bind(draw(queries(draw(st.integers(1, 2)))), catalog), catalog)
    except MillstreamError:
        assume(False)
        raise
    return plan, Declarations.of(catalog, draw(st.sampled_from(["demand", "heartbeat", "none"])))


def weaker(offers: Offers) -> Iterator[Offers]:
    """All schemes that promise no more."""
    kept = chain.from_iterable(combinations(offers.templates, size) for size in range(len(offers.templates) + 1))
    for templates, time in product(list(kept), (time for time in Time if time <= offers.time)):
        yield replace(offers.at_most(time), templates=templates)


def achieved(plan: Plan, declarations: Declarations) -> set[Offers]:
    """By brute force: the schemes of the output in all consistent accordances of a tree."""
    if isinstance(plan, Scan):
        return {each.bare for each in weaker(declarations.offers(plan))}
    found: set[Offers] = set()
    for inputs in product(*(achieved(input_, declarations) for input_ in plan.inputs)):
        made = outcome(plan, inputs)
        if made.bounded and made.out.bare not in found:
            found |= {each.bare for each in weaker(made.out.bare)}
    return found


@settings(max_examples=tries(60), suppress_health_check=SLOW)
@given(analysed())
def test_brute_force_over_all_contracts(case: tuple[Plan, Declarations]) -> None:
    plan, declarations = case
    assume(len(list(plan.walk())) <= 6)
    assert (accordance(plan, declarations).contract is not None) == bool(achieved(plan, declarations))


@settings(max_examples=tries(60), suppress_health_check=SLOW)
@given(analysed())
def test_an_accordance_is_consistent_and_its_contracts_are_well_formed(case: tuple[Plan, Declarations]) -> None:
    for node in accordance(*case).walk():
        if node.contract is None:
            continue
        assert well_formed(node.contract, covering(node.plan.schema, node.offers))
        for place, below in enumerate(node.inputs):
            assert below.contract is not None and below.contract.out == node.contract.ins[place]
            assert accepts(below.contract.feedback_in, node.contract.sent_to(place), strict=False)


@settings(max_examples=tries(100), suppress_health_check=SLOW)
@given(analysed())
def test_what_a_plan_relies_on_suffices(case: tuple[Plan, Declarations]) -> None:
    plan, declarations = case
    found = accordance(plan, declarations)
    kept = {node.plan: node.relies[0] for node in found.walk() if isinstance(node.plan, Scan)}

    def unbounded(at: Plan) -> tuple[Offers, int]:
        if isinstance(at, Scan):
            return kept[at], 0
        below = [unbounded(input_) for input_ in at.inputs]
        made = outcome(at, tuple(offers for offers, _ in below))
        return made.out, sum(count for _, count in below) + sum(not part.bounded for part in made.parts)

    assert unbounded(plan)[1] == len(found.unbounded())
