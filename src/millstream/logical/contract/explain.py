"""EXPLAIN CONTRACT: shows before a query runs whether its state stays bounded.

Each node of the plan lists the parts of its state, each with what bounds it or what it lacks, and then what the node
passes on to the node above: templates of punctuation, and time. The last line is the verdict.

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

`contract.offers` defines what each clause promises. The nodes (`nodes`) define what bounds each part of their state and
what they pass on. `contract.hints` writes the hints.
"""

from __future__ import annotations

from collections.abc import Iterator

from millstream.logical.catalog import Catalog
from millstream.logical.contract.accordance import Agreed, accordance
from millstream.logical.contract.hints import hint
from millstream.logical.contract.offers import Declarations
from millstream.logical.explain import branches
from millstream.logical.plan import Plan


def explain_contract(
    plan: Plan, catalog: Catalog, ets: str = "demand", unpunctuated: frozenset[str] = frozenset()
) -> str:
    """Return the contract of a plan as text; `ets` is how silent sources promise time, `unpunctuated` are the streams
    whose sources send no punctuation."""
    declarations = Declarations.of(catalog, ets, unpunctuated)
    root = accordance(plan, declarations)
    return "\n".join([*_lines(root, root, declarations), verdict(root)])


def verdict(root: Agreed) -> str:
    unbounded = len(root.unbounded())
    return f"contract: unbounded: {unbounded} part{'s' if unbounded > 1 else ''}" if unbounded else "contract: bounded"


def _lines(node: Agreed, root: Agreed, declarations: Declarations) -> Iterator[str]:
    yield f"#{node.number} {node.plan.describe()}"
    margin = "│    " if node.inputs else "     "
    for part in node.parts:
        if part.bounded:
            yield f"{margin}{part.name}: BOUNDED by {'; by '.join(part.bounds)}"
        else:
            yield f"{margin}{part.name}: UNBOUNDED: {part.lacks}"
            yield f"{margin}  hint: {hint(root, node, part, declarations)}"
    yield f"{margin}passes on {node.offers}"
    yield from branches([_lines(input_, root, declarations) for input_ in node.inputs])
