"""The contract of a query as a value."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from millstream.algebra.punctuation.scheme import covered
from millstream.algebra.punctuation.template import SINGLE, Template
from millstream.logical.contract.accordance import Agreed, accordance
from millstream.logical.contract.advice import Alternative, Clause, alternatives
from millstream.logical.contract.feedback import covering, sent_below
from millstream.logical.contract.offers import Declarations, Time
from millstream.logical.contract.state_parts import StatePart
from millstream.logical.plan import Plan


@dataclass(frozen=True)
class QueryContract:
    """The accordance of a query, or why there is none. `str()` is the answer to EXPLAIN CONTRACT, `svg()` the same as a
    picture."""

    root: Agreed
    declarations: Declarations
    derivable: tuple[Clause, ...] = ()
    """Clauses that rows at hand obey."""

    @property
    def bounded(self) -> bool:
        """True if the query has an accordance: no state grows for ever."""
        return self.root.refused is None

    @property
    def unbounded(self) -> tuple[StatePart, ...]:
        """The parts of its state that can grow for ever."""
        return tuple(self.root.unbounded().values())

    @property
    def relies_on(self) -> tuple[str, ...]:
        """The declarations that the accordance relies on; none without one."""
        return self.root.declarations() if self.bounded else ()

    @cached_property
    def feedback(self) -> tuple[Template, ...]:
        """The feedback whose guards end, in all operators that it reaches."""
        known = covering(self.root.plan.schema, self.root.offers).templates
        return tuple(sorted((t for t in known if _ends(self.root, t)), key=str))

    @cached_property
    def lasting(self) -> tuple[str, ...]:
        """The columns on which feedback stays until the query ends, unless it restricts others too."""
        schema, time = self.root.plan.schema, self.root.offers.time
        moving = {} if time is Time.STILL else schema.trails
        single = [Template(((name, SINGLE),)) for name in schema.names if name not in moving]
        return tuple(t.classes[0][0] for t in single if not any(covered(t, known) for known in self.feedback))

    @cached_property
    def alternatives(self) -> tuple[Alternative, ...]:
        """Declarations with which it would have an accordance, the weakest first; none if it has one."""
        return alternatives(self.root.plan, self.declarations, self.derivable)

    def svg(self) -> str:
        """The contract as a picture."""
        from millstream.logical.contract.picture import drawn

        return drawn(self)

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "bounded": self.bounded,
            "relies_on": list(self.relies_on),
            "feedback": [str(template) for template in self.feedback],
            "lasting_feedback": list(self.lasting),
            "advice": [str(alternative) for alternative in self.alternatives],
            "operators": [_described(node) for node in self.root.walk()],
        }

    def __str__(self) -> str:
        from millstream.logical.contract.explain import written

        return written(self)

    def _repr_html_(self) -> str:
        return self.svg()


def contract_of(plan: Plan, declarations: Declarations, derivable: Iterable[Clause] = ()) -> QueryContract:
    return QueryContract(accordance(plan, declarations), declarations, tuple(derivable))


def _ends(node: Agreed, guard: Template) -> bool:
    """Return whether guards on such feedback end at the reader of a node, and at all readers below."""
    known = covering(node.plan.schema, node.offers).templates
    if not any(covered(guard, own) for own in known):
        return False
    below = zip(node.inputs, sent_below(node.plan, guard), strict=True)
    return all(sent is None or _ends(input_, sent) for input_, sent in below)


def _described(node: Agreed) -> dict[str, Any]:
    parts = [{"name": p.name, "bounded": p.bounded, "by": list(p.bounds), "lacks": p.lacks} for p in node.parts]
    return {
        "number": node.number,
        "operator": node.plan.describe(),
        "state": parts,
        "passes_on": str(node.offers),
        "relies_on": [str(offers) for offers in node.relies],
        "inputs": [input_.number for input_ in node.inputs],
    }
