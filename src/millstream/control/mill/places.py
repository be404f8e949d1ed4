"""Checks that the operators which `SET strategy`, `breaks`, `exploit` and `propagate` name exist, and may be set so."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from millstream.errors import OptionError, did_you_mean
from millstream.logical import nodes
from millstream.logical.plan import NODES
from millstream.physical.plan.compile import labels
from millstream.strategies import Place, Schedule
from millstream.switches import Switches

if TYPE_CHECKING:
    from millstream.config import Options
    from millstream.control.mill.base import Mill
    from millstream.control.mill.running_query import RunningQuery


def check_operators(mill: Mill, option: str, before: Options) -> None:
    """Refuse an option of operators that names new ones which do not exist, or that must not be set so."""
    if option in ("strategy", "breaks"):
        check_places(mill, mill.schedule().new_places(Schedule.parse(before.strategy, before.breaks)))
    if option in ("exploit", "propagate"):
        switches = switches_of(mill)
        check_places(mill, switches.new_places(Switches.parse(before.exploit, before.propagate)))
        _check_relays(mill, switches)


def switches_of(mill: Mill) -> Switches:
    """The switches of all operators that receive feedback."""
    return Switches.parse(mill.options.exploit, mill.options.propagate)


def _check_relays(mill: Mill, switches: Switches) -> None:
    """Refuse to have a named operator pass on feedback that it does not act on, if its results would be wrong."""
    kinds = {node.__name__: node for node in NODES.values() if node.runs}
    running = [(query.name, label) for query in mill.queries.values() for label in _labels(mill, query)]
    for place, value in (*switches.exploit.rules, *switches.propagate.rules):
        owners = [*running, *(("", kind) for kind in kinds if place.query is None)]
        for owner in filter(place.covers, owners):
            node = kinds[owner[1].partition(" ")[0]]
            if switches.of([owner]).relays_only and not all(rule.relays for rule in node.rules):
                message = f"{node.__name__} must act on feedback that it passes on: '{place}: {value}'"
                detail = "Its inputs would omit tuples of results that it still emits, with wrong values."
                hint = f"SET propagate = 'on; {place}: off' first, or leave exploit on"
                raise OptionError("M6036", message, detail=detail, hint=hint)


def check_places(mill: Mill, places: Iterable[Place]) -> None:
    """Refuse a place that names an unknown query, an operator that its query lacks, an unknown kind of operator, or a
    number that no running query has of its kind."""
    nodes.load()
    for place in places:
        if place.query is None:
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
