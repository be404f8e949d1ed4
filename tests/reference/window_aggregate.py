"""Window aggregate, tuple at a time: every window is found by its interval, every value is kept until it is needed."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from millstream.algebra.aggregate.call import AggregateCall
from millstream.algebra.punctuation.pattern import Pattern
from millstream.algebra.punctuation.punctuations import Punctuations, PunctuationSet
from millstream.algebra.punctuation.restriction import ANY, Form, Restriction, below, between
from millstream.algebra.schema import NEVER, TS
from tests.reference.aggregate import apply

Row = dict[str, Any]


def interval(times: Restriction) -> tuple[float, float]:
    """The integers from the first on, before the last; none for single times. `<= v` counts as `< v`."""
    if times.form is not Form.INTERVAL:
        return 0, 0
    first = -math.inf if times.lo is None else times.lo if times.lo_closed else times.lo + 1
    return first, math.inf if times.hi is None else times.hi


@dataclass
class WindowAggregateReference:
    """Times are plain integers. `attribute` is the windowing column, and `time`
    the visible time column of the stream; `time_closes` says that bounds on the stream's time close windows."""

    range: int | None
    slide: int
    group: tuple[str, ...]
    calls: tuple[AggregateCall, ...]
    time: str | None = "ts"
    attribute: str | None = None
    state: dict[tuple[Any, ...], list[Row]] = field(default_factory=dict)
    rows: list[Row] = field(default_factory=list)
    punctuations: list[Pattern] = field(default_factory=list)
    put_out: PunctuationSet = field(default_factory=PunctuationSet)
    complete: list[tuple[float, float]] = field(default_factory=list)

    def tuple_(self, row: Row) -> None:
        group = tuple(row[name] for name in self.group)
        if self.range is None:
            self.state.setdefault((None, *group), []).append(row)
            return
        time = row[self.attribute or TS]
        if time is None:
            return
        end = (time // self.slide) * self.slide - 2 * self.slide
        while end <= time + self.range + self.slide:
            if end % self.slide == 0 and end - self.range <= time < end:
                self.state.setdefault((end, *group), []).append(row)
            end += self.slide

    def punctuation(self, pattern: Pattern) -> None:
        column = None if self.range is None else self.attribute or self.time
        if not pattern.attributes <= {*self.group, *([column] if column else [])}:
            return
        out = {name: pattern.get(name) for name in self.group if name != column}
        if column is not None and column in pattern.attributes:
            first, last = interval(pattern.get(column))
            if first >= last:
                return
            if pattern.attributes == {column} and last < math.inf:
                first, last = self.joined(first, last)
            ends = self.ends(first, last)
            if ends is None:
                return
            out["window_end"] = ends
        made = Pattern.of(out)
        if len(self.put_out.add(Punctuations.of([made]))):
            self.close(made)
            self.punctuations.append(made)
            if "window_end" in made.attributes:  # all these windows have started `range` before
                assert self.range is not None
                end = made.get("window_end")
                low, high = (None if at is None else at - self.range for at in (end.lo, end.hi))
                start = between(low, high, False, True)
                self.punctuations.append(Pattern.of({**out, "window_end": ANY, "window_start": start}))

    def joined(self, first: float, last: float) -> tuple[float, float]:
        """The instants that are known to be complete around these."""
        self.complete.append((first, last))
        for _ in self.complete:
            for low, high in self.complete:
                if low <= last and high >= first:
                    first, last = min(first, low), max(last, high)
        return first, last

    def ends(self, first: float, last: float) -> Restriction | None:
        """The ends of the windows within these instants, after the end before the first of them."""
        assert self.range is not None
        high = None if last == math.inf else int(last) // self.slide * self.slide
        if first == -math.inf:
            return below(high, True)
        low = int(first) - int(first) % self.slide - 2 * self.slide
        while low - self.range < first:
            low += self.slide
        return None if high is not None and low > high else between(low - self.slide, high, False, True)

    def bound(self, value: int) -> None:
        if self.range is not None and self.attribute is None and value > NEVER:
            self.close(Pattern.of(window_end=below(value // self.slide * self.slide, True)))
        elif self.time in self.group and value > NEVER:  # no later tuple has a time below it
            self.close(Pattern.of({self.time: below(value)}))

    def close(self, pattern: Pattern) -> None:
        for key in sorted(self.state, key=lambda key: tuple((part is None, part) for part in key)):
            named = dict(zip(("window_end", *self.group), key, strict=True))
            if pattern.matches(named):
                self.rows.append(self.result(named, self.state.pop(key)))

    def close_all(self) -> None:
        self.close(Pattern.of({}))

    def result(self, named: Row, members: list[Row]) -> Row:
        made = dict(named)
        newest = max(row[TS] for row in members)
        made[TS] = newest if self.range is None or self.attribute else named["window_end"] - 1
        if self.range is None:
            del made["window_end"]
        else:
            made["window_start"] = named["window_end"] - self.range
        for call in self.calls:
            made[call.name] = apply(call, members)
        return made
