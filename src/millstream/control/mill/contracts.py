"""Contracts of queries: a warning, or a refusal, when a query whose state is unbounded starts; warnings of declared
punctuation that the source of a stream cannot send, of windows that change nothing, and of rows that a query misses.

`EXPLAIN CONTRACT` shows every part of the state. Warnings and refusals leave out what streams that end can fill: their
state is bounded by their input.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING

from millstream.amounts import amount
from millstream.control.mill.evidence import derivable
from millstream.control.observe.stream_progress import read_counts
from millstream.errors import InputError, PlanError
from millstream.ingest.paged import SOURCES
from millstream.ingest.paged.formats import FORMATS
from millstream.ingest.paged.generated import Generated
from millstream.lang import ast
from millstream.lang.spelling import spelled
from millstream.logical.bind.unused_window import unused_windows
from millstream.logical.catalog import StreamDefinition
from millstream.logical.contract.accordance import Agreed, accordance
from millstream.logical.contract.explain import refusal
from millstream.logical.contract.hints import NOTHING, hint
from millstream.logical.contract.offers import Declarations
from millstream.logical.contract.query_contract import QueryContract, contract_of
from millstream.logical.contract.removal import with_removal
from millstream.logical.contract.state_parts import WAITING, StatePart
from millstream.logical.nodes.table_write import TableWrite
from millstream.logical.plan import Plan
from millstream.physical.shard.topology import scans

if TYPE_CHECKING:
    from millstream.control.mill.base import Mill

LOG = logging.getLogger("millstream")
SHOWN = 3
"""Number of parts that the warning names."""


def warn_unbounded(mill: Mill, name: str, plan: Plan) -> None:
    """Log a warning if the state of a new query can grow for ever (option `contracts`)."""
    if mill.options.contracts == "warn" and not mill.journal.recovering:
        report = unbounded(mill, name, plan)
        if report is not None:
            LOG.warning("%s", report)


def refuse_unbounded(mill: Mill, name: str, plan: Plan) -> None:
    """Raise PlanError if the state of a new query can grow for ever, and the option `contracts` is enforced."""
    if mill.options.contracts == "enforce" and not mill.journal.recovering:
        report = unbounded(mill, name, plan)
        if report is not None:
            root = accordance(informed(mill, plan), declared(mill))
            edge = f"no accordance: {refusal(root, root.refused)}" if root.refused is not None else ""
            details = "\n  ".join(filter(None, (report.detail, edge)))
            hint = f"{report.hint.partition(';')[0]}; SET contracts = 'warn' starts it nevertheless"
            message = f"query '{name}' is refused: its state can grow for ever"
            raise PlanError("M3033", message, detail=details, hint=hint)


def declared(mill: Mill) -> Declarations:
    """The declarations of all streams of a mill."""
    return Declarations.of(mill.catalog, mill.options.ets, mill.connectors.unpunctuated())


def informed(mill: Mill, plan: Plan) -> Plan:
    """The plan with what is known of the tables that streams write: which running statements delete their rows."""
    running = {name: query.plan for name, query in mill.queries.items() if query.failure is None}
    writers = {name: own for name, own in running.items() if isinstance(own, TableWrite)}
    return with_removal(plan, writers, mill.catalog, declared(mill)) if writers else plan


def contract(mill: Mill, plan: Plan) -> QueryContract:
    """The contract of a plan, with advice by the rows at hand."""
    found = contract_of(informed(mill, plan), declared(mill))
    return found if found.bounded else replace(found, derivable=tuple(derivable(mill, plan)))


def unbounded(mill: Mill, name: str, plan: Plan) -> PlanError | None:
    """What is unbounded in the state of a query, and what to declare; None if nothing is."""
    declarations = declared(mill)
    root = accordance(informed(mill, plan), declarations)
    if not root.unbounded():
        return None
    growing = [
        (node, part)
        for node in root.walk()
        for part in node.parts
        if not part.bounded and not all(map(mill.connectors.ends, _filled_by(node, part)))
    ]
    if not growing:
        return None
    shown = [
        f"{part.name} of #{node.number} {type(node.plan).__name__}: {part.lacks}" for node, part in growing[:SHOWN]
    ]
    shown += ["…"] if len(growing) > SHOWN else []
    ending = [f"set once = true on {stream}" for stream in sorted(_filled_by(*growing[0])) if _could_end(mill, stream)]
    clauses = hint(root, *growing[0], declarations)
    advice = ", or ".join([*([] if clauses == NOTHING and ending else [clauses]), *ending])
    explain = f"EXPLAIN CONTRACT {spelled(name)} shows all, SET contracts = 'off' stops this warning"
    return PlanError(
        "M3030",
        f"the state of query '{name}' can grow for ever",
        detail="\n  ".join(shown),
        hint=f"{advice}; {explain}",
    )


def warn_unused_windows(mill: Mill, query: ast.Node) -> None:
    """Log a warning for each window of a new query that changes nothing."""
    for report in unused_windows(query, mill.catalog) if not mill.journal.recovering else ():
        LOG.warning("%s", report)


def warn_unpunctuated(mill: Mill, stream: StreamDefinition) -> None:
    """Log a warning if a new stream declares punctuation that its source cannot send."""
    if mill.options.contracts == "off" or not stream.sent or mill.connectors.punctuates(stream):
        return
    clauses = " ".join(f"PUNCTUATED ON {template}" for template in stream.sent)
    connector = stream.options["connector"]
    other = "" if stream.schema.time is None else f"; WATERMARK FOR {stream.schema.time} moves its time"
    option = "set the option punctuation, or " if isinstance(SOURCES.get(connector), Generated) else ""
    report = PlanError(
        "M3031",
        f"the connector '{connector}' of stream '{stream.name}' sends no punctuation",
        detail=f"It declares {clauses}: groups and joins that wait for it emit nothing before the stream ends.",
        hint=f"{option}leave PUNCTUATED ON out{other}",
    )
    LOG.warning("%s", report)


def warn_missed(mill: Mill, name: str, plan: Plan, start: ast.Start) -> None:
    """Log a warning if a new query begins behind rows of a stream that ends."""
    if start.how != "now" or mill.journal.recovering:
        return
    for stream in sorted({scan.id.source for scan in scans(plan)}):
        if (fed := mill.fed(stream)) is not None:
            count, again = fed.accepted if fed.ended else 0, False
        elif again := mill.connectors.ends(stream):
            count = max(read_counts(mill, [stream])[stream][0], mill.readings.counts(stream)[0])
        else:
            count = 0
        if count:
            message = f"query '{name}' begins after {amount(count, 'row')} of stream '{stream}', which it does not see"
            hint = "WITH (start = 'beginning'), in Python start='beginning', reads them again"
            over = "The stream has ended." if not again else ""
            rereadable = again and mill.connectors.rereadable(scan.id.source for scan in scans(plan))
            LOG.warning("%s", InputError("M5051", message, detail=over, hint=hint if rereadable else ""))


def _could_end(mill: Mill, stream: str) -> bool:
    """Return whether a stream reads files, and would end after those present with `once`."""
    return (mill.catalog.stream(stream).options.get("connector") or "").lower() in FORMATS and not (
        mill.connectors.ends(stream)
    )


def _filled_by(node: Agreed, part: StatePart) -> set[str]:
    """The streams whose tuples a part of the state is made of."""
    inputs = node.plan.inputs if part.name == WAITING else node.plan.inputs[part.side : part.side + 1]
    return {scan.id.source for input_ in inputs for scan in scans(input_)}
