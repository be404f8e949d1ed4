"""EXPLAIN CONTRACT: shows before a query runs whether its state stays bounded.

Each node of the plan lists the parts of its state, each with what bounds it or what it lacks, and then what the node
passes on to the node above: templates of punctuation, and time. Then come the accordance, or the edge where there is
none and what to declare, and the verdict.

>>> from millstream.algebra.schema import Schema
>>> from millstream.algebra.punctuation.template import Template
>>> from millstream.algebra.types import Type
>>> from millstream.logical.catalog import Catalog, StreamDefinition
>>> from millstream.logical.contract.offers import Declarations
>>> from millstream.logical.contract.query_contract import contract_of
>>> from millstream.logical.nodes.distinct import Distinct
>>> from millstream.logical.nodes.scan import Scan
>>> catalog, schema = Catalog(), Schema.of(("k", Type.INT))
>>> catalog.add_stream(StreamDefinition("s", schema, templates=(Template((("k", "#"),)),)))
>>> print(written(contract_of(Distinct(Scan("s", schema)), Declarations.of(catalog, "demand"))))
#2 Distinct
│    seen: BOUNDED by s PUNCTUATED ON (k #)
│    passes on (k #), time when asked
│    relies on #1: (k #)
└─ #1 Scan s
        passes on (k #), time when asked
accordance: relies on s PUNCTUATED ON (k #)
feedback: guards on (k #) end with punctuation or time
contract: bounded

`contract.offers` defines what each clause promises. The nodes (`nodes`) define what bounds each part of their state and
what they pass on. `contract.hints` writes the hints.
"""

from __future__ import annotations

from collections.abc import Iterator

from millstream.logical.contract.accordance import Agreed, Refused
from millstream.logical.contract.hints import hint
from millstream.logical.contract.offers import Offers
from millstream.logical.contract.query_contract import QueryContract
from millstream.logical.contract.state_parts import NONE_MOUNTED
from millstream.logical.explain import branches


def written(contract: QueryContract) -> str:
    """Return the tree of a plan with the contracts of its nodes, what it relies on or lacks, and the verdict."""
    root = contract.root
    return "\n".join([*_lines(root, contract), *conclusion(contract), verdict(root)])


def verdict(root: Agreed) -> str:
    unbounded = len(root.unbounded())
    return f"contract: unbounded: {unbounded} part{'s' if unbounded > 1 else ''}" if unbounded else "contract: bounded"


def _lines(node: Agreed, contract: QueryContract) -> Iterator[str]:
    yield f"#{node.number} {node.plan.describe()}"
    margin = "│    " if node.inputs else "     "
    for part in node.parts:
        if part.bounds == (NONE_MOUNTED,):
            continue
        if part.bounded:
            late = "" if part.delivers else "; its results are emitted when the stream ends"
            yield f"{margin}{part.name}: BOUNDED by {'; by '.join(part.bounds)}{late}"
        else:
            yield f"{margin}{part.name}: UNBOUNDED: {part.lacks}"
            yield f"{margin}  hint: {hint(contract.root, node, part, contract.declarations)}"
    yield f"{margin}passes on {node.offers}"
    if node.parts and (used := reliance(node)):
        yield f"{margin}relies on {used}"
    yield from branches([_lines(input_, contract) for input_ in node.inputs])


def reliance(node: Agreed) -> str:
    """What a node relies on, of each input that has to promise something."""
    pairs = zip(node.inputs, node.relies, strict=False)
    return "; ".join(f"#{input_.number}: {used}" for input_, used in pairs if used != Offers())


def conclusion(contract: QueryContract) -> Iterator[str]:
    root = contract.root
    if root.refused is not None:
        yield f"no accordance: {refusal(root, root.refused)}"
    elif relied := contract.relies_on:
        yield f"accordance: relies on {' and '.join(relied)}"
    ends, stays = ", ".join(map(str, contract.feedback)), ", ".join(contract.lasting)
    told = [f"guards on {ends} end with punctuation or time"] if ends else []
    told += [f"guards on {stays}{' alone' if ends else ''} stay"] if stays else []
    yield f"feedback: {'; '.join(told)}"
    for number, alternative in enumerate(contract.alternatives):
        yield f"{'or' if number else 'advice'}: {alternative}"


def refusal(root: Agreed, refused: Refused) -> str:
    """The edge where no contract fits, as text."""
    nodes = {node.number: node for node in root.walk()}
    reader = f"#{refused.reader} {type(nodes[refused.reader].plan).__name__}"
    if not refused.antecedents:
        return f"{reader} has no contract, whatever its inputs promise"
    below = (nodes[number] for number in refused.antecedents)
    edges = (f"#{node.number} {type(node.plan).__name__} ({node.offers})" for node in below)
    return f"{reader} has no contract for what it gets from {' and '.join(edges)}"
