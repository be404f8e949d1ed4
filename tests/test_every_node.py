"""Every node of a plan is whole: all questions answered, a worker operator, a reference, a transcript, a docs page."""

from __future__ import annotations

import gc
import inspect
import sys
from collections.abc import Iterator
from functools import cache
from pkgutil import iter_modules

import pytest

from millstream.algebra.punctuation.pattern import Pattern
from millstream.algebra.punctuation.restriction import above, below, equal
from millstream.algebra.punctuation.template import Template
from millstream.algebra.response import Reach, Rule
from millstream.control import reports
from millstream.errors import MillstreamError
from millstream.lang import ast, parse
from millstream.lang.table.ast import Write
from millstream.logical import nodes
from millstream.logical.bind import bind_select
from millstream.logical.bind.table.relations import over_tables
from millstream.logical.catalog import Catalog
from millstream.logical.contract.feedback import covering, translated
from millstream.logical.contract.form import Outcome, Schemes, outcome
from millstream.logical.contract.offers import Offer, Offers, Time
from millstream.logical.contract.state_parts import GUARDS
from millstream.logical.nodes.kinds.common import Leaf
from millstream.logical.plan import NODES, Plan
from millstream.optimizer import optimize
from millstream.physical.plan import stages
from millstream.runtime.operator import capabilities
from millstream.runtime.operator.capabilities import AnswersProds, Reports
from millstream.runtime.operator.contract import Operator
from millstream.runtime.operator.registry import operator_for
from millstream.testing.transcript import Statement, parse_transcript
from tests.logical.sample import declare
from tests.paths import ROOT
from tests.reference.plan import MEANT

nodes.load()
OURS = {stem: node for stem, node in NODES.items() if node.__module__.startswith("millstream.")}
RUNNING = {stem: node for stem, node in OURS.items() if node.runs}


def subclasses(of: type[Plan]) -> Iterator[type[Plan]]:
    for made in of.__subclasses__():
        yield made
        yield from subclasses(made)


def test_every_node_has_a_stem_of_its_own() -> None:
    gc.collect()  # a dataclass with slots leaves the class behind that it was made from
    found = [made for made in subclasses(Plan) if made.__module__.startswith("millstream.")]
    found = [made for made in found if ".nodes.kinds." not in made.__module__]  # bases
    current = [made for made in found if getattr(sys.modules[made.__module__], made.__name__) is made]
    concrete = {made for made in current if not inspect.isabstract(made)}
    assert concrete and {made: NODES.get(made.__dict__.get("stem", "")) for made in concrete} == {
        m: m for m in concrete
    }


@pytest.mark.parametrize("stem", OURS)
def test_every_question_is_answered(stem: str) -> None:
    assert not OURS[stem].__abstractmethods__


@pytest.mark.parametrize("stem", OURS)
def test_a_worker_operator_is_registered(stem: str) -> None:
    """Leaves say themselves that no operator carries them out."""
    if issubclass(OURS[stem], Leaf):
        with pytest.raises(MillstreamError, match="no operator carries out"):
            operator_for(stem)
    else:
        assert issubclass(operator_for(stem), Operator)


WORKERS = {operator_for(stem).stem: operator_for(stem) for stem in OURS if not issubclass(OURS[stem], Leaf)}
"""The operators by their (first) stems."""


def test_a_report_has_a_driver_side() -> None:
    """An operator that reports has a module of its stem that takes or shows it, and there are no other modules."""
    reporting = {stem for stem, kind in WORKERS.items() if issubclass(kind, Reports)}
    modules = {module.name for module in iter_modules(reports.__path__)}
    assert reporting == modules == reports.kinds().keys()


def test_a_node_that_answers_prods_has_an_operator_that_does() -> None:
    for stem in (stem for stem, node in RUNNING.items() if node.asked is not Plan.asked):
        assert issubclass(operator_for(stem), AnswersProds)


def test_every_capability_is_listed_and_had() -> None:
    """The table of the module has all of them; each is had by some operator."""
    found = {kind for _, kind in inspect.getmembers(capabilities, inspect.isclass)}
    found = {kind for kind in found if kind.__module__ == capabilities.__name__}
    assert all(f"`{kind.__name__}`" in str(capabilities.__doc__) for kind in found)
    assert {kind for kind in found if any(issubclass(worker, kind) for worker in WORKERS.values())} == found


@pytest.mark.parametrize("folder", ["runtime/engine", "physical/shard"])
def test_engine_and_hosts_know_no_operator(folder: str) -> None:
    """They ask for capabilities."""
    modules = {kind.__module__ for kind in WORKERS.values()}
    for path in (ROOT / "src" / "millstream" / folder).glob("*.py"):
        assert not {module for module in modules if f"from {module} import" in path.read_text()}, path


@pytest.mark.parametrize("stem", RUNNING)
def test_there_is_a_tuple_at_a_time_reference(stem: str) -> None:
    assert stem in MEANT or stem == "scan"  # which has the rows of its stream


@pytest.mark.parametrize("stem", RUNNING)
def test_there_is_a_page(stem: str) -> None:
    page = ROOT / "docs" / "operators" / f"{RUNNING[stem].page or stem}.md"
    assert page.exists() and page.name in (page.parent / "README.md").read_text()


@pytest.mark.parametrize("stem", RUNNING)
def test_a_transcript_runs_it(stem: str) -> None:
    assert stem in run_by_transcripts()


@pytest.mark.parametrize("stem", RUNNING)
def test_it_says_how_it_responds_to_feedback(stem: str) -> None:
    """Rules say what is guarded, purged and passed on; one that passes nothing on says why."""
    rules = RUNNING[stem].rules
    assert rules and all(rule.when and bool(rule.why) == (rule.reach is Reach.NONE) for rule in rules)
    assert all(rule.passes for rule in rules if rule.reach is not Reach.NONE)


