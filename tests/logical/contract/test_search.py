"""The search for accordances: the worked examples, and brute force over random trees and DAGs."""

from __future__ import annotations

from itertools import product

from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.algebra.punctuation.scheme import ANY_FEEDBACK, NO_FEEDBACK, Scheme, accepts, covered
from millstream.algebra.punctuation.template import Template
from millstream.logical.contract.contract import Contract
from millstream.logical.contract.search import Accordance, Refusal, Vertex, _Search, search
from tests.tries import tries

RISING, SINGLE = Scheme.of(Template.of(a="+")), Scheme.of(Template.of(a="#"))
BOTH = Scheme(RISING.templates | SINGLE.templates)


def same(*schemes: Scheme) -> tuple[Contract, ...]:
    """Contracts that pass on what comes in."""
    return tuple(Contract((scheme,), scheme) for scheme in schemes)


def test_one_of_six_accordances_of_a_chain_is_consistent() -> None:
    lowest, middle, top = same(BOTH, RISING, SINGLE), same(RISING, SINGLE), same(RISING)
    sources = tuple(Contract((), contract.ins[0]) for contract in lowest)
    chain = [Vertex((), sources), Vertex((0,), lowest), Vertex((1,), middle), Vertex((2,), top)]
    assert len(list(product(lowest, middle, top))) == 6
    assert search(chain) == Accordance((Contract((), RISING), *(same(RISING) * 3)))
    left = _Search(chain, accepts).reduced([vertex.offering for vertex in chain])
    assert not isinstance(left, Refusal) and [len(each) for each in left] == [1, 1, 1, 1]


TIME = Scheme.of(Template.of(time="+"))


def imputation(impute: Contract) -> list[Vertex]:
    """DUPLICATE → two SELECTs, one of them → IMPUTE, both → PACE, which sends feedback on time."""
    select = Contract((TIME,), TIME, ANY_FEEDBACK, (NO_FEEDBACK,), exploits=False)
    pace = Contract((TIME, TIME), TIME, NO_FEEDBACK, (TIME, TIME))
    return [
        Vertex((), (Contract((), TIME, ANY_FEEDBACK),)),
        Vertex((0,), (select,)),
        Vertex((1,), (select,)),
        Vertex((1,), (select,)),
        Vertex((3,), (impute,)),
        Vertex((2, 4), (pace,)),
    ]


def test_the_imputation_plan() -> None:
    assert isinstance(search(imputation(Contract((TIME,), TIME, TIME, (NO_FEEDBACK,)))), Accordance)
    assert search(imputation(Contract((TIME,), TIME, NO_FEEDBACK, (NO_FEEDBACK,)))) == Refusal(5, 4)


def test_the_readers_of_an_operator_must_agree() -> None:
    shared = Vertex((), (Contract((), RISING), Contract((), SINGLE)))
    one, other = Vertex((0,), same(RISING)), Vertex((0,), same(SINGLE))
    both = Contract((RISING, SINGLE), BOTH)
    assert isinstance(search([shared, one, other, Vertex((1, 2), (both,))]), Refusal)
    apart = [shared, shared, one, Vertex((1,), same(SINGLE)), Vertex((2, 3), (both,))]
    assert isinstance(search(apart), Accordance)


def test_what_one_reader_excludes_excludes_contracts_of_another() -> None:
    shared = Vertex((), (Contract((), RISING), Contract((), SINGLE)))
    other = Vertex((0,), (Contract((SINGLE,), BOTH), Contract((RISING,), RISING)))
    root = Vertex((1, 2), (Contract((RISING, BOTH), BOTH), Contract((RISING, RISING), BOTH)))
    found = search([shared, Vertex((0,), same(RISING)), other, root])
    assert isinstance(found, Accordance) and found.contracts[2:] == (other.offering[1], root.offering[1])


def well_formed(contract: Contract, punctuation: Scheme) -> bool:
    """Whether the punctuation that its guards see covers all feedback that it exploits."""
    if contract.feedback_in is NO_FEEDBACK or not contract.exploits:
        return True
    if not isinstance(contract.feedback_in, Scheme):
        return any(not own.classes for own in punctuation.templates)  # it covers everything
    sent = contract.feedback_in.templates
    return all(any(covered(each, own) for own in punctuation.templates) for each in sent)


