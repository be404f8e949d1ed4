"""The accordance of a plan: a contract for each operator, or the edge where none fits.

1. From the scans up, each operator gets the strongest schemes that its inputs can promise. If they do not bound its
   state, it offers no contract (`form`).
2. The offerings go through the search (`search`). An operator offers a contract that exploits all feedback whose guards
   end, and one that ignores feedback; its own choice of output scheme is the strongest.
3. From the root down, each operator gives up the promises of its inputs that nothing above relies on. The scheme of an
   operator with several readers is what they need together. What is left is the weakest accordance, and at the scans:
   the declarations that the query relies on.

Equal sub-plans are one operator, so a plan is a DAG.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Set
from dataclasses import dataclass, fields, replace
from functools import partial
from itertools import count
from typing import Any

from millstream.algebra.punctuation.scheme import ANY_FEEDBACK, NO_FEEDBACK, FeedbackScheme, Scheme, accepts
from millstream.logical.contract.contract import Contract
from millstream.logical.contract.feedback import covering, translated
from millstream.logical.contract.form import Outcome, Schemes, lacking, outcome, weakest
from millstream.logical.contract.known_input import known
from millstream.logical.contract.offers import Declarations, Offers
from millstream.logical.contract.search import Accordance, Offering, Refusal, Vertex, search
from millstream.logical.contract.state_parts import StatePart
from millstream.logical.nodes.scan import Scan
from millstream.logical.plan import Plan


@dataclass(frozen=True, slots=True)
class Agreed:
    """A node of the plan with its number, the parts of its state, what it promises the node above, and what it relies
    on: of each input, or for a scan of its declaration. `contract` is None if it has none, or the plan has no
    accordance."""

    plan: Plan
    number: int
    parts: tuple[StatePart, ...]
    offers: Offers
    relies: Schemes
    contract: Contract | None
    inputs: tuple[Agreed, ...]
    refused: Refused | None = None

    def walk(self) -> Iterator[Agreed]:
        """All nodes, inputs before the nodes that read them."""
        for input_ in self.inputs:
            yield from input_.walk()
        yield self

    def unbounded(self) -> dict[tuple[int, str], StatePart]:
        """The unbounded parts, by node number and part name."""
        return {(node.number, part.name): part for node in self.walk() for part in node.parts if not part.bounded}

    def declarations(self) -> tuple[str, ...]:
        """The declarations that the query relies on: those of its scans, and of nodes that make punctuation
        themselves."""
        found: dict[str, None] = {}
        for node in self.walk():
            if isinstance(node.plan, Scan):
                found |= dict.fromkeys(origin for offers in node.relies for origin in offers.origins)
            for input_, relied in zip(node.inputs, node.relies, strict=False):
                below = {origin for each in input_.inputs for origin in each.offers.origins}
                made = relied.origins if input_.plan.punctuates and not isinstance(input_.plan, Scan) else ()
                found |= dict.fromkeys(offer for offer in made if offer not in below and " and " not in offer)
        return tuple(found)


@dataclass(frozen=True, slots=True)
class Refused:
    """The number of the first operator without a contract, and those of the inputs that would have to promise more;
    none if no promise would do."""

    reader: int
    antecedents: tuple[int, ...]


def accordance(plan: Plan, declarations: Declarations) -> Agreed:
    """Return the accordance of a plan; nodes have the numbers that `EXPLAIN` gives them."""
    return _Planned(plan, declarations).agreed()


def state_of(plan: Plan, declarations: Declarations) -> dict[tuple[int, str], StatePart]:
    """Return all parts of a plan's state, by node number and part name."""
    return _Planned(plan, declarations).parts()


def unbounded(plan: Plan, declarations: Declarations) -> set[tuple[int, str]]:
    """Return the unbounded parts, by node number and part name."""
    return {key for key, part in state_of(plan, declarations).items() if not part.bounded}


