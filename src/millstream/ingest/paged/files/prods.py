"""A split of text files, cut at the prods in it (`prod_lines`): a prod keeps its place among the rows.

The number of a prod is that of its place in its file: whichever task reads it, and however often, it is the same prod.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from millstream.algebra.early import Prod
from millstream.ingest.paged.files.formats import FileSplit, Part
from millstream.ingest.paged.files.partitions import format_of
from millstream.ingest.paged.files.prod_lines import prod_of
from millstream.ingest.paged.files.text import TextFormat
from millstream.ingest.paged.split import Split
from millstream.ingest.paged.stretch import Stretch


def stretches(split: Split) -> list[tuple[Split, tuple[Prod, ...]]]:
    """Return the split cut at its prods: each stretch with the prods right before it."""
    format_: Any = format_of(split.format, split.parts[0].file) if isinstance(split, FileSplit) else None
    if not isinstance(split, FileSplit) or not isinstance(format_, TextFormat) or not format_.prods:
        return [(split, ())]
    places, done = [0], 0
    found: list[tuple[Prod, ...]] = [()]
    for part in split.parts:
        placed, rows = _placed(format_of(split.format, part.file), part)
        for place, prod in placed:
            if done + place == places[-1]:
                found[-1] = (*found[-1], prod)
            else:
                places.append(done + place)
                found.append((prod,))
        done += rows
    if not any(found):
        return [(split, ())]
    ends = [*places[1:], done]
    last = len(ends) - 1
    return [
        (Stretch(split, first, end, at == last), own)
        for at, (first, end, own) in enumerate(zip(places, ends, found, strict=True))
    ]


def _placed(format_: TextFormat, part: Part) -> tuple[list[tuple[int, Prod]], int]:
    """Return the prods of a part, each with the number of rows before it, and the number of rows."""
    lines = format_.lines(part)
    held = [(at, prod) for at, line in enumerate(lines) if isinstance(prod := prod_of(line, format_), Prod)]
    rows = format_.read_all(part)
    bad = np.array(rows.bad_places, dtype=np.int64)
    made = []
    for number, (at, prod) in enumerate(held):
        before = at - number
        place = before - int(np.count_nonzero(bad < before))
        name = f"{part.file.path}:{part.first}:{at}"
        made.append((place, replace(prod, number=name)))
    return made, rows.frame.height