def test_well_formed_contracts() -> None:
    f = Scheme.of(Template.of(b="+"))
    accepting = Contract((f,), f, f, (f,))
    assert well_formed(accepting, f) and not well_formed(accepting, Scheme.of(Template.of(a="+")))
    assert well_formed(Contract((f,), f, ANY_FEEDBACK, (NO_FEEDBACK,), exploits=False), f)
    assert not well_formed(Contract((f,), f, ANY_FEEDBACK, (NO_FEEDBACK,)), f)


SCHEMES = st.sampled_from(["+", "#", "both"])
FEEDBACK = st.sampled_from([NO_FEEDBACK, NO_FEEDBACK, ANY_FEEDBACK, RISING, SINGLE])


@st.composite
def plans(draw: st.DrawFn) -> list[Vertex]:
    """A tree; the last vertex is the root, which reads all without a reader."""
    size, vertices, unread = draw(st.integers(2, 6)), list[Vertex](), list[int]()
    for place in range(size):
        wanted = draw(st.integers(0, min(2, len(unread)))) if place < size - 1 else len(unread)
        inputs = tuple(unread[-wanted:]) if wanted else ()
        unread = [each for each in unread if each not in inputs] + [place]
        ins, sent = st.tuples(*[SCHEMES] * len(inputs)), st.tuples(*[FEEDBACK] * len(inputs))
        contract = st.builds(Contract, ins, SCHEMES, FEEDBACK, sent)
        vertices.append(Vertex(inputs, tuple(draw(st.lists(contract, min_size=1, max_size=4)))))
    return vertices


@st.composite
def diamonds(draw: st.DrawFn) -> list[Vertex]:
    """A DAG: one or two sources, two to three operators that read them or each other, and a root that reads all of
    these. Most contracts of two operators fit, so that it often decides whether readers agree."""
    sources, middle = draw(st.integers(1, 2)), draw(st.integers(2, 3))
    scheme, sent = st.integers(0, 1), st.sampled_from([NO_FEEDBACK] * 6 + [RISING])
    vertices: list[Vertex] = []
    for place in range(sources + middle + 1):
        if place < sources:
            inputs: tuple[int, ...] = ()
        elif place < sources + middle:
            inputs = tuple(draw(st.lists(st.integers(0, place - 1), min_size=1, max_size=2, unique=True)))
        else:
            inputs = tuple(range(sources, sources + middle))
        ins, told = st.tuples(*[scheme] * len(inputs)), st.tuples(*[sent] * len(inputs))
        contract = st.builds(Contract, ins, scheme, st.sampled_from([ANY_FEEDBACK] * 3 + [RISING, NO_FEEDBACK]), told)
        vertices.append(Vertex(inputs, tuple(draw(st.lists(contract, min_size=2, max_size=4)))))
    return vertices


def consistent(vertices: list[Vertex], chosen: tuple[Contract, ...]) -> bool:
    return all(
        chosen[below].out == reader.ins[at] and accepts(chosen[below].feedback_in, reader.feedback_out[at])
        for vertex, reader in zip(vertices, chosen, strict=True)
        for at, below in enumerate(vertex.inputs)
    )


def every_accordance(vertices: list[Vertex]) -> list[tuple[Contract, ...]]:
    return [chosen for chosen in product(*(v.offering for v in vertices)) if consistent(vertices, chosen)]


@settings(max_examples=tries(300))
@given(plans())
def test_brute_force_on_trees(vertices: list[Vertex]) -> None:
    every, found = every_accordance(vertices), search(vertices)
    left = _Search(vertices, accepts).reduced([vertex.offering for vertex in vertices])
    if isinstance(found, Refusal):
        assert not every and isinstance(left, Refusal)
        return
    assert found.contracts in every and not isinstance(left, Refusal)
    for place, offering in enumerate(left):  # the full reduction: just the contracts of some accordance
        assert set(offering) == {chosen[place] for chosen in every}


@settings(max_examples=tries(300))
@given(diamonds())
def test_brute_force_on_plans_that_share_operators(vertices: list[Vertex]) -> None:
    every, found = every_accordance(vertices), search(vertices)
    assert (found.contracts in every) if isinstance(found, Accordance) else not every
