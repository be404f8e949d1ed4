"""The contract form of an operator: what it holds and promises, under any schemes of its inputs.

A node of the plan answers `state_parts` and `passes_on` for given schemes. It thereby offers every contract
`<In1, …, Ink, Out>` whose inputs bound all parts of its state, and whose output is what it then passes on, or less: an
operator may drop punctuation. Both answers are monotone, but for guards: an input that promises more never bounds fewer
tuples, nor makes the operator promise less. So

- if the strongest schemes that are there do not bound its state, no weaker ones do: it has no contract;
- all its contracts lie between the strongest one and the weakest ones, which promise just enough.
"""

from __future__ import annotations

from dataclasses import dataclass

from millstream.algebra.punctuation.template import SINGLE, UP_TO, Template
from millstream.algebra.schema import Schema
from millstream.logical.contract.offers import Offer, Offers, Reference, Time
from millstream.logical.contract.state_parts import WAITING, StatePart
from millstream.logical.plan import Plan

Schemes = tuple[Offers, ...]


@dataclass(frozen=True, slots=True)
class Outcome:
    """The parts of an operator's state under given schemes, and what it passes on."""

    parts: tuple[StatePart, ...]
    out: Offers

    @property
    def bounded(self) -> bool:
        return all(part.bounded for part in self.parts)

    def suffices(self, strongest: Outcome, demand: Offers) -> bool:
        """True if it bounds and drains all that the strongest one does, and promises what is demanded."""
        parts = zip(self.parts, strongest.parts, strict=True)
        return self.out.includes(demand) and all(
            (own.bounded or not most.bounded) and (own.drains or not most.drains) for own, most in parts
        )


def outcome(plan: Plan, inputs: Schemes) -> Outcome:
    """Return what an operator holds and passes on. The input of a scan is what its stream declares."""
    parts = plan.state_parts(inputs)
    # Where tuples wait for ever, the punctuation behind them does too.
    stuck = any(part.name == WAITING and not part.bounded for part in parts)
    return Outcome(parts, Offers() if stuck else plan.passes_on(inputs, parts))


def weakest(plan: Plan, inputs: Schemes, demand: Offers) -> Schemes:
    """Return schemes that still bound what these bound, and let the operator promise what is demanded, but from which
    nothing can be taken away. Templates are given up before time."""
    strongest = outcome(plan, inputs)
    for place, most in enumerate(inputs):
        nothing = (*inputs[:place], Offers(), *inputs[place + 1 :])
        if outcome(plan, nothing).suffices(strongest, demand):
            inputs = nothing
            continue
        steps: list[Offer | Reference | Time] = [*most.templates[::-1], *most.references, Time.STILL, Time.ASKED]
        for step in steps:
            own = inputs[place]
            less = own.at_most(step) if isinstance(step, Time) else own.without(step)
            tried = (*inputs[:place], less, *inputs[place + 1 :])
            if less != own and outcome(plan, tried).suffices(strongest, demand):
                inputs = tried
    return inputs


def lacking(plan: Plan, inputs: Schemes, part: StatePart) -> tuple[int, ...]:
    """Return the places of the inputs that would have to promise more to bound a part: the first that suffices alone,
    or else all; none if no promise would do."""
    every = tuple(_everything(input_.schema) for input_ in plan.inputs)
    for place in range(len(inputs)):
        if _bounds(plan, (*inputs[:place], every[place], *inputs[place + 1 :]), part.name):
            return (place,)
    return tuple(range(len(inputs))) if inputs and _bounds(plan, every, part.name) else ()


def _bounds(plan: Plan, inputs: Schemes, name: str) -> bool:
    return all(part.bounded for part in outcome(plan, inputs).parts if part.name == name)


def _everything(schema: Schema) -> Offers:
    """Return the scheme that promises the most: time, single values and upper bounds of each column."""
    templates = (Template(((name, class_),)) for name in schema.names for class_ in (SINGLE, UP_TO))
    return Offers(Time.MOVES, ("time",), tuple(Offer(template, str(template)) for template in templates))
