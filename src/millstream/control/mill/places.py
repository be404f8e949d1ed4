"""Checks that the operators which `SET strategy` and `SET breaks` name exist."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from millstream.errors import OptionError, did_you_mean
from millstream.logical import nodes
from millstream.logical.plan import NODES
from millstream.physical.plan.compile import labels
from millstream.strategies import Place

if TYPE_CHECKING:
    from millstream.control.mill.base import Mill
    from millstream.control.mill.running_query import RunningQuery


def check_places(mill: Mill, places: Iterable[Place]) -> None:
    """Refuse a place that names an unknown query, an operator that its query lacks, an unknown kind of operator, or a
    number that no running query has of its kind."""
    for place in places:
        if place.query is None:
            nodes.load()
            known = sorted({node.__name__.lower() for node in NODES.values() if node.runs})
            if place.kind not in known:
                raise _unknown(place, known)
            if place.number is None:
                continue
        owners = [mill.query(place.query)] if place.query is not None else list(mill.queries.values())
        shown = [(query.name, label) for query in owners for label in _labels(mill, query)]
        if not any(map(place.covers, shown)):
            raise _unknown(place, [f"{query}.{label.lower()}" for query, label in shown] or [place.kind])


def _labels(mill: Mill, query: RunningQuery) -> list[str]:
    return [label for part in mill.prepare(query.name, query.plan) for label in labels(part.plan).values()]


def _unknown(place: Place, known: list[str]) -> OptionError:
    hint = did_you_mean(str(place), known) or f"one of {', '.join(known)}"
    return OptionError("M6033", f"unknown operator '{place}'", hint=hint)
