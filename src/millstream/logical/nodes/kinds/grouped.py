"""Base class of window and pane aggregates: groups of tuples, per window or pane, that time or punctuation closes.

| held | bounded by |
|---|---|
| windows, panes | time; a template over groups, or over groups and the windowing column `+` |
| groups | a template over groups; a group that follows time; groups that have finitely many values |

A template over groups and the windowing column is passed on over groups and the end `+`. Time is passed on if the
windows are over time, or else if all groups are closed.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator
from typing import Any

from millstream.algebra.aggregate.call import AggregateCall
from millstream.algebra.aggregate.function import Course
from millstream.algebra.names import Groups
from millstream.algebra.punctuation.pattern import Pattern
from millstream.algebra.punctuation.restriction import ANY, Form, Restriction
from millstream.algebra.response import Reach, Rule
from millstream.algebra.schema import Attribute, Schema
from millstream.algebra.types import Type
from millstream.algebra.window_patterns import runs_of, times_of
from millstream.algebra.windower import Windower
from millstream.logical.contract.offers import Offer, Offers, Time, distinct
from millstream.logical.contract.requirements import Punctuated, Requirement, TimeMoves
from millstream.logical.contract.state_parts import StatePart, finite, listed, stream_names, time_stands
from millstream.logical.disclaimed import Omitted
from millstream.logical.non_negative import non_negative
from millstream.logical.plan import Key, Names, Plan, subsets
from millstream.logical.windows import attribute_unit


class Grouped(Plan):
    """`windows`: its windows or panes, if it has any. `attribute` is the windowing attribute (the hidden timestamp by
    default). With `partials` the input has partial
    results of the same calls and groups, by pane, which sources computed."""

    __slots__ = ()

    input: Plan
    windows: Windower | None
    group: tuple[str, ...]
    aggregates: tuple[AggregateCall, ...]
    attribute: str | None
    early: str
    partials: bool
    over_panes = False
    """True if the input has the panes of its windows."""

    rules = (
        Rule(
            "groups, ends of windows",
            Reach.EVERY,
            purges="groups that match",
            passes="the same",
            relays=False,
        ),
        Rule(
            "a value that only moves on into the pattern: `COUNT`, `MAX`, `SUM` of integers from 0 `>`; `MIN` `<`",
            Reach.WATCHED,
            purges="each group once its value matches",
            passes="that group",
            relays=False,
        ),
        Rule(
            "any other value; ends of windows that share all their tuples with others",
            why="a further tuple may move the value out of the pattern, and other windows need the tuples",
        ),
    )
    stateless = False
    punctuates: Names = frozenset()
    equal_columns: Groups = ()

    @property
    def positional(self) -> bool:
        return any(call.ordered for call in self.aggregates)

    @property
    @abstractmethod
    def held(self) -> str:
        """The name of its state in contracts."""

    @property
    @abstractmethod
    def end(self) -> str | None:
        """The output column with the end of a window or a pane; None without windows."""

    @property
    @abstractmethod
    def lengths(self) -> tuple[int | None, int]:
        """How long a window or pane lasts, if the hidden timestamp decides it, and in how many of them a tuple is."""

    @property
    def ends(self) -> tuple[str, ...]:
        """The output columns on which it punctuates when windows or panes close."""
        return () if self.end is None else (self.end,)

    @property
    def windowing(self) -> tuple[str, ...]:
        """The input columns whose upper bounds close windows; none without windows or if the time is hidden."""
        if self.end is None:
            return ()
        if self.attribute is not None:
            return (self.attribute,)
        source = self.input.schema
        return tuple(name for name in source.times if name == source.time or name not in self.group)

    @property
    def timed(self) -> bool:
        """True if the windows are over the hidden timestamp, so that time closes them."""
        return self.end is not None and self.attribute in (None, self.input.schema.time)

    @property
    def following(self) -> tuple[str, ...]:
        """The groups, and a windowing attribute other than time, that follow time, so that it closes them."""
        trails = self.input.schema.trails
        windowing = () if self.end is None or self.attribute is None else (self.attribute,)
        return () if self.timed else tuple(name for name in (*self.group, *windowing) if name in trails)

    def unit(self, source: Schema) -> int:
        """Return the units per second of the windowing attribute."""
        return source.unit if self.attribute is None else attribute_unit(source.type_of(self.attribute).is_integer)

    def end_type(self, source: Schema) -> Type:
        """Return the type of window ends: that of the windowing attribute, or of the stream's time."""
        return Type.BIGINT if self.unit(source) == 1 else Type.TIMESTAMP

    def group_attributes(self, source: Schema) -> tuple[Attribute, ...]:
        return tuple(Attribute(name, source.type_of(name)) for name in self.group)

    # --- EXPLAIN ----------------------------------------------------------------------------------------------------

    def _over(self) -> str:
        return "" if self.attribute is None else f" ON {self.attribute}"

    def _calls(self) -> str:
        by = f" BY {', '.join(self.group)}" if self.group else ""
        calls = f"{by} {', '.join(map(str, self.aggregates))}" if self.aggregates else by
        return f"{calls} of partials" if self.partials else calls

    # --- the optimizer ----------------------------------------------------------------------------------------------

    def copied(self, column: str) -> tuple[tuple[int, str], ...]:
        return ((0, column),) if column in self.group else ()

    # --- feedback ---------------------------------------------------------------------------------------------------

    def disclaimed(self, pattern: Pattern) -> Omitted:
        """Groups, and windows whose tuples are in no other window."""
        found: dict[str, Restriction] = {}
        for name, restriction in pattern.items:
            column, own = (name, restriction) if name in self.group else self.tuples_of(name, restriction)
            if column is None:
                return (None,)
            found[column] = found.get(column, ANY).intersect(own)
        below = Pattern.of(found)
        return (None if below.is_empty or not below.items else below,)

    def parts(self, pattern: Pattern) -> tuple[Pattern, ...]:
        """Ends in a list as ranges of successive windows."""
        ends = ANY if self.end is None else pattern.get(self.end)
        if len(ends.values) < 2 or self.windows is None:
            return ()
        return tuple(Pattern.of({**dict(pattern.items), str(self.end): run}) for run in runs_of(ends, self.windows))

    def tuples_of(self, name: str, restriction: Restriction) -> tuple[str | None, Restriction]:
        """Return the tuples that are only in windows with matching values of a column, as an input column and its
        restriction; no column: none are known."""
        source, column = self.input.schema, self.attribute or self.input.schema.time
        if name != self.end or self.windows is None or column is None:
            return None, ANY
        known = source.type_of(column) is self.end_type(source)
        return (column, times_of(restriction, self.windows)) if known else (None, ANY)

    def watched(self, pattern: Pattern) -> Pattern | None:
        """A pattern over groups, ends and values that only move on into it."""
        keys = {*self.group, *([] if self.end is None else [self.end])}
        calls = {call.name: call for call in self.aggregates}
        values = [(calls.get(name), restriction) for name, restriction in pattern.items if name not in keys]
        return pattern if values and all(call and self._stays(call, r) for call, r in values) else None

    def _stays(self, call: AggregateCall, restriction: Restriction) -> bool:
        """Return whether a result that matches a restriction matches it after further tuples too."""
        rises = restriction.form is Form.INTERVAL and restriction.hi is None
        match call.course:
            case Course.RISES:
                return rises
            case Course.FALLS:
                return restriction.is_upper
            case Course.RISES_FROM_0:  # a sum of fractions may become NaN, which matches nothing
                argument = call.argument or ""  # partial results have no such column
                known = call.type.is_integer and argument in self.input.schema and not self.partials
                return rises and known and non_negative(self.input, argument)
        return False

    # --- partitioning -----------------------------------------------------------------------------------------------

    @property
    def holds_time(self) -> bool:
        """Results that do not have the time of a window must not be overtaken by it."""
        return not self.timed

    @property
    def reads_time(self) -> bool:
        return self.timed or bool(self.following)

    holds_punctuation = False

    def reads_punctuation(self, place: int, columns: Names) -> bool:
        closing = {*self.windowing}
        return columns <= {*self.group} | closing and not (self.timed and columns <= closing)

    def hash_keys(self) -> Iterable[Key]:
        return subsets(list(self.group))

    def keys_below(self, key: Key) -> list[Key] | None:
        return [key] if {*key} <= {*self.group} else None

    # --- the contract -----------------------------------------------------------------------------------------------

    def state_parts(self, inputs: tuple[Offers, ...]) -> tuple[StatePart, ...]:
        (source,) = inputs
        by_time = (self.timed or self.following) and source.time is not Time.STILL
        bounds = [" and ".join(source.clocks)] if by_time else []
        bounds += [offer.origin for offer in source.templates if self._closed_by(offer)]
        if bounds:
            length, copies = self.lengths
            copies = copies if self.held == "windows" else 1
            return (StatePart(self.held, tuple(dict.fromkeys(bounds)), length=length, copies=copies),)
        if self.end is None and finite(self.input.schema, self.group):
            bounds, most = ["groups that have finitely many values"], 3 ** len(self.group)
            return (StatePart(self.held, tuple(bounds), purged=False, delivers=False, rows=most),)
        if self.timed or self.following:
            return (StatePart(self.held, lacks=time_stands(stream_names(self), source.time)),)
        closing = (f"{self.attribute} +",) if self.end is not None else ()
        return (StatePart(self.held, lacks=f"no punctuation closes {listed((*self.group, *closing))}"),)

    def _closed_by(self, offer: Offer) -> bool:
        """True if this punctuation of the input closes every group, or every window of it, sooner or later."""
        times = self.windowing
        if not offer.attributes <= {*self.group, *times}:
            return False
        return all(offer.class_of(name) == "+" for name in times if name in offer.attributes)

    def passes_on(self, inputs: tuple[Offers, ...], parts: tuple[StatePart, ...]) -> Offers:
        (source,) = inputs
        groups = {name: name for name in self.group}
        names = [groups | dict.fromkeys(self.windowing, end) for end in self.ends] or [groups]
        usable = [offer for offer in source.templates if self._closed_by(offer)]
        closing = distinct(offer.renamed(new) for offer in usable for new in names)
        references = source.renamed(groups).references
        if self.timed or parts[0].drains:
            return Offers(source.time, source.clocks, closing, references)
        return Offers(templates=closing, references=references)

    def requirements(self, part: StatePart) -> Iterator[Requirement]:
        if self.timed or self.following:
            yield TimeMoves((self.input,))
        if not self.timed and self.attribute is not None:
            yield Punctuated(self.input, (self.attribute,), "+")
        yield Punctuated(self.input, self.group)

    def parameters(self) -> dict[str, Any]:
        shared = self.values("schema", "group", "aggregates", "attribute", "partials")
        return {"input_schema": self.input.schema} | shared
