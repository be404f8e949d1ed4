"""The contract of a query as a picture (SVG): the result on top, an edge for each stream between operators.

An edge has the scheme that is passed on; one that the operators above rely on is thick. Operators with unbounded state,
and the edges that promise too little, are red.
"""

from __future__ import annotations

from collections.abc import Iterator
from io import StringIO
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from millstream.logical.contract.accordance import Agreed
from millstream.logical.contract.offers import Offers

if TYPE_CHECKING:
    from millstream.logical.contract.query_contract import QueryContract

LETTERS = 44
"""Letters in a line of a box."""
BOX, LINE, RISE = 4.0, 0.2, 0.9
"""Inches: the width of a box, the height of a line of text, the height of an edge."""
GOOD, BAD, FAINT, LACKING = "#e8f1e4", "#f9e0dd", "#6a6a70", "#c0392b"


def drawn(contract: QueryContract) -> str:
    """Return the picture of a contract."""
    from matplotlib.figure import Figure

    root, refused = contract.root, contract.root.refused
    depth, lanes, texts = _depths(root), _lanes(root), {node.number: list(_lines(node)) for node in root.walk()}
    levels = range(max(depth.values()) + 1)
    heights = [max(LINE * (len(texts[n]) + 2) for n in texts if depth[n] == level) for level in levels]
    middle = {n: sum(heights[: depth[n]]) + RISE * depth[n] + heights[depth[n]] / 2 for n in texts}
    caption = _caption(contract)
    bottom = sum(heights) + RISE * levels[-1] + LINE
    figure = Figure(figsize=(BOX * (max(lanes.values()) + 1), bottom + LINE * (len(caption) + 1)))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(-0.5, max(lanes.values()) + 0.5), ylim=(figure.get_figheight(), 0))
    axes.set_axis_off()
    for node in root.walk():
        place = lanes[node.number], middle[node.number]
        for at, input_ in enumerate(node.inputs):
            lacks = refused is not None and refused.reader == node.number and input_.number in refused.antecedents
            used = node.relies[at] != Offers() if at < len(node.relies) else False
            x, y = lanes[input_.number], middle[input_.number]
            colour, style, weight = LACKING if lacks else FAINT, "--" if lacks else "-", "bold" if used else "normal"
            axes.plot((x, place[0]), (y, place[1]), style, color=colour, linewidth=3 if used else 1.5, zorder=1)
            label = "\n".join(wrap(str(input_.offers), LETTERS // 2, max_lines=3, placeholder=" …"))
            up, side = y - heights[depth[input_.number]] / 2 - LINE / 2, "right" if x > place[0] else "left"
            axes.text(x, up, f"  {label}  ", ha=side, va="bottom", color=colour, weight=weight, fontsize=8)
        fill = GOOD if all(part.bounded for part in node.parts) else BAD
        box = {"boxstyle": "round", "facecolor": fill, "edgecolor": FAINT}
        axes.text(*place, "\n".join(texts[node.number]), ha="center", va="center", fontsize=8, bbox=box)
    axes.text(-0.48, bottom, "\n".join(caption), va="top", fontsize=9)
    return svg_of(figure)


def svg_of(figure: Any) -> str:
    """A figure as SVG, whose texts are texts: to be searched and copied."""
    from matplotlib import rc_context

    made = StringIO()
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "millstream", "text.parse_math": False}):
        figure.savefig(made, format="svg", metadata={"Date": None})
    return made.getvalue()[made.getvalue().index("<svg") :]


def _caption(contract: QueryContract) -> list[str]:
    from millstream.logical.contract.explain import conclusion, verdict

    lines = [*conclusion(contract), verdict(contract.root)]
    return [piece for line in lines for piece in wrap(line, 2 * LETTERS)]


def _depths(root: Agreed) -> dict[int, int]:
    found = {root.number: 0}
    for node in reversed(list(root.walk())):
        found |= {input_.number: found[node.number] + 1 for input_ in node.inputs}
    return found


def _lanes(root: Agreed) -> dict[int, float]:
    """The lane of each node: leaves from left to right, others above the middle of their inputs."""
    found: dict[int, float] = {}
    leaves = 0
    for node in root.walk():
        if node.inputs:
            found[node.number] = sum(found[input_.number] for input_ in node.inputs) / len(node.inputs)
        else:
            found[node.number], leaves = leaves, leaves + 1
    return found


def _lines(node: Agreed) -> Iterator[str]:
    """The lines of a box."""
    yield from wrap(f"#{node.number} {node.plan.describe()}", LETTERS)[:2]
    for part in node.parts:
        text = f"{part.name}: bounded by {part.bounds[0]}" if part.bounded else f"{part.name}: UNBOUNDED: {part.lacks}"
        yield from wrap(text, LETTERS)
