"""What window and pane aggregates share: groups are held until punctuation, or time, closes them.

A punctuation closes groups if it restricts nothing but group attributes and the windowing attribute, the latter only
from above: `[ts < v, sensor = 1]` closes the windows of sensor 1 that end by v, `[sensor = 1]` all of its windows. One
on raw time `= v`, or on any other attribute, closes nothing and is dropped, since the output cannot express it. If the
windows are over the hidden timestamp, then progress of time (in band, or the port's bound) closes them as well. The end
of the stream closes everything.

Bounds on time alone are by far the most common and are kept as one number; all other punctuations put out are kept in
a set, which then holds that number as a pattern too.

A tuple of a closed group is dropped when it is folded in: sources put late tuples aside, so it cannot come on a
grammatical stream, but if it does then it must not open a second window of the same name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from millstream.algebra.punctuation.punctuations import Punctuations, PunctuationSet
from millstream.algebra.schema import FOREVER, NEVER, TS, Schema
from millstream.runtime.aggregate.bucket import close_windows, closed_end, drop_idle_bounds, integers
from millstream.runtime.aggregate.state import GroupState
from millstream.runtime.operator.contract import Input, Operator, Output
from millstream.runtime.operator.frames import where
from millstream.runtime.state.table import StateTable

INDEX = "__index"
NONE = Punctuations.of(())


class GroupedAggregate(Operator):
    """`time` names the input attribute whose upper bounds close windows, if there is one; `timed` says that the windows
    are over the hidden timestamp, so that time closes them and results are stamped with their end (otherwise they carry
    the newest timestamp of their tuples); `finish` makes output rows of partial results."""

    def __init__(
        self,
        schema: Schema,
        state: GroupState,
        group: tuple[str, ...],
        slide: int,
        time: str | None,
        finish: list[pl.Expr],
        *,
        timed: bool,
    ) -> None:
        self.schema, self.timed = schema, timed
        self._state, self._slide = state, slide
        self._finish = finish
        self._time = time if state.end is not None else None
        self._names = {name: name for name in (*group, *([self._time] if self._time is not None else []))}
        self._reached = NEVER  # window ends up to here are closed by punctuations on time alone, put out
        self._put_out: PunctuationSet | None = None  # made when there are others
        self._closed = NEVER  # window ends up to here are closed, by punctuation or by time
        self._bound = NEVER  # the highest bound that a step has acted on
        self._heard = NEVER  # the highest progress that came in band
        self._told = NEVER  # the highest progress put out

    def time_of(self, bound: int) -> int:
        """Up to where a bound on input timestamps says that time is complete."""
        return bound

    def bound_of(self, time: int) -> int:
        """The bound on output timestamps once all windows that end by `time` are closed."""
        return time

    def process(self, inputs: Sequence[Input]) -> Output:
        port = inputs[0]
        if port.rows is not None and port.rows.height:
            self._state.take(port.rows)
        new, others, reached = NONE, None, self._reached
        if port.punctuations is not None:
            self._heard = max(self._heard, port.punctuations.progress)
            new, others, reached = self._news(port.punctuations)
        self._bound = max(self._bound, port.bound, self._heard)
        end = max(self._end_closed_by(self._bound), reached)
        rows = None
        if len(new) or end > self._closed:
            # Before this step's punctuations count: they come after its tuples.
            partials = self._drain(end if self.timed and others is None else None)
            if others is not None:
                self._put_out = others
                new = others.add(new)
            self._reached, self._closed = reached, max(self._closed, end)
            rows = self._close(partials, new, others is not None)
        elif self._state.full:
            self._fold()
        told = self._progress()
        return Output(rows, new.with_progress(told) if len(new) or told > NEVER else None)

    def _news(self, punctuations: Punctuations) -> tuple[Punctuations, PunctuationSet | None, int]:
        """The closing punctuations in terms of the output, without those that earlier ones cover; the set that is to
        take them, unless they are bounds on time alone; up to where such bounds reach."""
        usable, end, reached = punctuations.with_progress(NEVER), self._state.end, NEVER
        if self._time is not None and end is not None:
            usable, reached, ends = drop_idle_bounds(usable, self._time, self._slide, self._reached)
            if ends is not None and self._put_out is None:
                return self._closing(ends), None, reached
        usable = usable.select(self._names)
        if self._time is not None and end is not None:
            usable = close_windows(usable, self._time, self._slide, end, self._state.table.schema[end])
        if not len(usable):
            return usable, None, reached
        others = self._put_out if self._put_out is not None else self._new_set()
        return usable.where(~others.covered(usable)), others, reached

    def _closing(self, ends: Sequence[int] | npt.NDArray[np.int64]) -> Punctuations:
        """The output punctuations that close all windows up to these ends."""
        if self._state.end is None or not len(ends):
            return NONE
        bounds = pl.Series(ends, dtype=pl.Int64).cast(self._state.table.schema[self._state.end])
        return Punctuations.from_column(self._state.end, "<=", bounds)

    def _new_set(self) -> PunctuationSet:
        """A set that knows the bounds on time put out so far."""
        made = PunctuationSet()
        if self._reached > NEVER:
            made.add(self._closing([self._reached]))
        return made

    def _end_closed_by(self, bound: int) -> int:
        if self.timed:
            return closed_end(self.time_of(bound), self._slide)
        return FOREVER if bound == FOREVER else NEVER

    def _progress(self) -> int:
        """The progress to put out, if it is more than was put out before."""
        if self.timed:
            progress = self.bound_of(closed_end(self.time_of(self._heard), self._slide))
        else:
            progress = self._oldest(self._heard) if self._heard > self._told else NEVER
        if progress <= self._told:
            return NEVER
        self._told = progress
        return progress

    def _fold(self) -> None:
        self._state.append(self._drain())

    def _drain(self, end: int | None = None) -> pl.DataFrame:
        """The waiting tuples (with `end`, those that may close by then) as partial results, without closed groups."""
        partials = self._state.drain(end)
        if not partials.height:
            return partials
        late = self._ended(partials)
        if self._put_out is not None:
            late = late | self._put_out.match(partials)
        return where(partials, ~late) if late.any() else partials

    def _ended(self, frame: pl.DataFrame) -> pl.Series:
        """Which groups' windows end by the last end that is closed."""
        if self._state.end is None or self._closed in (NEVER, FOREVER):
            return pl.repeat(self._closed == FOREVER, frame.height, dtype=pl.Boolean, eager=True)
        return pl.Series(integers(frame.get_column(self._state.end)) <= self._closed)

    def _close(self, partials: pl.DataFrame, punctuations: Punctuations, by_group: bool) -> pl.DataFrame | None:
        """Purge the groups that this step closes; their rows, in the order in which they close."""

        def closes(frame: pl.DataFrame) -> pl.Series:
            ended = self._ended(frame)
            return ended | punctuations.match(frame) if by_group else ended

        groups = self._state.close(partials, closes)
        if not groups.height:
            return None
        order = self._state.keys
        if self._state.end is not None and groups.get_column(self._state.end).n_unique() == 1:
            order = order[1:]
        if by_group and len(punctuations) > 1:  # bounds on time alone close in the order of the ends anyway
            first = punctuations.first_match(groups).fill_null(len(punctuations))
            groups, order = groups.with_columns(first.alias(INDEX)), [INDEX, *order]
        if order:
            groups = groups.sort(order, nulls_last=True)
        return groups.select(self._finish)

    @property
    def idle_waiting_prone(self) -> bool:
        # Even where time closes nothing, it must not overtake the results that are held back: their timestamps are old.
        return True

    def waiting(self) -> bool:
        return bool(self._state)

    def output_bound(self, bounds: Sequence[int]) -> int:
        bound = min(bounds)
        if not self.timed:
            return self._oldest(bound)
        # Windows that a bound completes are still to come until a step has acted on it.
        return self.bound_of(self.time_of(min(bound, self._bound) if self._state else bound))

    def _oldest(self, bound: int) -> int:
        """A bound lowered to the oldest timestamp among the groups held."""
        if bound in (NEVER, FOREVER) or not self._state:
            return bound
        self._fold()
        frame = self._state.table.frame()
        return bound if (frame.get_column(TS) >= bound).all() else min(bound, self._state.newest())

    def tables(self) -> Mapping[str, StateTable]:
        self._fold()
        return {"groups": self._state.table}

    def scalars(self) -> dict[str, Any]:
        return {
            "bounds": (self._reached, self._closed, self._bound, self._heard, self._told),
            "put_out": None if self._put_out is None else self._put_out.to_value(),
        }

    def restore_scalars(self, values: Mapping[str, Any]) -> None:
        self._reached, self._closed, self._bound, self._heard, self._told = values["bounds"]
        put_out = values["put_out"]
        self._put_out = None if put_out is None else PunctuationSet.from_value(put_out)

    def state_rows(self) -> int:
        self._fold()
        return self._state.count()
