"""Adding an operator is local: a node and its worker, defined here, and every planner can work with them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl
import pytest

from millstream.algebra.element import Element, Page
from millstream.algebra.expression import Binary, Column, Literal
from millstream.algebra.schema import TS, Schema
from millstream.algebra.types import Type
from millstream.logical.contract.offers import Offers
from millstream.logical.contract.requirements import Punctuated, Requirement
from millstream.logical.contract.state_parts import StatePart, listed
from millstream.logical.explain import explain
from millstream.logical.nodes.kinds.common import Passing
from millstream.logical.nodes.select import Select
from millstream.logical.plan import NODES, Key, Names, Need, Plan
from millstream.optimizer import optimize
from millstream.physical.plan.compile import Compiler
from millstream.physical.plan.stages import parts
from millstream.physical.wire.hashing import shard_of
from millstream.runtime.engine import Graph
from millstream.runtime.operator.contract import NOTHING, Input, Operator, Output
from millstream.runtime.operator.registry import carries_out
from millstream.runtime.state.table import StateTable
from tests.logical.sample import bind, catalog_of, explain_contract


@dataclass(frozen=True, slots=True)
class Changes(Passing):
    """The tuples whose `value` differs from that of the tuple with the same `key` before them."""

    stem = "changes"
    stateless = False
    positional = True
    punctuates = Names()

    input: Plan
    key: str
    value: str

    def describe(self) -> str:
        return f"Changes {self.value} BY {self.key}"

    def pruned(self, kept: Names) -> tuple[Plan, tuple[Need, ...]]:
        return self, (Need(kept | {self.key, self.value}),)

    def hash_keys(self) -> Iterable[Key]:
        return [(self.key,)]

    def keys_below(self, key: Key) -> list[Key] | None:
        return [key] if key == (self.key,) else None

    def state_parts(self, inputs: tuple[Offers, ...]) -> tuple[StatePart, ...]:
        closing = [offer.origin for offer in inputs[0].templates if offer.attributes == {self.key}]
        lacks = "" if closing else f"no punctuation closes {listed([self.key])}"
        return (StatePart("last", tuple(closing), lacks),)

    def requirements(self, part: StatePart) -> Iterator[Requirement]:
        yield Punctuated(self.input, (self.key,))

    def parameters(self) -> dict[str, Any]:
        return self.values("schema", "key", "value")


@carries_out("changes")
class ChangesOperator(Operator):
    def __init__(self, schema: Schema, key: str, value: str) -> None:
        self.schema, self._key, self._value = schema, key, value
        self._last = StateTable({key: schema.polars[key], value: schema.polars[value]})

    def process(self, inputs: Sequence[Input]) -> Output:
        port = inputs[0]
        if port.rows is None:
            return NOTHING if port.punctuations is None else Output(None, port.punctuations)
        known = self._last.frame()
        both = pl.concat([known, port.rows.select(known.columns)])
        new = both.select(pl.col(self._value).ne_missing(pl.col(self._value).shift(1).over(self._key))).to_series()
        first = both.select(pl.col(self._key).is_first_distinct()).to_series()
        self._last.replace(both.unique(self._key, keep="last", maintain_order=True))
        return Output(port.rows.filter((new | first).tail(port.rows.height)), port.punctuations)

    def tables(self) -> Mapping[str, StateTable]:
        return {"last": self._last}


STREAM = "CREATE STREAM s (k BIGINT, v BIGINT, w BIGINT, x BIGINT, ts BIGINT) ORDER BY ts PUNCTUATED ON ({} #)"
CATALOG = catalog_of(STREAM.format("w"))
SCAN = bind("SELECT * FROM s", CATALOG)
FEW = Binary(Type.BOOLEAN, "<", Column(Type.BIGINT, "k"), Literal(Type.BIGINT, 3))
PLAN = Select(Changes(SCAN, "k", "v"), FEW)
ROWS = [(1, 10), (2, 10), (1, 10), (1, 20), (2, 10), (5, 1), (2, 30), (1, 10)]


def page(place: int) -> pl.DataFrame:
    rows = [(k, v, 0, 0, at, at) for at, (k, v) in enumerate(ROWS)][place : place + 3]
    return pl.DataFrame(rows, schema=[*SCAN.schema.names, TS], orient="row")


def test_it_is_explained_and_optimized() -> None:
    assert NODES["changes"] is Changes
    assert explain(PLAN).splitlines()[1].startswith("└─ #2 Changes v BY k  (k BIGINT")
    # What it does not know is not done: the selection stays above, no column is lost.
    assert optimize(PLAN, CATALOG) == PLAN
    narrow = optimize(bind_over("SELECT k FROM s"), CATALOG)
    assert [node.describe() for node in narrow.walk()][:3] == ["Scan s", "Project k, v, w, ts", "Changes v BY k"]


def bind_over(text: str) -> Plan:
    """A query of the stream, read through the new node."""
    plan = bind(text, CATALOG)
    return plan.with_inputs((Changes(plan.inputs[0], "k", "v"),))


def test_its_contract_is_checked() -> None:
    text = explain_contract(PLAN, CATALOG)
    assert "last: UNBOUNDED: no punctuation closes (k)" in text
    assert "hint: declare PUNCTUATED ON (k #)" in text
    closing = catalog_of(STREAM.format("k"))
    assert "last: BOUNDED by s PUNCTUATED ON (k #)" in explain_contract(PLAN, closing)


@pytest.mark.parametrize("shards", [1, 3])
def test_it_runs_on_shards(shards: int) -> None:
    (part,) = parts("q", PLAN, shards)
    assert part.keys == (None if shards == 1 else {"s": ("k",)})
    found: list[tuple[Any, ...]] = []

    def deliver(element: Element) -> None:
        if isinstance(element, Page):
            found.extend(element.frame.select("ts", "k", "v").rows())

    graphs = [Graph() for _ in range(shards)]
    compilers = [Compiler(graph, lambda _: lambda _: None, {}, place=(n, shards)) for n, graph in enumerate(graphs)]
    for compiler in compilers:
        compiler.add("q", part.plan, deliver)
    for place in range(0, len(ROWS), 3):
        rows = page(place)
        owner = pl.Series(shard_of(rows, ("k",), shards))
        for number, (graph, compiler) in enumerate(zip(graphs, compilers, strict=True)):
            compiler.push("s", Page(rows.filter(owner == number)))
            graph.run()
    assert sorted(found) == [(0, 1, 10), (1, 2, 10), (3, 1, 20), (6, 2, 30), (7, 1, 10)]
