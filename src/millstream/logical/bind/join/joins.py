"""Binds FROM with several entries: joins from left to right, tables at their position, sequences.

Two streams make a window join; a third joins the result. A result is as new as its newest part, so the windows of its
older parts are checked again against the newcomer: every part must be within its own window of the newest one. That
does not work for a window that counts rows; then all streams are joined at once (`rows`).

Of two keys that a join or a sequence makes equal, it emits punctuation on the left one. Expressions above it that name
the right key are therefore bound to the left one: a group or a further join then gets the punctuation that it needs. An
outer join leaves both keys alone.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from millstream.algebra.expression import Binary, Column, Expression, Unary, conjunction
from millstream.algebra.schema import TS
from millstream.algebra.types import Type
from millstream.algebra.window import UNBOUNDED, Window, widest
from millstream.errors import PlanError
from millstream.lang import ast
from millstream.logical.bind.join import rows
from millstream.logical.bind.join.computed_keys import KeySide, computed_keys
from millstream.logical.bind.join.conjunct_sets import Conjuncts, EqualKeys, aliases, split_keys
from millstream.logical.bind.join.interval import interval_windows, lags, result_windows
from millstream.logical.bind.join.issuing import ISSUING, Issuing, check_issuing, check_keys
from millstream.logical.bind.join.key_join import check_key_join, key_joined
from millstream.logical.bind.join.outer import OUTER, cuts_off
from millstream.logical.bind.join.time import any_time_of, same_units, times_of, times_of_parts
from millstream.logical.bind.scope import Entry
from millstream.logical.bind.table.time import check_time
from millstream.logical.join.graph import ENTRY_TIME, within
from millstream.logical.nodes.key_join import KeyJoin
from millstream.logical.nodes.outer_join import OuterJoin
from millstream.logical.nodes.project import Project, copies
from millstream.logical.nodes.select import Select
from millstream.logical.nodes.sequence import Sequence
from millstream.logical.nodes.table_join import TableJoin
from millstream.logical.nodes.window_join import WindowJoin
from millstream.logical.nodes.written_join import WrittenJoin
from millstream.logical.plan import Plan
from millstream.logical.windows import join_window

Pairs = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Joined:
    """A plan, the aliases in it, and its streams. `prefix` is None once columns carry their alias. The columns of
    `padded` aliases may be NULL for want of a partner; `lags` has how much older than a row its parts may be, where
    bounded."""

    plan: Plan
    names: frozenset[str]
    streams: tuple[Entry, ...]
    prefix: str | None
    padded: frozenset[str] = frozenset()
    lags: dict[str, int] = field(default_factory=dict)

    def inner(self, column: str) -> str:
        """Return the plan's own name of a column of FROM."""
        return column.split(".", 1)[1] if self.prefix is not None else column


