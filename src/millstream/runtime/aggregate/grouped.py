"""The common part of window and pane aggregates: groups are held until punctuation, or time, closes them.

A punctuation closes groups if it restricts nothing but group attributes and the windowing attribute, the latter by a
bound from above or by a range: `[ts < v, sensor = 1]` closes the windows of sensor 1 that end by v, `[sensor = 1]` all
of its windows, `[ts in [v, w)]` the windows that lie in the range (`stretches.py`). A punctuation on raw time `= v`, or
on any other attribute, closes nothing and is dropped, since the output cannot express it. If the windows are over the
hidden timestamp, progress of time (in band, or the port's bound) closes them as well. It also closes what it says about
group attributes, or the windowing attribute, that follow time (`time_closing`): groups by `ts` below the bound. The
end of the stream closes everything.

Bounds on time alone are by far the most common and are kept as one number. Other emitted punctuations are kept in a
set, which then holds that number as a pattern too.

A tuple of a closed group is dropped when it is folded in: it must not open a second window of the same name. No such
tuple arrives on a grammatical stream, because sources set late tuples aside.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from millstream.algebra.aggregate.call import AggregateCall
from millstream.algebra.early import Prod
from millstream.algebra.punctuation.pattern import Pattern
from millstream.algebra.punctuation.punctuations import Punctuations, PunctuationSet
from millstream.algebra.schema import FOREVER, NEVER, TS, Schema
from millstream.runtime.aggregate.asked import AskedGroups
from millstream.runtime.aggregate.bucket import close_windows, closed_end, drop_idle_bounds, integers
from millstream.runtime.aggregate.doomed import Doomed
from millstream.runtime.aggregate.finishing import Column, Finishing, Moved
from millstream.runtime.aggregate.paned_state import PanedState
from millstream.runtime.aggregate.state import GroupState
from millstream.runtime.aggregate.stretches import Stretches
from millstream.runtime.operator.capabilities import AwaitsTime, Disclaims, RewritesProds, Watches
from millstream.runtime.operator.contract import Input, Operator, Output
from millstream.runtime.operator.frames import in_order, pick, stack, take, where
from millstream.runtime.state.table import StateTable

INDEX = "__index"
NONE = Punctuations.of(())


class GroupedAggregate(Operator, RewritesProds, Disclaims, Watches, AwaitsTime):
    """`columns` make output columns of partial results. If the windows are over the stream's time, time closes them and
    results are stamped with the window's last instant, one tick before its end; otherwise results carry the newest
    timestamp of their tuples."""

    def __init__(
        self, schema: Schema, state: GroupState, columns: Sequence[Column], calls: Sequence[AggregateCall] = ()
    ) -> None:
        watchable = [] if state.in_panes else state.keys
        self._doomed = Doomed({name: state.table.schema[name] for name in watchable}, calls)
        self.schema, self._following = schema, state.closing
        self.timed = state.timed or bool(state.closing)
        self._state, self._windower, self._time = state, state.windows, state.closed_by
        self._asked = AskedGroups(state)
        self._stamp = pl.col(TS) if state.end is None or not state.timed else Moved(TS, state.end, _last_instant)
        self._finish = Finishing([*columns, self._stamp])
        self._names = {name: name for name in (*state.group, *([self._time] if self._time is not None else []))}
        self._stretches: Stretches | None = None
        if self._time is not None and state.end is not None:
            more: dict[str, Any] = {"panes": state.over_panes, "dated": state.dated, "ordered": schema.ordered}
            self._stretches = Stretches(self._time, state.end, state.windows, **more)
        self._reached = NEVER  # window ends up to here are closed by emitted punctuations on time alone
        self._emitted: PunctuationSet | None = None  # made for the first other punctuation
        self._closed = NEVER  # window ends up to here are closed, by punctuation or by time
        self._bound = NEVER  # the highest bound that a step has acted on
        self._progress_in = NEVER  # the highest progress received in band
        self._progress_out = NEVER  # the highest progress emitted

    def check(self, groups: pl.DataFrame) -> pl.DataFrame | None:  # noqa: ARG002
        """Return the reasons why results of these groups do not fit their types, by result column; None: all fit."""
        return None

    def finished(self, groups: pl.DataFrame) -> pl.DataFrame:
        """Return the rows of partial results that close."""
        return self._finish(groups)

    def purge_shed(self, closed: Punctuations, timely: Punctuations) -> None:
        """Forget which groups lack tuples, of those that are closed."""

    def process(self, inputs: Sequence[Input]) -> Output:
        port = inputs[0]
        if port.rows is not None and port.rows.height:
            self._state.take(port.rows)
            if self._doomed.due(port.rows.height, len(self._state.table)):
                self._doom()
        new, others, reached = NONE, None, self._reached
        if port.punctuations is not None:
            self._progress_in = max(self._progress_in, port.punctuations.progress)
            new, others, reached = self._news(port.punctuations)
        self._bound = max(self._bound, port.bound, self._progress_in)
        timely = NONE
        if self._state.timed:
            end = max(closed_end(self._bound, self._windower), reached)
        else:
            end, timely = FOREVER if self._bound == FOREVER else reached, self._following.advance(self._bound)
            if len(timely) and self._state.end is not None and self._time is not None:
                timely, by_time, _ = drop_idle_bounds(timely, self._time, self._windower, self._closed)
                end, timely = max(end, by_time), timely.select({name: name for name in self._state.group})
        rows, exceeding = None, None
        if len(new) or len(timely) or end > self._closed:
            # First, since the step's punctuations follow its tuples.
            partials, held = self._drain(end if self._state.timed and others is None else None), self._state
            made = None
            if isinstance(held, PanedState):
                made = self._windows(held, partials, new if others is not None else NONE, timely, end)
            if others is not None:
                self._emitted = others
                new = others.add(new)
            self._reached, self._closed = reached, max(self._closed, end)
            if made is None:
                rows, exceeding = self._close(partials, new, timely, others is not None)
            else:
                rows, exceeding = self._arranged(*made, new, timely)
            self.purge_shed(new, timely)
        elif self._state.full:
            self._fold()
        progress = self._progress()
        closed = self.closed(new).with_progress(progress)
        return Output(rows, closed or None, abandoned=self._doomed.take_found(), exceeding=exceeding)

    def _doom(self) -> None:
        """Purge the groups that are doomed."""
        self._fold()
        if not len(self._state.table):
            return
        found = self._doomed.find(self._state.merged())
        if found.height:
            held = self._state.table.frame()
            self._state.table.keep(~self._doomed.mask(held, found))

    def closed(self, punctuations: Punctuations) -> Punctuations:
        """Return the punctuations to emit for those that have closed windows."""
        return punctuations

    def _news(self, punctuations: Punctuations) -> tuple[Punctuations, PunctuationSet | None, int]:
        """Return the closing punctuations in terms of the output, without those that earlier ones cover; the set to add
        them to, unless they are bounds on time alone; the window end that such bounds reach."""
        usable, end, reached = self._state.over_time(punctuations.with_progress(NEVER)), self._state.end, NEVER
        if self._time is not None and self._stretches is not None:
            usable = self._stretches.join(usable)
            usable, reached, ends = drop_idle_bounds(usable, self._time, self._windower, self._reached)
            if ends is not None and self._emitted is None:
                return self._closing(ends), None, reached
        usable = usable.select(self._names)
        if self._time is not None and end is not None and self._stretches is not None:
            usable = close_windows(
                self._stretches.ends(usable), self._time, self._windower, end, self._state.table.schema[end]
            )
        if not len(usable):
            return usable, None, reached
        others = self._emitted
        if others is None:
            others = PunctuationSet()
            if self._reached > NEVER:
                others.add(self._closing([self._reached]))
        return usable.where(~others.covered(usable)), others, reached

    def _closing(self, ends: Sequence[int] | npt.NDArray[np.int64]) -> Punctuations:
        """Return the output punctuations that close all windows up to these ends."""
        if self._state.end is None or not len(ends):
            return NONE
        bounds = pl.Series(ends, dtype=pl.Int64).cast(self._state.table.schema[self._state.end])
        return Punctuations.from_column(self._state.end, "<=", bounds)

    def _progress(self) -> int:
        """Return the progress to emit, or NEVER if it is not higher than before."""
        if self._state.timed:
            progress = closed_end(self._progress_in, self._windower)
        else:
            progress = self._oldest(self._progress_in) if self._progress_in > self._progress_out else NEVER
        if progress <= self._progress_out:
            return NEVER
        self._progress_out = progress
        return progress

    def _fold(self) -> None:
        self._state.append(self._drain())

    def _drain(self, end: int | None = None) -> pl.DataFrame:
        """Return the waiting tuples (with `end`, those of windows that end by then) as partial results, without closed
        groups."""
        return self._open(self._state.drain(end))

    def _open(self, partials: pl.DataFrame) -> pl.DataFrame:
        """Return the partial results without those of closed groups."""
        if not partials.height:
            return partials
        late = self._state.gone(partials, self._ended, None if self._emitted is None else self._emitted.match)
        return self._doomed.without(where(partials, ~late) if late.any() else partials)

    def _ended(self, frame: pl.DataFrame, by: int | None = None) -> pl.Series:
        """Return a mask of the groups whose windows end by the last closed end, or another one."""
        last = self._closed if by is None else by
        if self._state.end is None or last in (NEVER, FOREVER):
            return pl.repeat(last == FOREVER, frame.height, dtype=pl.Boolean, eager=True)
        return pl.Series(integers(frame.get_column(self._state.end)) <= last)

    def _is_open(self, frame: pl.DataFrame) -> pl.Series:
        """Return a mask of the windows and groups that are open."""
        closed = self._ended(frame)
        return ~(closed if self._emitted is None else closed | self._emitted.match(frame))

    def _close(
        self, partials: pl.DataFrame, punctuations: Punctuations, timely: Punctuations, by_group: bool
    ) -> tuple[pl.DataFrame | None, pl.DataFrame | None]:
        """Purge the groups that this step closes, `timely` ones without notice; return their rows in the order in which
        they close, and the results among them that do not fit (`check`)."""

        def closes(frame: pl.DataFrame) -> pl.Series:
            ended = self._ended(frame)
            ended = ended | punctuations.match(frame) if by_group else ended
            return ended | timely.match(frame) if len(timely) else ended

        groups = self._state.close(partials, closes)
        self._doomed.close(closes)
        if not groups.height:
            return None, None
        order = self._state.keys
        if self._state.end is not None and groups.get_column(self._state.end).n_unique() == 1:
            order = order[1:]
        if by_group and len(punctuations) > 1:  # bounds on time alone close in the order of the ends anyway
            first = punctuations.first_match(groups).fill_null(len(punctuations))
            groups, order = groups.with_columns(first.alias(INDEX)), [INDEX, *order]
        if self._state.end is None and self.schema.ordered:
            order = [*[*self.schema.times][:1], *order]
        if order:
            groups = in_order(groups, order)
        return self.finished(groups), self.check(groups)

    def _windows(
        self, state: PanedState, panes: pl.DataFrame, punctuations: Punctuations, timely: Punctuations, end: int
    ) -> tuple[list[pl.DataFrame], list[pl.DataFrame | None]]:
        """Hold these panes; return the rows of the windows that this step closes, some windows at a time, and those
        that do not fit (`check`)."""
        state.append(panes)
        last = max(self._closed, end)

        def closes(keys: pl.DataFrame) -> pl.Series:
            found = self._ended(keys, last)
            for each in (punctuations, timely):
                found = found | each.match(keys) if len(each) else found
            return found & self._is_open(keys)

        until = last if not len(timely) else FOREVER
        found = state.closing_windows(closes, self._closed, state.last_closed(punctuations, until))
        made = [(self.finished(groups), self.check(groups)) for groups in found]
        return [rows for rows, _ in made], [exceeding for _, exceeding in made]

    def _arranged(
        self,
        pages: list[pl.DataFrame],
        checks: list[pl.DataFrame | None],
        punctuations: Punctuations,
        timely: Punctuations,
    ) -> tuple[pl.DataFrame | None, pl.DataFrame | None]:
        """Purge the panes that no open window has; return rows and checks in the order in which windows close."""
        held = self._state.table.frame()
        gone = self._state.gone(held, self._ended, None if self._emitted is None else self._emitted.match)
        self._state.table.keep(~(gone | timely.match(held) if len(timely) else gone))
        if not pages:
            return None, None
        rows, exceeding = stack(pages), None
        if any(check is not None for check in checks):
            filled = [
                pl.DataFrame({INDEX: pl.repeat(None, page.height, eager=True)}) if check is None else check
                for page, check in zip(pages, checks, strict=True)
            ]
            exceeding = pl.concat(filled, how="diagonal_relaxed").drop(INDEX, strict=False)
        if self._emitted is not None and len(punctuations) > 1:
            first = punctuations.first_match(rows).fill_null(len(punctuations)).alias(INDEX)
            keys = pick(rows, self._state.keys).hstack([first]).with_row_index("__row")
            order = keys.sort([INDEX, *self._state.keys], nulls_last=True).get_column("__row").to_numpy()
            rows, exceeding = take(rows, order), None if exceeding is None else take(exceeding, order)
        return rows, exceeding

    @property
    def idle_waiting_prone(self) -> bool:
        # Even where time closes nothing, it must not overtake the results held back: their timestamps are old.
        return True

    def disclaim(self, pattern: Pattern, omitted: Sequence[Pattern | None]) -> None:  # noqa: ARG002
        held = self._state.of_held(pattern) if pattern.attributes <= {*self._state.keys} else None
        if held is not None:
            self._fold()
            self._state.table.keep(~held.match(self._state.table.frame()))

    def so_far(self, prod: Prod, rows: pl.DataFrame | None = None) -> pl.DataFrame | None:
        """Return the partial results of the open groups that a prod asks for, in the order of windows and groups; None
        if it asks for none. `rows`: early tuples that count as well, and are not kept."""
        wanted = self._asked.wanted(prod)
        if wanted is None:
            return None
        self._state.append(self._open(self._state.drain(distinct=False)), distinct=False)
        more = self._open(self._state.partials(rows)) if rows is not None and rows.height else None
        if self._state.in_panes:
            found = self._state.so_far(lambda keys: wanted(where(keys, self._is_open(keys))), more)
        else:
            found = self._state.so_far(wanted, more)
        return in_order(found, self._state.keys) if self._state.keys else found

    def passed(self, prod: Prod, arrived: Prod) -> Prod:
        return self._asked.passed(prod, arrived)

    def watch(self, pattern: Pattern) -> tuple[Pattern, ...]:
        if self._doomed.watch(pattern):
            self._doom()
        return self._doomed.take_found()

    def unwatch(self, covers: Callable[[Pattern], bool]) -> bool:
        return self._doomed.unwatch(covers)

    def waiting(self) -> bool:
        return bool(self._state)

    def needs(self) -> int:
        return max(self._state.first_end(), self._windower.following(self._closed)) if self._state.timed else FOREVER

    def output_bound(self, bounds: Sequence[int]) -> int:
        bound = min(bounds)
        if not self._state.timed:
            return self._oldest(bound)
        # Until a step has acted on a bound, the windows that it completes are not emitted. Later ones end after it.
        return min(bound, self._bound) if self._state else bound

    def _oldest(self, bound: int) -> int:
        """Return a bound, lowered to the oldest timestamp among the groups held."""
        if bound in (NEVER, FOREVER) or not self._state:
            return bound
        self._fold()
        frame = self._state.table.frame()
        return bound if (frame.get_column(TS) >= bound).all() else min(bound, self._state.newest())

    def tables(self) -> Mapping[str, StateTable]:
        self._fold()
        return {"groups": self._state.table, "doomed": self._doomed.table}

    def scalars(self) -> dict[str, Any]:
        return {
            "bounds": (self._reached, self._closed, self._bound, self._progress_in, self._progress_out),
            "put_out": None if self._emitted is None else self._emitted.to_value(),
            "watched": self._doomed.to_value(),
            "stretches": None if self._stretches is None else self._stretches.to_value(),
        }

    def restore_scalars(self, values: Mapping[str, Any]) -> None:
        self._reached, self._closed, self._bound, self._progress_in, self._progress_out = values["bounds"]
        self._doomed.restore(values.get("watched", ([], 0, [])))
        if self._stretches is not None and values.get("stretches") is not None:
            self._stretches.restore(values["stretches"])
        put_out = values["put_out"]
        self._emitted = None if put_out is None else PunctuationSet.from_value(put_out)

    def state_rows(self) -> int:
        self._fold()
        if self._doomed.watched and self._doomed.taken:
            self._doom()
        return self._state.count()


def _last_instant(ends: pl.Series) -> pl.Series:
    return ends - 1
