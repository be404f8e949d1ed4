"""The worked examples of the contracts framework, each with the test that runs it.

Names are those of the framework: T of worked examples, CT of contracts, GCF of general contract forms, F of features.
The tests of this file are those that stand nowhere else.
"""

from __future__ import annotations

import ast
import time
from itertools import product
from pathlib import Path

import pytest

from millstream.algebra.punctuation.restriction import ANY, Restriction, above, below, equal
from millstream.algebra.punctuation.template import Template
from millstream.logical.contract.accordance import accordance
from millstream.logical.contract.offers import Declarations
from millstream.optimizer import optimize
from tests.logical.contract.test_catalogue import AB, OFFERED, agreed, s
from tests.logical.sample import bind, catalog_of
from tests.paths import TRANSCRIPTS

TESTS = Path(__file__).parents[2]
SCHEMES = "algebra/punctuation/test_scheme.py"
CATALOGUE, SEARCH = "logical/contract/test_catalogue.py", "logical/contract/test_search.py"
OWN, RUNS = "logical/contract/test_examples.py", "control/test_contract_runs.py"

EXAMPLES = {
    "F26: templates, conformance (T18)": ("algebra/punctuation/test_template.py", "test_conformance"),
    "F27: obedience of a running stream": ("control/observe/test_promises.py", ""),
    "F29: guarantee 1, the output obeys": (RUNS, "test_propagated_punctuation_is_emitted"),
    "F29: guarantee 2A, no state for ever": (RUNS, "test_the_state_of_an_accepted_query_is_zero_in_the_end"),
    "F29: guarantee 2B, no guard for ever": (RUNS, "test_the_guards_of_a_thrifty_join_have_to_end"),
    "F29: guarantee 3, all correct output": ("control/test_invariance.py", ""),
    "F30: realizable contracts (CT1-CT5, CT9-CT11, CT15-CT19)": (CATALOGUE, "test_realizable_contracts_are_offered"),
    "F30: not realizable (CT6)": (CATALOGUE, "test_a_selection_cannot_close_what_its_input_does_not"),
    "F30: not realizable (CT12)": (CATALOGUE, "test_a_join_is_not_bounded_by_other_columns"),
    "F31: GCF1 and its instances (CT7, CT8)": (OWN, "test_a_selection_passes_on_any_scheme"),
    "F31: GCF2-GCF9 (CT13, CT14 are CT5 and CT11)": (CATALOGUE, "test_realizable_contracts_are_offered"),
    "F31: messages of a minute, of an ended process (T16, T17)": ("join/punctuated/message_ratio.transcript", ""),
    "F31: contracts of that plan": (CATALOGUE, "test_the_message_ratio"),
    "F32: one of six accordances (T20)": (SEARCH, "test_one_of_six_accordances_of_a_chain_is_consistent"),
    "F33: full reduction, brute force": (SEARCH, "test_brute_force_on_trees"),
    "F33: plans of 30 operators": (OWN, "test_a_plan_of_thirty_operators_is_analysed_at_once"),
    "F34: accept any, accept none (CT21)": (SEARCH, "test_well_formed_contracts"),
    "F35: the imputation plan, consistent and not (T21)": (SEARCH, "test_the_imputation_plan"),
    "F35: contracts with feedback (CT20)": (CATALOGUE, "test_the_projection_of_the_example_passes_feedback_on"),
    "F35: static coverage": (SCHEMES, "test_the_guard_of_the_example_is_covered"),
    "F35: guards that a punctuation covers (T23)": (OWN, "test_which_guard_a_punctuation_covers"),
    "F36: all cells of the match table (T22)": (SCHEMES, "test_what_an_antecedent_accepts"),
    "F37: algorithms 1 and 2, corrected": ("logical/contract/test_plans.py", "test_brute_force_over_all_contracts"),
    "F58: plan choice": ("optimizer/test_join_contracts.py", "test_an_order_that_has_an_accordance"),
    "F59: advice": ("logical/contract/test_advice.py", "test_each_alternative_suffices_and_is_minimal"),
    "F60: capacity": ("logical/contract/test_capacity.py", "test_bounds"),
    "F60: bounds beside the state held": ("control/observe/test_capacity.py", ""),
    "F63: plans that share operators": (SEARCH, "test_brute_force_on_plans_that_share_operators"),
    "F63: readers of one operator agree": (SEARCH, "test_the_readers_of_an_operator_must_agree"),
}


