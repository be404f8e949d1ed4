"""Running aggregates: each tuple, with aggregates of the tuples of its partition in a frame that ends with it.

| held | bounded by |
|---|---|
| `RANGE d` | the frame |
| `ROWS k`, `UNBOUNDED` | the frame, for each partition: a template over it, or time that closes it |
| an aggregate that remembers more than the tuples of its frame | the same |
| waiting tuples of a stream that is not in the order of time | time |

A condition on the partition alone is pushed below: it keeps or drops whole partitions. Results depend on the order of
tuples with equal timestamps, which is that of arrival.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import compress
from typing import Any

from millstream.algebra.aggregate.call import AggregateCall
from millstream.algebra.aggregate.row_call import RowCall
from millstream.algebra.frame import Frame
from millstream.algebra.names import Groups
from millstream.algebra.program.call import ProgramCall
from millstream.algebra.response import Reach, Rule
from millstream.algebra.schema import Schema, TimeKind
from millstream.logical.contract.offers import Offers, Time
from millstream.logical.contract.requirements import Punctuated, Requirement, TimeMoves
from millstream.logical.contract.state_parts import StatePart, finite, listed, stream_names, time_stands, waiting
from millstream.logical.plan import Conditions, Key, Names, Need, Plan, Pushed, subsets
from millstream.logical.windows import spelled

CALLS = AggregateCall, ProgramCall
"""The kinds of calls; a worker that decodes a plan knows them by this module."""


@dataclass(frozen=True, slots=True)
class Over(Plan):
    """`calls` over the tuples of each partition that `frame` selects. Output: the columns of the input, then those of
    the calls. A tuple that leaves an active frame is emitted with the time at which it leaves."""

    stem = "over"
    rules = (
        Rule("partitions", Reach.EVERY, passes="the same", relays=False),
        Rule("any other column", why="every tuple counts for the results of its partition"),
    )
    stateless = False
    positional = True
    punctuates = Names()

    input: Plan
    partition: tuple[str, ...]
    frame: Frame
    calls: tuple[AggregateCall | RowCall, ...]
    recognised: tuple[str, ...] = ()
    """The user-defined aggregates that the calls compute on columns."""

    @property
    def schema(self) -> Schema:
        source = self.input.schema
        attributes = source.attributes + tuple(column for call in self.calls for column in call.outputs)
        ordered = source.kind is not TimeKind.LATENT or source.ordered
        follows = () if self.frame.active else source.follows
        return replace(source, attributes=attributes, ordered=ordered, follows=follows)

    @property
    def merges(self) -> bool:
        """True if tuples have to be put into the order of time first."""
        source = self.input.schema
        return source.kind is not TimeKind.LATENT and not source.ordered

    @property
    def holds_results(self) -> bool:
        """True if it emits columns of a tuple later than on its arrival."""
        return self.frame.active or self.frame.slots is not None

    def describe(self) -> str:
        unit = self.input.schema.unit
        by = f" PARTITION BY {', '.join(self.partition)}" if self.partition else ""
        frame = self.frame.spelled(lambda length: spelled(length, unit))
        notes = f" [{', '.join(self.recognised)}]" if self.recognised else ""
        return f"Over{by} {frame} {', '.join(map(str, self.calls))}{notes}"

    # --- the optimizer ----------------------------------------------------------------------------------------------

    def push(self, conditions: Conditions) -> Pushed:
        partition = {*self.partition}
        below = tuple(c for c in conditions if c.columns() and c.columns() <= partition)
        return Pushed(self, (below,), tuple(c for c in conditions if c not in below))

    def pruned(self, kept: Names) -> tuple[Plan, tuple[Need, ...]]:
        """Drop calls whose result is not read, but keep at least one."""
        # an aggregate that returns any number of rows decides how often a tuple is emitted
        read = [isinstance(c, RowCall) or any(column.name in kept for column in c.outputs) for c in self.calls]
        calls = tuple(compress(self.calls, read)) or self.calls[:1]
        made = {column.name for call in self.calls for column in call.outputs}
        arguments = {name for call in calls for name in call.columns}
        return replace(self, calls=calls), (Need((kept - made) | arguments | {*self.partition}, self.holds_results),)

    def copied(self, column: str) -> tuple[tuple[int, str], ...]:
        source = self.input.schema
        return ((0, column),) if column in source and not (self.frame.active and column in source.times) else ()

    @property
    def equal_columns(self) -> Groups:
        return self.input.equal_columns

    # --- partitioning -----------------------------------------------------------------------------------------------

    @property
    def holds_time(self) -> bool:
        return self.holds_results

    @property
    def holds_punctuation(self) -> bool:
        return self.holds_results

    def reads_punctuation(self, place: int, columns: Names) -> bool:
        return columns <= {*self.partition}

    def hash_keys(self) -> Iterable[Key]:
        return subsets(list(self.partition))

    def keys_below(self, key: Key) -> list[Key] | None:
        return [key] if {*key} <= {*self.partition} else None

    # --- the contract -----------------------------------------------------------------------------------------------

    def state_parts(self, inputs: tuple[Offers, ...]) -> tuple[StatePart, ...]:
        return (self._held(inputs[0]), waiting(self, inputs)) if self.merges else (self._held(inputs[0]),)

    def _held(self, source: Offers) -> StatePart:
        name = "partitions" if self.frame.size is None else "window"
        remembers = any(isinstance(call, RowCall) and call.remembers(self.frame) for call in self.calls)
        if self._ranged and not remembers:
            moves = source.time is not Time.STILL
            if self.frame.active and not moves:
                return StatePart(name, lacks=time_stands(stream_names(self), source.time))
            return StatePart(name, (self._size(),), purged=moves, length=self.frame.size)
        every = [call.function for call in self.calls if call.collects] if self.frame.size is None else []
        if not self.partition and not every:
            return StatePart(name, (self._size(),), purged=False)
        by_time = source.time is Time.MOVES and not self.schema.trails.keys().isdisjoint(self.partition)
        bounds = [" and ".join(source.clocks)] if by_time else []
        bounds += [offer.origin for offer in source.templates if offer.attributes <= {*self.partition}]
        if bounds:
            return StatePart(name, tuple(dict.fromkeys(bounds)))
        if every:
            return StatePart(name, lacks=f"{every[0]} of {self._size()} holds every tuple")
        if finite(self.input.schema, self.partition):
            return StatePart(name, ("partitions that have finitely many values",), purged=False)
        return StatePart(name, lacks=f"no punctuation closes {listed(self.partition)}")

    @property
    def _ranged(self) -> bool:
        """True if time bounds the frame."""
        return self.frame.size is not None and not self.frame.rows

    def _size(self) -> str:
        unit = self.input.schema.unit
        return replace(self.frame, slide=None, active=False).spelled(lambda length: spelled(length, unit))

    def passes_on(self, inputs: tuple[Offers, ...], parts: tuple[StatePart, ...]) -> Offers:
        drains = parts[-1].drains if self.merges else True
        if self.holds_results:
            drains = drains and inputs[0].time is not Time.STILL
        return inputs[0] if drains else replace(inputs[0], templates=())

    def requirements(self, part: StatePart) -> Iterator[Requirement]:
        if self.frame.active or part.name == "waiting":
            yield TimeMoves((self.input,))
        yield Punctuated(self.input, self.partition)

    def advice(self, part: StatePart, inputs: tuple[Offers, ...]) -> list[str]:
        return ["give it a RANGE frame"] if part.name != "waiting" and self.partition and not self._ranged else []

    # --- the worker -------------------------------------------------------------------------------------------------

    def parameters(self) -> dict[str, Any]:
        return {"input_schema": self.input.schema} | self.values("schema", "partition", "frame", "calls", "merges")
