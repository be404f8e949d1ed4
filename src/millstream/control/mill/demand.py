"""Prods of a query: it is asked for its results so far.

The prod is fed to every stream that the query reads, so that it passes all operators of the query, in whichever stage
they are, and meets what is on its way there. It speaks of the output of the topmost aggregate. Other queries pass it on
unanswered. It takes effect with the next batch, before the rows of that batch.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from millstream.algebra.early import FINALITY, parse_prod, stream_prod
from millstream.algebra.punctuation.pattern import Pattern
from millstream.errors import PatternError
from millstream.logical.early import answering, asked_of_topmost
from millstream.logical.plan import Plan
from millstream.physical.wire.records import Feed

if TYPE_CHECKING:
    from millstream.control.mill.base import Mill

LOG = logging.getLogger("millstream")


def send_prod(mill: Mill, name: str, prod: str | Pattern) -> list[PatternError]:
    """Send a prod to a query, and return the warnings about it; raise PatternError if the query gives no early
    answers."""
    asked, warnings = asked_of(mill, mill.query(name).plan, prod, f"query '{name}'")
    if asked is not None:
        mill.placement(name)  # or its error
        mill.prodders.send(name, asked)
        mill.take_effect()
    return warnings


def asked_of(mill: Mill, plan: Plan, prod: str | Pattern, what: str) -> tuple[Pattern | None, list[PatternError]]:
    """What a prod of a query asks of the output of its topmost aggregate (None: nothing, since a computed column is
    neither a window nor a group), and a warning for each column that makes it vain, which is logged once. Raise
    PatternError if the query, named `what` in messages, gives no early answers."""
    pattern, warned = parse_prod(prod, plan.schema) if isinstance(prod, str) else prod, mill.prodders.warned
    _check(what, plan)
    warnings = [_vain(what, column) for column in unanswered(plan, pattern)]
    for warning in warnings:
        if warning.message not in warned:
            warned.add(warning.message)
            LOG.warning("%s", warning)
    return asked_of_topmost(plan, pattern), warnings


def unanswered(plan: Plan, pattern: Pattern) -> list[str]:
    """The columns of a prod's pattern that are neither the end of a window nor a group: it has no answer."""
    top, found = answering(plan), []
    for column, restriction in pattern.items:
        asked = asked_of_topmost(plan, Pattern.of({column: restriction}))
        if asked is None or not asked.attributes <= {*top.asked}:
            found.append(column)
    return found


def _vain(what: str, column: str) -> PatternError:
    message = f"a prod of {what} has no answer: column '{column}' is neither a window nor a group"
    return PatternError("M4018", message, hint="ask for windows and groups, such as {window_end = 10}; {} is all")


def prod_stream(mill: Mill, name: str, text: str) -> None:
    """Prod a stream, behind what has been fed; one with a connector behind what has been read."""
    definition = mill.catalog.stream(name)
    if not definition.options.get("connector"):
        mill.feeds.prod(name, text)
        return
    made = stream_prod(parse_prod(text, definition.schema), definition.schema)
    mill.placements.append(Feed(mill.name, mill.clock.now(), ((name, made),)))
    mill.take_effect()


def _check(what: str, plan: Plan) -> None:
    """Refuse a query that has no aggregate at the top, or does not ask for early answers."""
    top = answering(plan)
    if not top.asked:
        kind = type(top).__name__
        detail = f"Its topmost operator, but for selections and projections, is {kind}."
        message = f"{what} has no aggregate at the top that could answer early"
        raise PatternError("M4015", message, detail=detail)
    if not top.answers:
        hint = f"add EMIT EARLY, or {FINALITY} to its select list: early rows have 'early' there, the others 'final'"
        raise PatternError("M4014", f"{what} does not ask for early answers", hint=hint)