@pytest.mark.parametrize("example", EXAMPLES)
def test_every_example_has_a_test(example: str) -> None:
    file, name = EXAMPLES[example]
    if file.endswith(".transcript"):
        assert (TRANSCRIPTS / file).exists()
        return
    tree = ast.parse((TESTS / file).read_text(encoding="utf-8"))
    names = {node.name for node in tree.body if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")}
    assert name in names if name else names


def test_every_feature_and_every_contract_is_listed() -> None:
    features = {example.partition(":")[0] for example in EXAMPLES}
    assert features == {f"F{number}" for number in (26, 27, *range(29, 38), 58, 59, 60, 63)}
    offered = " ".join(OFFERED)
    assert all(form in offered for form in ("CT1", "CT2", "CT3", "CT4", "CT5", "CT9", "CT11", "CT15", "CT16", "CT19"))
    assert all(f"GCF{number}" in offered for number in range(2, 10))


SINGLETONS = [dict(zip("ab", classes, strict=True)) for classes in product("+#-", repeat=2) if classes != ("-", "-")]


@pytest.mark.parametrize("classes", SINGLETONS, ids=str)
def test_a_selection_passes_on_any_scheme(classes: dict[str, str]) -> None:
    """Eight of the nine schemes of one template over two attributes; the ninth promises nothing."""
    written = ", ".join(f"{name} {class_}" for name, class_ in classes.items() if class_ != "-")
    found = agreed("SELECT a, b FROM s WHERE b > 1", s(written, columns=AB))
    assert found.contract is not None
    assert {offer.template for offer in found.offers.templates} == {Template.of(**classes)}


U, V = 5, range(3, 8)
GUARDS = {"*": ANY, "=": equal(U), "<": below(U), "<=": below(U, closed=True), ">": above(U)}
GUARDS[">="] = above(U, closed=True)
COVERS = {
    "*": {"*": V, "=": V, "<": V, "<=": V, ">": V, ">=": V},
    "=": {"=": [U]},
    "<": {"=": [6, 7], "<": [5, 6, 7], "<=": [6, 7]},
    "<=": {"=": [5, 6, 7], "<": [5, 6, 7], "<=": [5, 6, 7]},
    ">": {"=": [3, 4], ">": [3, 4, 5], ">=": [3, 4]},
    ">=": {"=": [3, 4, 5], ">": [3, 4, 5], ">=": [3, 4, 5]},
}
"""By restriction of a punctuation and of a guard (by 5): the values with which the punctuation covers the guard."""


def restriction(kind: str, value: int) -> Restriction:
    closed = kind in ("<=", ">=")
    made = {"*": ANY, "=": equal(value)}
    return made[kind] if kind in made else (below if kind[0] == "<" else above)(value, closed=closed)


@pytest.mark.parametrize("kind", COVERS)
def test_which_guard_a_punctuation_covers(kind: str) -> None:
    """All 36 cells of the table."""
    for guard, record in GUARDS.items():
        found = [value for value in V if restriction(kind, value).covers(record)]
        assert found == list(COVERS[kind].get(guard, [])), guard


def test_a_plan_of_thirty_operators_is_analysed_at_once() -> None:
    streams = [f"s{number}" for number in range(10)]
    catalog = catalog_of(";".join(f"CREATE STREAM {name} (k BIGINT, v BIGINT) PUNCTUATED ON (k #)" for name in streams))
    parts = [f"(SELECT DISTINCT k, v FROM {name} WHERE v > 1) {name}" for name in streams]
    joined = "".join(f" JOIN {part} ON s0.k = {name}.k" for name, part in zip(streams[1:], parts[1:], strict=True))
    plan = optimize(bind(f"SELECT s0.k, COUNT(*) AS n FROM {parts[0]}{joined} GROUP BY s0.k", catalog), catalog)
    assert len(list(plan.walk())) >= 30
    spent = []
    for _ in range(3):
        began = time.process_time()
        assert accordance(plan, Declarations.of(catalog)).contract is not None
        spent.append(time.process_time() - began)
    assert min(spent) < 0.1
