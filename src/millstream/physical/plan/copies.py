"""The columns of an operator's output that copy a column of its input: under these names a prod passes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from millstream.logical.plan import Plan


class Copies(Sequence[Mapping[str, tuple[str, ...]]]):
    """For each input of an operator, the columns of its output that copy a column of the input, or equal it. They are
    derived when they are first needed; `chain`: the nodes that the operator runs, the topmost first."""

    def __init__(self, chain: Sequence[Plan]) -> None:
        self._chain = tuple(chain)

    @cached_property
    def _names(self) -> list[dict[str, tuple[str, ...]]]:
        top = self._chain[0]
        equal = {name: group for group in top.equal_columns for name in group}
        above = {name: equal.get(name, (name,)) for name in top.schema.names}
        for plan in self._chain[:-1]:
            above = self._below(plan, above)[0]
        return self._below(self._chain[-1], above)

    @staticmethod
    def _below(plan: Plan, above: Mapping[str, tuple[str, ...]]) -> list[dict[str, tuple[str, ...]]]:
        found: list[dict[str, tuple[str, ...]]] = [{} for _ in plan.inputs]
        for name in plan.schema.names:
            for place, column in plan.copied(name):
                found[place][column] = (*found[place].get(column, ()), *above.get(name, ()))
        return found

    def __getitem__(self, place: Any) -> Any:
        return self._names[place]

    def __len__(self) -> int:
        return len(self._names)
