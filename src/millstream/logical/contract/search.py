"""The search for a consistent accordance: one contract for each operator of a plan, such that neighbours fit.

A contract of an antecedent fits one of its reader if its output scheme is the reader's input scheme, and it accepts the
feedback that the reader may send. On a tree, two passes of semijoins (from the sources up, from the root down) leave
just the contracts that take part in some accordance, and one can be picked without backtracking: the work is O(n k²)
for n operators with k contracts each. What one reader of an operator excludes may exclude contracts of another reader,
so with such operators the passes are repeated until nothing changes; and of each such operator a contract is picked
first, which leaves a tree.

>>> source, picky = Contract((), "+"), Contract(("#",), "#")
>>> found = search([Vertex((), (source,)), Vertex((0,), (picky, Contract(("+",), "+")))])
>>> print(*found.contracts)
<Out=+, Feedback.In=∅> <In1=+, Out=+, Feedback.In=∅>
>>> search([Vertex((), (source,)), Vertex((0,), (picky,))])
Refusal(reader=1, antecedent=0)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from millstream.algebra.punctuation.scheme import FeedbackScheme, accepts
from millstream.logical.contract.contract import Contract

Accepts = Callable[[FeedbackScheme, FeedbackScheme], bool]
Offering = tuple[Contract, ...]


@dataclass(frozen=True, slots=True)
class Vertex:
    """An operator: the places of its inputs in the plan, and the contracts that it offers."""

    inputs: tuple[int, ...]
    offering: Offering


@dataclass(frozen=True, slots=True)
class Accordance:
    """A contract for each operator."""

    contracts: tuple[Contract, ...]


@dataclass(frozen=True, slots=True)
class Refusal:
    """There is no accordance. The first operator, from the sources up, that has no contract left, and the antecedent
    whose contracts fit none of its own; without an antecedent it offers none itself, or its readers do not agree."""

    reader: int
    antecedent: int | None = None


def search(vertices: Sequence[Vertex], fits: Accepts = accepts) -> Accordance | Refusal:
    """Return an accordance, or where there is none. Inputs come before their readers."""
    return _Search(vertices, fits).solve([vertex.offering for vertex in vertices])


class _Search:
    def __init__(self, vertices: Sequence[Vertex], fits: Accepts) -> None:
        self._vertices, self._fits = vertices, fits
        readers = Counter(place for vertex in vertices for place in set(vertex.inputs))
        self._shared = [place for place, number in readers.items() if number > 1]

    def solve(self, offerings: list[Offering]) -> Accordance | Refusal:
        left = self.reduced(offerings)
        if isinstance(left, Refusal):
            return left
        open_ = next((place for place in self._shared if len(left[place]) > 1), None)
        if open_ is None:
            return Accordance(self._pick(left))
        for contract in left[open_]:
            found = self.solve([(contract,) if place == open_ else held for place, held in enumerate(left)])
            if isinstance(found, Accordance):
                return found
        return Refusal(open_)

    def reduced(self, offerings: list[Offering]) -> list[Offering] | Refusal:
        left = self._passes(offerings)
        while self._shared and not isinstance(left, Refusal) and left != offerings:
            offerings, left = left, self._passes(left)
        return left

    def _passes(self, offerings: list[Offering]) -> list[Offering] | Refusal:
        """Return the contracts that both passes leave."""
        left = list(offerings)
        for place, vertex in enumerate(self._vertices):
            if not left[place]:
                return Refusal(place)
            for at, below in enumerate(vertex.inputs):
                left[place] = tuple(d for d in left[place] if any(self._edge(c, d, at) for c in left[below]))
                if not left[place]:
                    return Refusal(place, below)
        for place in reversed(range(len(left))):
            for at, below in enumerate(self._vertices[place].inputs):
                left[below] = tuple(c for c in left[below] if any(self._edge(c, d, at) for d in left[place]))
                if not left[below]:
                    return Refusal(place, below)
        return left

    def _pick(self, left: list[Offering]) -> tuple[Contract, ...]:
        """Pick contracts from the readers down; operators with several readers have one contract left."""
        picked: list[Contract | None] = [None] * len(left)
        for place in reversed(range(len(left))):
            contract = picked[place] or left[place][0]
            picked[place] = contract
            for at, below in enumerate(self._vertices[place].inputs):
                if picked[below] is None:
                    picked[below] = next(c for c in left[below] if self._edge(c, contract, at))
        return tuple(contract for contract in picked if contract is not None)

    def _edge(self, antecedent: Contract, reader: Contract, at: int) -> bool:
        return antecedent.out == reader.ins[at] and self._fits(antecedent.feedback_in, reader.sent_to(at))
