"""The contract of a query as a picture (SVG): the result on top, an edge for each stream between operators.

An edge has the scheme that is passed on; what the operators above rely on is bold. Operators with unbounded state, and
the edges that promise too little, are red.
"""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from textwrap import wrap
from typing import TYPE_CHECKING

from millstream.logical.contract.accordance import Agreed
from millstream.logical.contract.offers import Offers

if TYPE_CHECKING:
    from millstream.logical.contract.query_contract import QueryContract

WIDTH, GAP, LINE, PAD = 300, 24, 16, 10
"""Of a box: its width, the gap beside it, the height of a line, the margin inside."""
RISE = 56
"""The height of an edge."""
LETTERS = 44
"""Letters in a line of a box."""
GOOD, BAD, INK, FAINT = "#e8f1e4", "#f9e0dd", "#1d1d1f", "#6a6a70"


def drawn(contract: QueryContract) -> str:
    """Return the picture of a contract."""
    root = contract.root
    depth = _depths(root)
    heights = [max(_height(node) for node in root.walk() if depth[node.number] == at) for at in range(_levels(depth))]
    tops = [PAD + sum(heights[:at]) + at * RISE for at in range(len(heights))]
    lanes = _lanes(root)
    width = 2 * PAD + (max(lanes.values()) + 1) * (WIDTH + GAP)
    caption = _caption(contract)
    bottom = tops[-1] + heights[-1] + LINE
    height = bottom + LINE * (len(caption) + 1)
    places = {n: (PAD + lanes[n] * (WIDTH + GAP), float(tops[depth[n]])) for n in lanes}
    body = [*_edges(contract, places), *(line for node in root.walk() for line in _box(node, *places[node.number]))]
    body += [_text(PAD, bottom + LINE * at, line) for at, line in enumerate(caption)]
    style = f"font-family: sans-serif; font-size: 12px; fill: {INK}"
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" style="{style}">'
    return "\n".join([head, *body, "</svg>"])


def _caption(contract: QueryContract) -> list[str]:
    from millstream.logical.contract.explain import conclusion, verdict

    lines = [*conclusion(contract), verdict(contract.root)]
    return [piece for line in lines for piece in wrap(line, 2 * LETTERS)]


def _depths(root: Agreed) -> dict[int, int]:
    found = {root.number: 0}
    for node in reversed(list(root.walk())):
        found |= {input_.number: found[node.number] + 1 for input_ in node.inputs}
    return found


def _levels(depths: dict[int, int]) -> int:
    return max(depths.values()) + 1


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


def _lines(node: Agreed) -> Iterator[tuple[str, bool]]:
    """The lines of a box, and whether each is bold."""
    for line in wrap(f"#{node.number} {node.plan.describe()}", LETTERS)[:2]:
        yield line, True
    for part in node.parts:
        text = f"{part.name}: bounded by {part.bounds[0]}" if part.bounded else f"{part.name}: UNBOUNDED: {part.lacks}"
        for line in wrap(text, LETTERS):
            yield line, not part.bounded


def _height(node: Agreed) -> int:
    return 2 * PAD + LINE * len(list(_lines(node)))


def _box(node: Agreed, x: float, y: float) -> Iterator[str]:
    fill = GOOD if all(part.bounded for part in node.parts) else BAD
    size = f'width="{WIDTH}" height="{_height(node)}"'
    yield f'<rect x="{x:.0f}" y="{y:.0f}" {size} rx="6" fill="{fill}" stroke="{FAINT}"/>'
    for at, (line, bold) in enumerate(_lines(node)):
        yield _text(x + PAD, y + PAD + LINE * (at + 0.75), line, bold=bold)


def _edges(contract: QueryContract, places: dict[int, tuple[float, float]]) -> Iterator[str]:
    refused = contract.root.refused
    for node in contract.root.walk():
        for place, input_ in enumerate(node.inputs):
            lacks = refused is not None and refused.reader == node.number and input_.number in refused.antecedents
            used = node.relies[place] != Offers() if place < len(node.relies) else False
            (x, y), (to_x, to_y) = places[input_.number], places[node.number]
            end = to_y + _height(node)
            stroke = "#c0392b" if lacks else FAINT
            dash = ' stroke-dasharray="6 4"' if lacks else ""
            line = f'x1="{x + WIDTH / 2:.0f}" y1="{y:.0f}" x2="{to_x + WIDTH / 2:.0f}" y2="{end:.0f}"'
            yield f'<line {line} stroke="{stroke}" stroke-width="{3 if used else 1.5}"{dash}/>'
            leans = to_x > x
            label = wrap(str(input_.offers), LETTERS // 2, max_lines=3, placeholder=" …")
            for up, part in enumerate(reversed(label)):
                at = x + WIDTH / 2 + (-8 if leans else 8), y - 10 - LINE * up
                yield _text(*at, part, bold=used, fill=stroke, end=leans)


def _text(x: float, y: float, text: str, *, bold: bool = False, fill: str = INK, end: bool = False) -> str:
    """Text that begins at a point, or ends there."""
    style = (' font-weight="bold"' if bold else "") + (' text-anchor="end"' if end else "")
    return f'<text x="{x:.0f}" y="{y:.0f}" fill="{fill}"{style}>{escape(text)}</text>'
