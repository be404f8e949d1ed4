"""Columns on which punctuation only repeats what punctuation on another column of the result says.

A projection that emits time and something that rises with it, as in `SELECT ts, ts + 5 AS t`, has punctuation on both:
operators above use either. A result shows the first alone.
"""

from __future__ import annotations

from millstream.logical.nodes.project import Project
from millstream.logical.plan import Names, Plan


def repeats(plan: Plan) -> Names:
    """Return the columns of a plan on which punctuation repeats that on another column."""
    return frozenset(_repeats(plan))


def _repeats(plan: Plan) -> dict[str, str]:
    """Map such columns to the other ones."""
    found = plan.repeats() if isinstance(plan, Project) else {}
    below = [_repeats(part) for part in plan.inputs]
    if not any(below):
        return found
    joined = {name for group in plan.equal_columns for name in group}
    origins = {name: plan.copied(name) for name in plan.schema.names}
    for name, places in origins.items():
        # Punctuation on a key of a join may come from the other side.
        if name in found or name in joined or not places or not all(column in below[i] for i, column in places):
            continue
        said = tuple((i, below[i][column]) for i, column in places)
        other = next((peer for peer, own in origins.items() if own == said), None)
        if other is not None:
            found[name] = other
    return found
