"""Which parts of several plans are the same, and so need to run only once.

Plans are values: after canonicalisation, two queries that start alike have equal sub-plans.
"""

from __future__ import annotations

from collections.abc import Iterable

from millstream.logical.plan import Plan


def shared_prefixes(plans: Iterable[Plan]) -> tuple[Plan, ...]:
    """The largest sub-plans that stand at two places or more, in the order in which they are met.

    A sub-plan that only ever stands inside a larger shared one is not listed.
    """
    plans = tuple(plans)
    readers: dict[Plan, list[Plan | None]] = {}
    for plan in plans:
        readers.setdefault(plan, []).append(None)
        for node in plan.walk():
            for input_ in node.inputs:
                readers.setdefault(input_, []).append(node)
    return tuple(plan for plan, found in readers.items() if len(found) > 1 and not _inside_larger(found, readers))


def _inside_larger(found: list[Plan | None], readers: dict[Plan, list[Plan | None]]) -> bool:
    """Whether one and the same larger plan reads it, once wherever that stands."""
    first = found[0]
    return first is not None and len(set(found)) == 1 and len(found) == len(readers[first])
