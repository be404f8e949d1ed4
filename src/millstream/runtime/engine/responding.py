"""The response of an operator to feedback: its rule, and its switches, decide.

| intent | the operator |
|---|---|
| assumed `~` | guards the inputs that may omit tuples, drops what it holds of them, and passes the patterns on |
| | or watches its groups for those that match for good, and gives them up |
| desired `?` | passes on which tuples of its inputs are wanted first |
| demanded `!` | never sees it: it is a prod (`algebra/early.py`) |

Feedback that no input can act on stops here; it is counted.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from millstream.algebra.feedback import Feedback, Intent, Withdrawal
from millstream.algebra.punctuation.pattern import Pattern
from millstream.algebra.response import Response
from millstream.algebra.upstream import Answer, Upstream
from millstream.runtime.operator.capabilities import Watches, answered, disclaim, unwatch
from millstream.strategies import Owner
from millstream.switches import Switches

if TYPE_CHECKING:
    from millstream.runtime.engine.graph import Graph
    from millstream.runtime.engine.nodes import OperatorNode

Passed = tuple[tuple[int, Upstream], ...]


def answer(node: OperatorNode, message: Feedback | Withdrawal) -> Answer:
    """Return the answer of an operator to feedback, or to its withdrawal."""
    responses = _responses(node, message.pattern)
    if isinstance(message, Withdrawal):
        unwatch(node.operator, message.pattern.covers)
        below = [pair for response in responses.values() for pair in enumerate(response.omitted)]
        return Answer(tuple((port, replace(message, pattern=p)) for port, p in below if p is not None))
    node.counters.told += 1
    node.counters.stopped += not any(responses.values())
    if message.intent is not Intent.ASSUMED:
        own = answered(node.operator, message)
        return replace(own, passed=(*own.passed, *passed(node, message)))
    if not message.pattern.items:
        return _nothing_wanted(node, message)
    if not any(responses.values()) and node.switch.exploit == "on":
        first = next((each.omitted for each in responses.values()), ())
        disclaim(node.operator, message.pattern, first, results=True)
    answers = [_assumed(node, replace(message, pattern=p), r) for p, r in responses.items() if r]
    return Answer(
        tuple(sent for each in answers for sent in each.passed),
        abandoned=tuple(pattern for each in answers for pattern in each.abandoned),
    )


def _responses(node: OperatorNode, pattern: Pattern) -> dict[Pattern, Response]:
    """Return the responses of an operator to a pattern, or to the parts of it; none without rules."""
    response = None if node.respond is None else node.respond(pattern)
    if response is None or node.respond is None:
        return {}
    return {part: node.respond(part) for part in response.parts} or {pattern: response}


def _nothing_wanted(node: OperatorNode, message: Feedback) -> Answer:
    """No result at all is wanted, so no input is."""
    everything = (message.pattern,) * len(node.ports)
    if node.switch.exploit != "on":
        return Answer()
    disclaim(node.operator, message.pattern, everything)
    return Answer(tuple((port, message) for port in range(len(node.ports))))


def _assumed(node: OperatorNode, message: Feedback, response: Response) -> Answer:
    acts = _acts(node, response)
    if response.watched is not None:
        if not acts or not isinstance(node.operator, Watches):
            return Answer()
        return Answer(abandoned=node.operator.watch(response.watched))
    if acts and node.switch.exploit == "on":
        disclaim(node.operator, message.pattern, response.omitted)
    return Answer(passed(node, message))


def _acts(node: OperatorNode, response: Response) -> bool:
    """Return whether an operator acts on feedback itself. If guard and purge are one step, a guard alone is too
    little."""
    if node.switch.exploit == "guard":
        return not response.rule.atomic
    return node.switch.exploit == "on"


def passed(node: OperatorNode, message: Feedback) -> Passed:
    """Return the messages for the inputs of an operator. What it does not act on itself is relayed, if that is
    correct."""
    found: list[tuple[int, Upstream]] = []
    for response in _responses(node, message.pattern).values():
        relayed = message.intent is Intent.ASSUMED and not _acts(node, response)
        if not response or (relayed and not (node.switch.propagate and response.rule.relays)):
            continue
        below = ((port, p) for port, p in enumerate(response.omitted) if p is not None)
        found += ((port, replace(message, pattern=p, relayed=relayed)) for port, p in below)
    return tuple(found)


def set_switches(graph: Graph, switches: Switches, owners: Mapping[str, Collection[Owner]]) -> None:
    """Set the switches of every operator; `owners` has its queries. They hold for feedback from now on, and for
    what operators ignore by themselves."""
    for name, own in owners.items():
        node = graph.operators[name]
        before, node.switch = node.switch, switches.of(own)
        acted = before.exploit == "on"
        if acted and node.switch.exploit != "on":
            unwatch(node.operator, lambda _: True)
        elif not acted and node.switch.exploit == "on":
            for port in node.buffer.ports:
                graph.repeat_own(port)
        if node.switch.propagate and not before.propagate:
            for port in node.ports:
                graph.repeat_own(port)
        elif before.propagate and not node.switch.propagate:
            for message in node.port.standing:
                graph.send(node.port, Withdrawal(message.pattern))
