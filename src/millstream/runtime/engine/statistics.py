"""Counters of a running graph: per operator, source and sink."""

from __future__ import annotations

from dataclasses import dataclass

from millstream.algebra.values import fields_of, value
from millstream.runtime.engine.gate import GuardReading


@value("counters")
@dataclass(slots=True)
class Counters:
    """Running totals of one node. `ets` counts enabling timestamps: promised (source) or received in a register;
    `disclaimed` the tuples that guards have dropped; `told` the feedback received, `stopped` that of it for which no
    input may omit anything."""

    steps: int = 0
    tuples_in: int = 0
    tuples_out: int = 0
    punctuations_in: int = 0
    punctuations_out: int = 0
    nanoseconds: int = 0
    ets: int = 0
    disclaimed: int = 0
    told: int = 0
    stopped: int = 0


@value("node_statistics")
@dataclass(frozen=True, slots=True)
class NodeStatistics:
    """A reading. `cost` is microseconds per input tuple, `buffered` the tuples that wait at the node's ports, `state`
    the tuples or groups that the operator holds, `seconds` the total time of its steps, `late` the tuples that it
    counted as late, `macro` its transition macro, `disclaimed` the tuples that feedback has made it drop, on arrival
    or while it held them, `aside` the tuples held that wait behind newer ones, `shed` those that it has dropped to
    keep up, `guards` the first patterns of its guards, `told` the feedback received, `stopped` that of it which it
    could not pass on."""

    name: str
    kind: str
    steps: int
    tuples_in: int
    tuples_out: int
    punctuations_in: int
    punctuations_out: int
    ets: int
    cost: float
    buffered: int
    state: int
    seconds: float = 0.0
    late: int = 0
    macro: str = ""
    disclaimed: int = 0
    guards: tuple[str, ...] = ()
    tests: tuple[GuardReading, ...] = ()
    told: int = 0
    stopped: int = 0
    aside: int = 0
    shed: int = 0

    @property
    def selectivity(self) -> float | None:
        """Output tuples per input tuple; None before the first."""
        return self.tuples_out / self.tuples_in if self.tuples_in else None


def reading(
    name: str,
    kind: str,
    counters: Counters,
    *,
    buffered: int = 0,
    state: int = 0,
    late: int = 0,
    pruned: int = 0,
    aside: int = 0,
    shed: int = 0,
    macro: str = "",
    guards: tuple[str, ...] = (),
    tests: tuple[GuardReading, ...] = (),
) -> NodeStatistics:
    """
    >>> reading("s", "Select", Counters(steps=2, tuples_in=4, tuples_out=3, nanoseconds=8_000)).cost
    2.0
    """
    held = {name: getattr(counters, name) for name in fields_of(Counters)}
    nanoseconds = held.pop("nanoseconds")
    held["disclaimed"] += pruned
    return NodeStatistics(
        name=name,
        kind=kind,
        cost=nanoseconds / 1000 / counters.tuples_in if counters.tuples_in else 0.0,
        buffered=buffered,
        state=state,
        seconds=nanoseconds / 1e9,
        late=late,
        aside=aside,
        shed=shed,
        macro=macro,
        guards=guards,
        tests=tests,
        **held,
    )