def test_the_response_to_any_pattern_is_one_of_the_rules() -> None:
    """Of all nodes of all plans in transcripts, to each column and to pairs of columns; all rules are used."""
    used: dict[str, set[Rule]] = {stem: set() for stem in RUNNING}
    for plan in transcript_plans():
        for node in plan.walk():
            names = [a.name for a in node.schema if a.type.is_integer]
            forms = [{n: r} for n in names for r in (above(1), below(1), equal(1))]
            for form in [*forms, *({a: equal(1), b: above(2)} for a in names for b in names if a < b)]:
                response = node.respond(Pattern.of(form))
                told = any(p is not None for p in response.omitted)
                assert response.rule in node.rules, (node, form, response)
                assert told == (response.rule.reach in (Reach.EVERY, Reach.SOME))
                used[node.stem].add(response.rule)
    unused = {stem: [rule.when for rule in RUNNING[stem].rules if rule not in found] for stem, found in used.items()}
    assert {stem: rules for stem, rules in unused.items() if rules and used[stem]} == {}


@cache
def transcribed() -> tuple[Plan, ...]:
    """The plans of all queries in transcripts."""
    paths = sorted((ROOT / "tests" / "transcripts").rglob("*.transcript"))
    return tuple(plan for path in paths for plan in planned(path.read_text()))


@cache
def run_by_transcripts() -> frozenset[str]:
    """The stems of all nodes in plans of queries in transcripts, on one shard and on several."""
    return frozenset(node.stem for plan in transcript_plans() for node in plan.walk())


@cache
def transcript_plans() -> tuple[Plan, ...]:
    """The plans of all parts of queries in transcripts, on one shard and on several."""
    parts = (part for plan in transcribed() for shards in (1, 3) for part in stages.parts("q", plan, shards))
    return tuple(dict.fromkeys(part.plan for part in parts))


SAMPLED = 12
"""Number of nodes of each stem whose contracts are tried."""


@cache
def samples() -> dict[str, list[Plan]]:
    """Nodes of plans in transcripts, by stem."""
    found: dict[str, list[Plan]] = {}
    for node in (node for plan in transcribed() for node in plan.walk()):
        if len(own := found.setdefault(node.stem, [])) < SAMPLED and node not in own:
            own.append(node)
    return found


def everything(plan: Plan) -> Offers:
    """Each column by single values and by bounds, as a primary key, two columns together, and time."""
    names = plan.schema.names
    offers = [Offer(Template(((name, class_),)), f"{name} {class_}") for name in names for class_ in "#+"]
    offers += [Offer(Template(((name, "#"),)), f"key {name}", seen=True) for name in names]
    pairs = [(a, b) for a in names[:3] for b in names[:3] if a != b]
    offers += [Offer(Template(((a, "#"), (b, "+"))), f"{a} # {b} +") for a, b in pairs]
    return Offers(Time.MOVES, ("time",), tuple(offers))


def fewer(inputs: Schemes, place: int) -> Iterator[Schemes]:
    """Take the promises of an input away, one after the other."""
    for step in (*reversed(inputs[place].templates), Time.ASKED, Time.STILL):
        own = inputs[place]
        less = own.at_most(step) if isinstance(step, Time) else own.without(step)
        inputs = (*inputs[:place], less, *inputs[place + 1 :])
        yield inputs


def tuples_alone(made: Outcome) -> Outcome:
    return Outcome(tuple(part for part in made.parts if part.name != GUARDS), made.out)


@pytest.mark.parametrize("stem", RUNNING)
def test_its_contract_form_is_monotone(stem: str) -> None:
    """An input that promises less bounds no more state, drains no more, and lets the node promise no more; guards
    aside, since it may also make the node send less feedback. The search for an accordance is exact because of it."""
    for node in samples().get(stem, []):
        most: Schemes = tuple(map(everything, node.inputs))
        for place in range(len(most)):
            more = tuples_alone(outcome(node, most))
            for inputs in fewer(most, place):
                less = tuples_alone(outcome(node, inputs))
                assert more.suffices(less, less.out), f"{node.describe()}: {inputs}"
                more = less


@pytest.mark.parametrize("stem", RUNNING)
def test_its_feedback_is_part_of_its_contract(stem: str) -> None:
    """Feedback that punctuation of its output covers is translated for each input, or not at all."""
    for node in samples().get(stem, []):
        accepted = covering(node.schema, everything(node))
        sent = node.feedback_sent(tuple(map(everything, node.inputs)))
        assert len(sent) == len(node.inputs) == len(translated(node, accepted))


def once(runs: ast.Runs, catalog: Catalog) -> bool:
    return over_tables(runs, catalog) or (isinstance(runs, Write) and runs.source is None)


def planned(transcript: str) -> Iterator[Plan]:
    catalog = Catalog()
    for step in parse_transcript(transcript):
        if not isinstance(step, Statement) or step.error is not None:
            continue
        for statement in parse(step.text):
            if getattr(statement, "replaces", False) and getattr(statement, "name", "") in catalog:
                catalog.drop("VIEW", statement.name)
            if not getattr(statement, "unless_exists", False) or getattr(statement, "name", "") not in catalog:
                declare(statement, catalog)
            if isinstance(statement, ast.Drop) and statement.kind.lower() != "query":
                catalog.drop(statement.kind, statement.name)
            if isinstance(statement, ast.SelectStatement | ast.CreateQuery) and not once(statement.select, catalog):
                yield optimize(bind_select(statement.select, catalog), catalog)