class _Planned:
    """The distinct operators of a plan, inputs first, and what the passes find for each."""

    def __init__(self, plan: Plan, declarations: Declarations) -> None:
        self.plans: list[Plan] = []
        """Each over inputs that know their answers."""
        self.inputs: list[tuple[int, ...]] = []
        self._places: dict[Hashable, int] = {}
        self._known: dict[int, int] = {}
        self._inputs_known: list[Plan] = []
        self._found: Accordance | Refusal = Accordance(())
        self._needs: list[Schemes] = []
        self._root_plan = plan
        self._root = self._place(plan)
        self._declarations = declarations
        self._outcomes = self._up(declarations)

    def _place(self, plan: Plan) -> int:
        """Return the place of an operator; equal sub-plans have the same."""
        if id(plan) in self._known:
            return self._known[id(plan)]
        inputs = tuple(map(self._place, plan.inputs))
        read = {id(input_) for input_ in plan.inputs}
        key = type(plan), inputs, tuple(_own(getattr(plan, part.name), read) for part in fields(plan))
        place = self._places.get(key)
        if place is None:
            place = self._places[key] = len(self.plans)
            below = tuple(self._inputs_known[at] for at in inputs)
            self.plans.append(plan.with_inputs(below) if below else plan)
            self._inputs_known.append(known(self.plans[-1]))
            self.inputs.append(inputs)
        self._known[id(plan)] = place
        return place

    def _up(self, declarations: Declarations) -> list[Outcome]:
        found: list[Outcome] = []
        for plan, inputs in zip(self.plans, self.inputs, strict=True):
            offered = (declarations.offers(plan),) if isinstance(plan, Scan) else tuple(found[i].out for i in inputs)
            found.append(outcome(plan, offered))
        return found

    def _vertices(self) -> list[Vertex]:
        return [
            Vertex(inputs, self._offering(plan, inputs, made))
            for plan, inputs, made in zip(self.plans, self.inputs, self._outcomes, strict=True)
        ]

    def _offering(self, plan: Plan, inputs: tuple[int, ...], made: Outcome) -> Offering:
        if not made.bounded:
            return ()
        offered = tuple(self._outcomes[place].out for place in inputs)
        ins = tuple(offers.bare for offers in offered)
        accepted, own = covering(plan.schema, made.out), plan.feedback_sent(offered)
        told = tuple(map(_together, translated(plan, accepted), own))
        ignoring = Contract(ins, made.out.bare, ANY_FEEDBACK, own, exploits=False)
        if not accepted.templates:
            return (ignoring,)
        return Contract(ins, made.out.bare, accepted, told), ignoring

    def _down(self, declarations: Declarations) -> list[Schemes]:
        """Return what each operator relies on, of each input."""
        demands = [Offers() for _ in self.plans]
        needs: list[Schemes] = [() for _ in self.plans]
        for place in reversed(range(len(self.plans))):
            plan, inputs = self.plans[place], self.inputs[place]
            if isinstance(plan, Scan):
                needs[place] = weakest(plan, (declarations.offers(plan),), demands[place])
                continue
            needs[place] = weakest(plan, tuple(self._outcomes[i].out for i in inputs), demands[place])
            for below, need in zip(inputs, needs[place], strict=True):
                demands[below] = demands[below].joined(need)
        return needs

    def parts(self) -> dict[tuple[int, str], StatePart]:
        numbered = enumerate(self._root_plan.walk(), start=1)
        made = ((number, self._outcomes[self._known[id(plan)]]) for number, plan in numbered)
        return {(number, part.name): part for number, found in made for part in found.parts}

    def agreed(self) -> Agreed:
        self._found = search(self._vertices(), partial(accepts, strict=False))
        self._needs = self._down(self._declarations)
        root = self._agreed(self._root_plan, count(1))
        return root if isinstance(self._found, Accordance) else replace(root, refused=self._refused(root, self._found))

    def _refused(self, root: Agreed, found: Refusal) -> Refused:
        """Return the edge of the first operator without a contract, at the input that would have to promise more."""
        reader = next(node for node in root.walk() if self._known[id(node.plan)] == found.reader)
        part = next((part for part in reader.parts if not part.bounded), None)
        places = () if part is None else lacking(self.plans[found.reader], tuple(i.offers for i in reader.inputs), part)
        return Refused(reader.number, tuple(reader.inputs[place].number for place in places))

    def _agreed(self, plan: Plan, numbers: Iterator[int]) -> Agreed:
        inputs = tuple(self._agreed(input_, numbers) for input_ in plan.inputs)
        place, number = self._known[id(plan)], next(numbers)
        made, found = self._outcomes[place], self._found
        contract = found.contracts[place] if isinstance(found, Accordance) else None
        return Agreed(plan, number, made.parts, made.out, self._needs[place], contract, inputs)


def _own(value: Any, read: Set[int]) -> Hashable:
    """The value of a field, without the inputs that it has."""
    if isinstance(value, Plan):
        return None if id(value) in read else value
    return tuple(_own(item, read) for item in value) if isinstance(value, tuple) else value


def _together(one: FeedbackScheme, other: FeedbackScheme) -> FeedbackScheme:
    """Return the feedback that an operator sends for two reasons."""
    if isinstance(one, Scheme) and isinstance(other, Scheme):
        return Scheme(one.templates | other.templates)
    return other if one is NO_FEEDBACK else one
