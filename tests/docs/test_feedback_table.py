"""The table of responses in docs/feedback.md is made of the rules of the nodes."""

from __future__ import annotations

import os
import re

from millstream.algebra.response import Reach, Rule
from millstream.logical import nodes
from millstream.logical.nodes.kinds.common import Leaf
from millstream.logical.plan import NODES, Plan
from millstream.physical.plan import consensus, exchange, placeholders  # noqa: F401 - their nodes
from tests.paths import DOCS

HEAD = "| operator | feedback on | guards | drops of its state | passes on | nothing more, since |"


def test_the_table_of_responses() -> None:
    page = DOCS / "feedback.md"
    text = page.read_text(encoding="utf-8")
    (table,) = re.findall(rf"{re.escape(HEAD)}(?:\n\|.*)+", text)
    if os.environ.get("MILLSTREAM_UPDATE_GOLDEN"):
        page.write_text(text.replace(table, printed()), encoding="utf-8")
    else:
        assert table == printed()


def printed() -> str:
    """One row a rule; nodes with equal rules share their rows."""
    nodes.load()
    by_rules: dict[tuple[Rule, ...], list[type[Plan]]] = {}
    for node in sorted(NODES.values(), key=lambda node: node.stem):
        if node.runs and not issubclass(node, Leaf) and node.__module__.startswith("millstream."):
            by_rules.setdefault(node.rules, []).append(node)
    lines = [HEAD, "|" + "---|" * 6]
    for rules, sharing in sorted(by_rules.items(), key=lambda item: (item[0][0].reach is Reach.NONE, item[1][0].stem)):
        named = ", ".join(dict.fromkeys(linked(node) for node in sharing))
        lines += [row(rule, named if place == 0 else "") for place, rule in enumerate(rules)]
    return "\n".join(lines)


def linked(node: type[Plan]) -> str:
    page = node.page or node.stem
    return f"[{node.stem.replace('_', ' ')}](operators/{page}.md)"


def row(rule: Rule, named: str) -> str:
    purged = f"{rule.purges}, with the guard" if rule.atomic and rule.reach is Reach.EVERY else rule.purges
    passed = "" if rule.why else rule.passes if rule.relays else f"{rule.passes}, if it acts itself"
    return f"| {named} | {rule.when} | {rule.guards} | {purged} | {passed} | {rule.why} |"
