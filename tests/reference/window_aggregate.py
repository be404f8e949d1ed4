"""Window aggregate, tuple at a time: every window is found by its interval, every value is kept until it is needed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from millstream.algebra.aggregate.call import AggregateCall
from millstream.algebra.punctuation.pattern import Pattern
from millstream.algebra.punctuation.punctuations import Punctuations, PunctuationSet
from millstream.algebra.punctuation.restriction import ANY, below
from millstream.algebra.schema import NEVER, TS
from tests.reference.aggregate import apply

Row = dict[str, Any]


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
            bound = pattern.get(column)
            if not bound.is_upper:
                return
            out["window_end"] = below(bound.hi // self.slide * self.slide, True)
        made = Pattern.of(out)
        if len(self.put_out.add(Punctuations.of([made]))):
            self.close(made)
            self.punctuations.append(made)
            if "window_end" in made.attributes:  # all these windows have started `range` before
                assert self.range is not None
                start = below(made.get("window_end").hi - self.range, True)
                self.punctuations.append(Pattern.of({**out, "window_end": ANY, "window_start": start}))

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
