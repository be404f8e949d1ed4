"""EXPLAIN CONTRACT: whether the state of a query stays bounded, known before anything runs.

Under each node of the plan stand the parts of its state, each with what bounds it or what it lacks, and what the node
passes on to its reader: templates of punctuation, and time. The last line is the verdict.

>>> from millstream.algebra.schema import Schema
>>> from millstream.algebra.punctuation.template import Template
>>> from millstream.algebra.types import Type
>>> from millstream.logical.catalog import StreamDefinition
>>> from millstream.logical.nodes.distinct import Distinct
>>> from millstream.logical.nodes.scan import Scan
>>> catalog, schema = Catalog(), Schema.of(("k", Type.INT))
>>> catalog.add_stream(StreamDefinition("s", schema, templates=(Template((("k", "#"),)),)))
>>> print(explain_contract(Distinct(Scan("s", schema)), catalog))
#2 Distinct
│    seen: BOUNDED by s PUNCTUATED ON (k #)
│    passes on (k #), time when asked
└─ #1 Scan s
        passes on (k #), time when asked
contract: bounded

What a template promises, and which clause promises which, is in `contract_offers`; what bounds each part of a node's
state, and what passes it, is told by the node itself (`nodes`); hints are in `contract_hints`.
"""

from __future__ import annotations

from collections.abc import Iterator

from millstream.logical.catalog import Catalog
from millstream.logical.contract.check import Contract, check
from millstream.logical.contract.hints import hint
from millstream.logical.contract.offers import Declarations
from millstream.logical.contract.state_parts import StatePart
from millstream.logical.explain import branches
from millstream.logical.plan import Plan


def explain_contract(plan: Plan, catalog: Catalog, ets: str = "demand") -> str:
    """The contract of a plan as text; `ets` is how silent sources promise time."""
    declarations = Declarations.of(catalog, ets)
    root = check(plan, declarations)
    return "\n".join([*_lines(root, root, declarations), verdict(root)])


def verdict(root: Contract) -> str:
    unbounded = len(root.unbounded())
    said = f"unbounded: {unbounded} part{'s' if unbounded > 1 else ''}" if unbounded else "bounded"
    return f"contract: {said}"


def _lines(made: Contract, root: Contract, declarations: Declarations) -> Iterator[str]:
    yield f"#{made.number} {made.plan.describe()}"
    margin = "│" if made.inputs else " "
    for part in made.parts:
        for line in _part(made, part, root, declarations):
            yield f"{margin}    {line}"
    yield f"{margin}    passes on {made.offers}"
    yield from branches([_lines(input_, root, declarations) for input_ in made.inputs])


def _part(made: Contract, part: StatePart, root: Contract, declarations: Declarations) -> Iterator[str]:
    if part.bounded:
        yield f"{part.name}: BOUNDED by {'; by '.join(part.bounds)}"
        return
    yield f"{part.name}: UNBOUNDED: {part.lacks}"
    yield f"  hint: {hint(root, made, part, declarations)}"
