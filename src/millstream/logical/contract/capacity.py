"""Capacity: how much state a query holds at most, and how late its results are, from periods and rates.

A promise comes with a lag: that of `PUNCTUATED ON … EVERY d` is d, that of a watermark its delay, that of an order 0. A
part of the state keeps a tuple until a promise purges it: for the lag of the promise, and if time purges it, for the
length of the window before. So it holds at most rate × residence tuples (Little's law). If several promises purge a
part, the fastest counts. An operator with state passes on punctuation later by the longest residence in it.

The rate of the results of a join does not follow from the rates of its inputs. It is measured too, under the name of
`results`. No bound is known of state that is purged by punctuation without `EVERY`: a period that is measured is no
promise.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from millstream.algebra.aggregate.row_call import RowCall
from millstream.algebra.punctuation.template import UP_TO, Template
from millstream.algebra.schema import TimeKind
from millstream.algebra.types import MICROS
from millstream.logical.contract.accordance import Agreed
from millstream.logical.contract.form import Schemes, outcome
from millstream.logical.contract.offers import Declarations, Offer, Offers, Time
from millstream.logical.contract.state_parts import WAITING, StatePart
from millstream.logical.nodes.kinds.grouped import Grouped
from millstream.logical.nodes.kinds.joining import Joining
from millstream.logical.nodes.over import Over
from millstream.logical.nodes.scan import Scan
from millstream.logical.plan import Plan


@dataclass(frozen=True, slots=True)
class Residence:
    """A part of the state of node `number`: the seconds that it keeps an entry, or the entries that it has at most;
    None: unknown. `sides` are the inputs whose tuples it keeps. `due`: the seconds follow from declared periods
    (EVERY) alone."""

    number: int
    part: str
    sides: tuple[int, ...]
    seconds: float | None = None
    rows: int | None = None
    copies: int = 1
    due: bool = False


@dataclass(frozen=True, slots=True)
class Capacity:
    """What is known before a query runs. `growth`: by node and input, the tuples that come at most for each tuple of
    each stream below, and for each result of joins below."""

    residences: tuple[Residence, ...]
    delay: float | None
    """Seconds after which the results of a tuple are emitted at the latest."""
    growth: Mapping[tuple[int, int], Mapping[str, float]]

    @property
    def due(self) -> bool:
        """True if the bound follows from declared periods (EVERY) alone: a stream breaks its promise that passes it."""
        timed = [each.due for each in self.residences if each.rows is None and each.seconds != 0]
        return bool(timed) and all(timed)

    def rows(self, rates: Mapping[str, float]) -> float | None:
        """Return the most entries that all operators hold, given tuples per second of each stream, and of the results
        of joins; None: unknown. Rates are means of a second at least, so all of its rows may come at once."""
        total = 0.0
        for each in self.residences:
            if each.rows is not None:
                total += each.rows
                continue
            grown = Counter[str]()
            for side in each.sides:
                grown.update(self.growth[each.number, side])
            if each.seconds is None or any(measured(name) and name not in rates for name in grown):
                return None
            rate = sum(rates.get(name, 0.0) * factor for name, factor in grown.items())
            total += rate * (max(1.0, each.seconds) if each.seconds else 0.0) * each.copies
        return total


def results(kind: str) -> str:
    """The name of the rate of results of all operators of a kind in a query."""
    return f"results of {kind}"


def measured(name: str) -> bool:
    return name.startswith("results of ")


@dataclass(slots=True)
class _Edge:
    """What is known of the output of a node: the lags of promises by origin, that of time, tuples by stream, delay."""

    lags: dict[str, float | None] = field(default_factory=dict)
    time: float | None = None
    growth: dict[str, float] = field(default_factory=dict)
    delay: float | None = 0.0

    def lag(self, promise: Offer | Time) -> float | None:
        if isinstance(promise, Time):
            return self.time
        known = [self.lags.get(origin) for origin in promise.origin.split(" and ")]
        return _most(known)

    def later(self, by: float | None) -> dict[str, float | None]:
        return {origin: None if lag is None or by is None else lag + by for origin, lag in self.lags.items()}


def capacity(root: Agreed, declarations: Declarations) -> Capacity:
    """Return what is known of the capacity of a query that has an accordance."""
    found = _Finder(declarations)
    delay = found.edge(root).delay
    return Capacity(tuple(found.residences), delay, found.growth)


class _Finder:
    def __init__(self, declarations: Declarations) -> None:
        self._declarations = declarations
        self.residences: list[Residence] = []
        self.growth: dict[tuple[int, int], Mapping[str, float]] = {}
        self._due: set[str] = set()
        """The origins of promises that have a declared period."""

    def edge(self, node: Agreed) -> _Edge:
        if isinstance(node.plan, Scan):
            return self._scan(node, node.plan)
        below = [self.edge(input_) for input_ in node.inputs]
        self.growth |= {(node.number, place): edge.growth for place, edge in enumerate(below)}
        kept = [self._residence(node, part, below) for part in node.parts]
        self.residences += kept
        longest = _most([each.seconds for each in kept if each.rows is None]) if kept else 0.0
        lags = {origin: lag for edge in below for origin, lag in edge.later(longest).items()}
        time = _most([edge.time for edge in below])
        if node.plan.holds_time:
            time = _sum(time, longest)
        late = [each.seconds for each in kept if each.rows is None and _delays(node.plan, each.part)]
        late += [None for part in node.parts if not part.delivers]
        delay = _sum(_most([edge.delay for edge in below]), _most(late) if late else 0.0)
        return _Edge(lags, time, _grown(node.plan, [edge.growth for edge in below]), delay)

    def _scan(self, node: Agreed, scan: Scan) -> _Edge:
        definition = self._declarations.streams.get(scan.stream)
        edge = _Edge(growth={scan.stream: 1.0})
        if definition is None:
            return edge
        lags = {template: period / MICROS for template, period in definition.periods}
        if definition.watermark is not None:
            rising = Template(((str(definition.schema.time), UP_TO),))
            lags[rising] = definition.watermark / definition.schema.unit
        due = {template for template, _ in definition.periods}
        self._due.update(offer.origin for offer in node.offers.templates if offer.template in due)
        for offer in node.offers.templates:
            edge.lags[offer.origin] = 0.0 if offer.seen else lags.get(offer.template)
        clocks = [edge.lags.get(clock) for clock in node.offers.clocks]
        moving = definition.schema.ordered or definition.schema.kind is not TimeKind.EXTERNAL
        edge.time = 0.0 if moving else _most(clocks)
        return edge

    def _residence(self, node: Agreed, part: StatePart, below: list[_Edge]) -> Residence:
        sides = tuple(range(len(below))) if part.name == WAITING else (part.side,)[: len(below)]
        if part.rows is not None:
            return Residence(node.number, part.name, sides, rows=part.rows)
        found = [(seconds, not due) for seconds, due in self._ways(node, part, below) if seconds is not None]
        seconds, free = min(found, default=(None, True))
        return Residence(node.number, part.name, sides, seconds, copies=part.copies, due=not free)

    def _ways(self, node: Agreed, part: StatePart, below: list[_Edge]) -> Iterator[tuple[float | None, bool]]:
        """Yield how long entries stay, by each promise that bounds the part alone, or by all that are relied on; and
        whether it follows from declared periods."""
        inputs: Schemes = tuple(input_.offers for input_ in node.inputs)
        none: Schemes = tuple(Offers() for _ in inputs)
        alone = False
        if _bounds(node.plan, none, part.name):  # by its size, whatever is promised: only time purges it, if anything
            yield self._kept(node, part, 0, inputs[0].time, below[0].time) if below else None, False
            return
        for place, offers in enumerate(inputs):
            timed = Offers(offers.time, offers.clocks)
            promises: list[tuple[Offer | Time, Offers]] = [
                (offer, Offers(templates=(offer,))) for offer in offers.templates
            ]
            for promise, scheme in [*promises, (offers.time, timed)]:
                if _bounds(node.plan, (*none[:place], scheme, *none[place + 1 :]), part.name):
                    alone = True
                    yield self._kept(node, part, place, promise, below[place].lag(promise)), self._is_due(promise)
        if not alone:
            used = [
                (self._kept(node, part, place, promise, below[place].lag(promise)), self._is_due(promise))
                for place, offers in enumerate(node.relies)
                for promise in (*offers.templates, *([offers.time] if offers.time is not Time.STILL else []))
            ]
            waits = any(offers.references for offers in node.relies)  # for a tuple that comes at any time
            seconds = _most([each for each, _ in used]) if used and not waits else None
            yield seconds, all(due for _, due in used)

    def _is_due(self, promise: Offer | Time) -> bool:
        return isinstance(promise, Offer) and self._due.issuperset(promise.origin.split(" and "))

    @staticmethod
    def _kept(node: Agreed, part: StatePart, place: int, promise: Offer | Time, lag: float | None) -> float | None:
        """Return how long entries stay if this promise purges them."""
        schema = node.plan.inputs[place].schema
        by_time = isinstance(promise, Time) or any(
            class_ == "+" and name in schema.times for name, class_ in promise.template.classes
        )
        if not by_time:
            return lag
        return None if part.length is None else _sum(lag, part.length / schema.unit)


def _bounds(plan: Plan, inputs: Schemes, name: str) -> bool:
    return all(part.bounded for part in outcome(plan, inputs).parts if part.name == name)


def _delays(plan: Plan, part: str) -> bool:
    """True if results wait as long as a part keeps its entries."""
    return part == WAITING or isinstance(plan, Grouped) or plan.holds_time


def _grown(plan: Plan, below: list[dict[str, float]]) -> dict[str, float]:
    """Return the tuples that a node emits at most for each tuple of each stream, and each result of joins."""
    if isinstance(plan, Joining) or (isinstance(plan, Over) and any(isinstance(c, RowCall) for c in plan.calls)):
        return {results(type(plan).__name__): 1.0}
    copies = plan.lengths[1] if isinstance(plan, Grouped) else 1
    found: dict[str, float] = {}
    for one in below:
        for stream, factor in one.items():
            found[stream] = found.get(stream, 0.0) + factor * copies
    return found


def _most(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return max(known, default=0.0) if len(known) == len(values) else None


def _sum(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else one + other
