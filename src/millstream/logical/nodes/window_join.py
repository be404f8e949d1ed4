"""Symmetric window join of two streams."""

from __future__ import annotations

from dataclasses import dataclass

from millstream.algebra.expression import Expression
from millstream.algebra.window import Window
from millstream.logical.contract_offers import Declarations, Offers
from millstream.logical.contract_parts import Part
from millstream.logical.nodes.windowed import TwoWindowed
from millstream.logical.plan import Plan


@dataclass(frozen=True, slots=True)
class WindowJoin(TwoWindowed):
    """Equality on `keys` (pairs of left and right input columns), `residual` over output columns."""

    stem = "window_join"

    left: Plan
    right: Plan
    left_window: Window
    right_window: Window
    keys: tuple[tuple[str, str], ...] = ()
    residual: Expression | None = None
    left_prefix: str | None = None
    right_prefix: str | None = None

    def passes_on(self, inputs: tuple[Offers, ...], parts: tuple[Part, ...], declared: Declarations) -> Offers:
        del declared
        return self.joined_offers(inputs, [part.empties for part in parts[:2]])
