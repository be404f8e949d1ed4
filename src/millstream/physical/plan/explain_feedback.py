"""EXPLAIN FEEDBACK: the response of every operator of a plan to feedback on each column of its output.

Columns with the same response share a line; `n >` and `n <` stand for lower and upper bounds on a column where the
response depends on it. The switches of an operator are shown if one is not on.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date, datetime, timedelta
from itertools import count
from typing import Any

from millstream.algebra.punctuation.pattern import Pattern
from millstream.algebra.punctuation.restriction import above, below
from millstream.algebra.response import Reach, Rule
from millstream.algebra.types import Type
from millstream.logical.explain import branches
from millstream.logical.nodes.scan import Scan
from millstream.logical.plan import Plan
from millstream.logical.refused import refused
from millstream.physical.plan.compile import labels
from millstream.physical.plan.preparation import PreparedPart
from millstream.switches import Switch, Switches

_SAMPLES: dict[Type, Any] = {
    Type.VARCHAR: "",
    Type.TIMESTAMP: datetime(2000, 1, 1),
    Type.DATE: date(2000, 1, 1),
    Type.INTERVAL: timedelta(0),
}


def explain_feedback(prepared: Sequence[PreparedPart], switches: Switches) -> str:
    """The responses of all parts of a query, in the order in which they run."""
    query = prepared[0].part.name
    texts: list[str] = []
    for made in sorted(prepared, key=lambda made: (made.part.stage, made.part.name)):
        head = [f"stage {made.part.stage}"] if len(prepared) > 1 else []
        shown = {plan: switches.of([(query, label)]) for plan, label in labels(made.plan).items()}
        texts.append("\n".join([*head, *_lines(made.plan, shown, count(1))]))
    return "\n\n".join(texts)


def switched(prepared: Sequence[PreparedPart], switches: Switches) -> str:
    """Lines on the operators whose switches are not all on; empty if there are none."""
    query = prepared[0].part.name
    found = {
        label: switch
        for made in sorted(prepared, key=lambda made: (made.part.stage, made.part.name))
        for label in labels(made.plan).values()
        if str(switch := switches.of([(query, label)]))
    }
    lines = "\n".join(f"  {label}: {switch}" for label, switch in found.items())
    return f"\n\nresponses to feedback that are switched off\n{lines}" if found else ""


def _lines(plan: Plan, switches: dict[Plan, Switch], numbers: Iterator[int]) -> list[str]:
    inputs = [_lines(input_, switches, numbers) for input_ in plan.inputs]
    margin = "│    " if inputs else "     "
    own = [f"{margin}{line}" for line in responses(plan, switches.get(plan, Switch()))]
    return [f"#{next(numbers)} {plan.describe()}", *own, *branches(inputs)]


def responses(plan: Plan, switch: Switch) -> Iterator[str]:
    """Yield lines on the responses of a node."""
    if isinstance(plan, Scan):
        yield "receives what all its readers disclaim"
        return
    by_rule: dict[Rule, list[str]] = {}
    for attribute in plan.schema:
        sample = _SAMPLES.get(attribute.type, 0)
        rising, falling = (plan.respond(Pattern.of({attribute.name: r})) for r in (above(sample), below(sample)))
        if rising.rule == falling.rule:
            by_rule.setdefault(rising.rule, []).append(attribute.name)
        else:
            by_rule.setdefault(rising.rule, []).append(f"{attribute.name} >")
            by_rule.setdefault(falling.rule, []).append(f"{attribute.name} <")
    for rule, columns in by_rule.items():
        yield f"{', '.join(columns)}: {_told(rule, plan, switch)}"
    if patterns := refused(plan):
        yield f"disclaims {', '.join(map(str, patterns))} of its input from the start"
    if str(switch):
        yield str(switch)


def _told(rule: Rule, plan: Plan, switch: Switch) -> str:
    if rule.reach is Reach.NONE:
        return f"guards its output: {rule.why}"
    acts = switch.exploit == "on" or (switch.exploit == "guard" and not rule.atomic)
    if not acts and not (rule.relays and switch.propagate):
        why = ": it must act on what it passes on" if switch.propagate else ""
        return f"guards its output{why}"
    guards = rule.guards if len(plan.inputs) == 1 or rule.reach is not Reach.EVERY else "its inputs"
    told = [f"guards {guards}"] if acts else []
    told += [f"purges {rule.purges}"] if rule.purges and switch.exploit == "on" else []
    told += [f"passes on {rule.passes}"] if switch.propagate else []
    return ", ".join(told)
