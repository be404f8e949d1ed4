"""`INSTRUMENT(TABLE s, '~[k = 5]', 100)` in FROM."""

from __future__ import annotations

from millstream.algebra.feedback import Intent, parse_feedback
from millstream.errors import PatternError
from millstream.lang import ast
from millstream.logical.nodes.instrument import Instrument
from millstream.logical.plan import Plan


def instrumented(source: ast.Source, plan: Plan) -> Plan:
    clause = source.instrument
    if clause is None:
        return plan
    with clause.placing():
        message = parse_feedback(clause.feedback, plan.schema)
        if message.intent is Intent.DEMANDED or clause.every == 0:
            what = "0 tuples" if clause.every == 0 else "!"
            raise PatternError("M4017", f"INSTRUMENT with {what}", hint="INSTRUMENT(TABLE s, '~[k = 5]', 100), or ONCE")
    return Instrument(plan, message.intent.value, message.pattern, clause.every, clause.sends)
