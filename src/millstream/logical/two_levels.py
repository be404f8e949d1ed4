"""Two levels of aggregation: partial results by pane below, of which windows are made above.

No window starts or ends within a pane. So a tuple is aggregated once, and not once for each window that holds it.

| the lower level | windows | functions | other conditions |
|---|---|---|---|
| `of_sources`: each page, before it is sent | over the time of the stream | mergeable | no prods, no code of users |
| `of_plan`: a PaneAggregate | overlap; a tuple is in at most `MOST_SPREAD` | mergeable | |
| `of_state`: the aggregate itself | a tuple is in more | any | |

The first two have at most `MOST_PANES` panes a window. An aggregate may have a lower level at the sources and another
one: then the sources compute parts of its panes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.algebra.windower import Windower
from millstream.logical.references import references

if TYPE_CHECKING:
    from millstream.logical.nodes.kinds.grouped import Grouped
    from millstream.logical.nodes.window_aggregate import WindowAggregate

MOST_PANES = 10_000
"""Most panes per window: with shorter panes hardly two tuples share one, and nothing is saved."""
MOST_SPREAD = 100
"""Most windows of a tuple that are held one by one. Of more, panes are held, and windows are made when they close."""


def of_sources(node: Grouped) -> Windower | None:
    """Return the panes that sources may pre-aggregate; None: nothing.

    Windows over another attribute, and groups without windows, may stay open for any length of time. Of groups by time
    itself hardly two tuples would share a partial result. Prods stand among the tuples of the stream, and tasks that
    read streams do not have the code of users.
    """
    windows, time = node.windows, node.input.schema.time
    if windows is None or node.attribute is not None or node.over_panes or node.partials or node.early:
        return None
    if time in node.group or any(True for _ in references(node.input)):
        return None
    return _few_panes(node, windows)


def of_plan(node: WindowAggregate) -> Windower | None:
    """Return the panes of a PaneAggregate below an aggregate; None: it has none."""
    windows = node.windows
    if windows is None or node.over_panes or of_state(node) is not None or windows.length <= windows.step:
        return None
    return _few_panes(node, windows)


def of_state(node: WindowAggregate) -> Windower | None:
    """Return the panes that an aggregate holds itself; None: it holds windows."""
    windows = node.windows
    return None if windows is None or node.over_panes or windows.most <= MOST_SPREAD else windows.panes


def _few_panes(node: Grouped, windows: Windower) -> Windower | None:
    few = windows.length // windows.panes.length <= MOST_PANES
    return windows.panes if few and all(call.mergeable for call in node.aggregates) else None