class JoinBinder:
    """Joins the entries of one FROM. `on` has the conjuncts of ON or USING by alias, `where` those of WHERE.

    The lowest join with all its columns tests a condition. Conditions of an outer join stay there. Conditions after a
    RIGHT or FULL JOIN, including WHERE, are not tested below it: that would pad rows that must be dropped.
    """

    def __init__(
        self,
        entries: tuple[Entry, ...],
        waiting: Conjuncts,
        on: dict[str, tuple[Expression, ...]],
        where: tuple[Expression, ...],
    ) -> None:
        self._waiting = waiting
        self._on, self._where = on, where
        self._streams = tuple(entry for entry in entries if entry.plan is not None)
        self.keys = EqualKeys()
        self._probed = any(entry.written.source.probing for entry in self._streams)
        joined = self._streams if len(self._streams) > 1 else ()
        self._windows = [self._written(entry) or UNBOUNDED for entry in joined]
        self._entries = rows.in_turn(entries, self._windows)

    def join(self, sequence: ast.SequenceTest | None) -> Plan:
        """Return the plan of the whole FROM; conjuncts that no join takes remain in `waiting`."""
        check_issuing(self._entries, self._windows, sequence)
        early: list[Entry] = []  # tables before the first stream
        self._admit(0)
        made = self._sequence(sequence) if sequence is not None else self._at_once()
        joined = made is not None
        for position, entry in enumerate(self._entries):
            if entry.plan is None:
                if made is None:
                    early.append(entry)
                else:
                    made = self._table(made, entry, self._on[entry.alias] if entry.written.kind in OUTER else None)
                continue
            if joined:
                continue
            one = self._single(entry)
            if made is None:
                # A table RIGHT JOIN a stream: the stream's tuples are kept.
                kept = self._on[entry.alias] if entry.written.kind in OUTER else None
                made = one if kept is None else self._table(one, early.pop(0), kept)
            elif cuts_off(entry, self._entries[:position]):
                made = self._pair(self._tested(made), one)
                self._admit(position + 1)
            else:
                made = self._pair(made, one)
            while early:
                made = self._table(made, early.pop(0), None)
        assert made is not None
        return made.plan

    def _admit(self, first: int) -> None:
        """Add the conditions that may be tested from here on, up to the next join that pads the entries before it."""
        for position, entry in enumerate(self._entries[first:], first):
            if cuts_off(entry, self._entries[:position]):
                return
            if entry.written.kind not in OUTER:
                self._waiting.add(conjunction(self._on[entry.alias]))
        self._waiting.add(conjunction(self._where))

    def _tested(self, made: Joined) -> Joined:
        """Add a selection with all waiting conditions."""
        found = self.keys.renamed(self._waiting.take_within(made.names))
        found += self.keys.renamed(self._waiting.take_constant())
        condition = conjunction(tuple(found))
        return made if condition is None else replace(made, plan=Select(made.plan, condition))

    def _single(self, entry: Entry) -> Joined:
        assert entry.plan is not None
        plan = entry.plan
        windowed = any(e.window is not None for e in self._streams)
        if len(self._streams) > 2 and windowed and plan.schema.time is None:
            type_ = Type.BIGINT if plan.schema.unit == 1 else Type.TIMESTAMP
            plan = Project(plan, (*copies(plan.schema), (ENTRY_TIME, Column(type_, TS))))
        return Joined(plan, frozenset({entry.alias}), (entry,), entry.alias, lags={entry.alias: 0})

    # --- tables ---------------------------------------------------------------------------------------------------

    def _table(self, left: Joined, entry: Entry, kept: tuple[Expression, ...] | None) -> Joined:
        """Join a table. `kept` are the conditions of an outer join, which keeps every tuple of the left."""
        right = frozenset({entry.alias})
        found = self._waiting.take(left.names, right) if kept is None else list(kept)
        placed = split_keys(self.keys.renamed(found), left.names, right)
        keys = tuple((left.inner(one), other.split(".", 1)[1]) for one, other in placed.keys)
        parts = left.plan, entry.table, entry.schema, keys, conjunction(placed.residual), left.prefix, entry.alias
        if entry.changes is None:
            plan = TableJoin(*parts, outer=kept is not None)
        else:
            check_time(left.plan.schema, entry.changes.unit, entry.table, entry.written.place)
            plan = WrittenJoin(*parts, outer=kept is not None, changes=entry.changes)
        if kept is None:
            self.keys.add(placed.keys, plan.schema)
        return replace(left, plan=plan, names=left.names | right, prefix=None)

    # --- all streams ------------------------------------------------------------------------------------------------

    def _at_once(self) -> Joined | None:
        """Join all streams by one MultiJoin, if a window counts rows and needs it."""
        if key_joined(self._streams) or not rows.needs_multi_join(self._streams, self._windows):
            return None
        names = frozenset(entry.alias for entry in self._streams)
        found = self._waiting.take_within(names)
        connecting = [conjunct for conjunct in found if len(aliases(conjunct)) > 1]
        plan = rows.counting_multi_join(self._streams, self._windows, connecting)
        kept = found if plan is None else [conjunct for conjunct in found if conjunct not in connecting]
        self._waiting.add(conjunction(tuple(kept)))
        if plan is None:
            return None
        for position, entry in enumerate(self._streams):
            same_units(self._streams[:position], entry)
        self.keys.add([(first, other) for first, *others in plan.equal for other in others], plan.schema)
        return Joined(plan, names, self._streams, None)

    # --- two streams ----------------------------------------------------------------------------------------------

    def _pair(self, left: Joined, right: Joined) -> Joined:
        """Join a stream. The keys of an outer join stay two columns: they differ where one side is padded."""
        newcomer, kind, padded = right.streams[0], right.streams[0].written.kind, left.padded
        outer = kind in OUTER
        once = key_joined(left.streams), key_joined(right.streams)
        if outer:
            found = list(self._on[newcomer.alias])
        elif any(once):  # a condition on one stream decides which tuples can pair
            found = self._waiting.take_within(left.names | right.names)
        else:
            found = self._waiting.take(left.names, right.names)
        one, other = (KeySide(side.plan, side.names, side.prefix) for side in (left, right))
        computed, found = computed_keys(self.keys.renamed(found), one, other)
        windows, keys, residual = self._condition(left, right, found)
        inner = _inner(left, right, keys) + computed
        parts = one.made.plan(), other.made.plan(), *windows, inner, residual, left.prefix, right.prefix
        plan: OuterJoin | WindowJoin | KeyJoin | Issuing
        if any(once):
            plan = KeyJoin(*parts, once=once)
            check_key_join(plan, self._streams)
            self.keys.add(keys, plan.schema)
        elif outer:
            plan = OuterJoin(*parts, kept=kind)
            padded |= right.names if kind != "RIGHT" else frozenset()
            padded |= left.names if kind != "LEFT" else frozenset()
        else:
            check_keys(newcomer.written.issues, inner, newcomer)
            plan = ISSUING.get(newcomer.written.issues, WindowJoin)(*parts)
            self.keys.add(keys, plan.schema)
        streams = left.streams + right.streams
        rows.check_counting(plan, streams, windows)
        older = lags(left.lags, right.lags, windows)
        return Joined(plan, left.names | right.names, streams, None, padded, older)

    def _condition(
        self, left: Joined, right: Joined, found: list[Expression]
    ) -> tuple[tuple[Window, Window], Pairs, Expression | None]:
        """Return the windows, the keys and the residual of a join."""
        newcomer, placed = right.streams[0], split_keys(found, left.names, right.names)
        residual = list(placed.residual)
        windows: tuple[Window, Window]
        if len(left.streams) == 1:
            first = left.streams[0]
            written = self._written(first), self._written(newcomer)
            *made, residual = interval_windows(residual, times_of(first), times_of(newcomer), *written)
            windows = made[0], made[1]
        else:
            windows = self._composite(left.streams), self._written(newcomer) or UNBOUNDED
            parts = times_of_parts(left.streams, left.lags)
            windows = result_windows(residual, parts, times_of(newcomer), windows[0], self._written(newcomer))
            if left.padded and windows[1].rows is not None:
                hint = "give it a RANGE window, or put the outer join last in FROM"
                raise newcomer.fail("M3020", "a ROWS window after an outer join is not available yet", hint)
            residual += self._still_within(left, newcomer)
        if windows != (UNBOUNDED, UNBOUNDED):
            same_units(left.streams, newcomer)
        return windows, placed.keys, conjunction(tuple(residual))

    def _written(self, entry: Entry) -> Window | None:
        """Return the written window of a stream, or None. Beside an `OVER` window, a stream without one only probes."""
        clause = entry.window
        if clause is None:
            return Window(rows=0) if self._probed else None
        if clause.attribute is not None and clause.attribute != entry.schema.time:
            hint = f"its time column is '{entry.schema.time}'" if entry.schema.time else ""
            raise entry.fail("M3005", f"a window of a join is on time, not on '{clause.attribute}'", hint)
        return join_window(clause, entry.schema.unit)

    def _composite(self, members: tuple[Entry, ...]) -> Window:
        """Return the window of a join's result as an input of the next join: the longest of its parts."""
        windows = [self._written(member) or UNBOUNDED for member in members]
        for member, window in zip(members, windows, strict=True):
            if window.rows is not None:
                counting = sum(other.rows is not None for other in self._windows)
                raise rows.uncountable(member, self._streams, alone=counting == 1)
        return widest([window.range for window in windows])

    def _still_within(self, left: Joined, newcomer: Entry) -> list[Expression]:
        """Return, for each part with a window, the condition that it is within it of the newcomer, or absent."""
        made: list[Expression] = []
        for member in left.streams:
            window = self._written(member)
            if window is None or window.range is None:
                continue
            older = any_time_of(member)
            fits = within(older, any_time_of(newcomer), window.range)
            absent = Unary(Type.BOOLEAN, "IS NULL", older)
            made.append(Binary(Type.BOOLEAN, "OR", absent, fits) if member.alias in left.padded else fits)
        return made

    # --- sequences ------------------------------------------------------------------------------------------------

    def _sequence(self, test: ast.SequenceTest) -> Joined:
        by_alias = {entry.alias: entry for entry in self._streams}
        if len(test.names) != 2 or len(self._streams) != 2:
            raise PlanError("M3006", "SEQ takes the two streams of FROM; more are not available yet", **test.place)
        for name in test.names:
            if name not in by_alias or test.names[0] == test.names[1]:
                hint = f"FROM has {', '.join(by_alias)}"
                message = f"SEQ names the two streams of FROM, not '{name}'"
                raise PlanError("M3006", message, hint=hint, **test.place)
        first, second = (self._single(by_alias[name]) for name in test.names)
        for side, kept in ((first, (UNBOUNDED, Window(rows=1))), (second, (UNBOUNDED, Window(rows=0)))):
            entry = side.streams[0]
            if entry.window is not None and join_window(entry.window, entry.schema.unit) not in kept:
                raise entry.fail("M3007", "a window on a stream of SEQ is not available yet")
        same_units(first.streams, second.streams[0])
        names = first.names | second.names
        # A condition on one stream decides which tuples can pair, so it belongs to the sequence too.
        placed = split_keys(self._waiting.take_within(names), first.names, second.names)
        plan = Sequence(
            first.plan,
            second.plan,
            test.mode,
            _inner(first, second, placed.keys),
            conjunction(placed.residual),
            first.prefix,
            second.prefix,
            once=test.mode == "RECENT" and key_joined(first.streams),
        )
        self.keys.add(placed.keys, plan.schema)
        return Joined(plan, names, second.streams, None)


def _inner(left: Joined, right: Joined, keys: Pairs) -> Pairs:
    """Return the keys under the plans' own names."""
    return tuple((left.inner(one), right.inner(other)) for one, other in keys)
