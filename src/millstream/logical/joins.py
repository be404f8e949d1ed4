"""FROM with several entries: joins from left to right, tables where they stand, sequences.

Two streams make a window join; a third joins the result. Such a result is as new as its newest part, so the windows of
its older parts are checked again against the newcomer: every part must be within its own window of the newest one.

Of two keys that a join or a sequence makes equal, it puts out punctuation on the left one. So whatever reads the right
one above it is bound to the left one instead: a group or a further join then meets the punctuation that it needs.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from millstream.algebra.expression import Binary, Column, Expression, Literal, conjunction, rename
from millstream.algebra.schema import TS, TimeKind
from millstream.algebra.types import Type
from millstream.errors import PlanError
from millstream.lang import ast
from millstream.logical.conjunct_sets import Conjuncts, split_keys
from millstream.logical.interval_join import interval_windows
from millstream.logical.plan import UNBOUNDED, Plan, Project, Sequence, TableJoin, Window, WindowJoin
from millstream.logical.sources import Entry
from millstream.logical.windows import join_window

ENTRY_TIME = "__time"
"""A visible copy of the hidden timestamp, where a stream has no time column of its own."""


@dataclass(frozen=True, slots=True)
class Joined:
    """A plan, the relations in it, and which of them are streams. `prefix` is None once columns carry their alias."""

    plan: Plan
    names: frozenset[str]
    streams: tuple[Entry, ...]
    prefix: str | None

    def inner(self, column: str) -> str:
        """The plan's own name for a column of the whole FROM."""
        return column.split(".", 1)[1] if self.prefix is not None else column


class JoinBinder:
    """Joins the entries of one FROM. `outer` has the conjuncts of each LEFT JOIN by its alias."""

    def __init__(
        self, entries: tuple[Entry, ...], waiting: Conjuncts, outer: dict[str, tuple[Expression, ...]]
    ) -> None:
        self._entries = entries
        self._waiting = waiting
        self._outer = outer
        self._streams = tuple(entry for entry in entries if entry.plan is not None)
        self.same: dict[str, str] = {}
        """Keys of right sides to the keys of left sides that they equal."""
        self._probed = any(entry.written.source.probing for entry in self._streams)

    def join(self, sequence: ast.SequenceTest | None) -> Plan:
        """The plan of the whole FROM; conjuncts that no join takes stay waiting."""
        made: Joined | None = None
        early: list[Entry] = []  # tables that stand before the first stream
        if sequence is not None:
            made = self._sequence(sequence)
        for entry in self._entries:
            if entry.plan is None:
                if made is None:
                    early.append(entry)
                else:
                    made = self._table(made, entry)
                continue
            if sequence is not None:
                continue
            one = self._single(entry)
            made = one if made is None else self._pair(made, one)
            while early:
                made = self._table(made, early.pop(0))
        assert made is not None
        return made.plan

    def _single(self, entry: Entry) -> Joined:
        assert entry.plan is not None
        plan = entry.plan
        windowed = any(e.window is not None for e in self._streams)
        if len(self._streams) > 2 and windowed and plan.schema.time is None:
            type_ = Type.BIGINT if plan.schema.unit == 1 else Type.TIMESTAMP
            items = tuple((a.name, Column(a.type, a.name)) for a in plan.schema)
            plan = Project(plan, (*items, (ENTRY_TIME, Column(type_, TS))))
        return Joined(plan, frozenset({entry.alias}), (entry,), entry.alias)

    # --- tables ---------------------------------------------------------------------------------------------------

    def _table(self, left: Joined, entry: Entry) -> Joined:
        right = frozenset({entry.alias})
        outer = entry.alias in self._outer
        found = list(self._outer[entry.alias]) if outer else self._waiting.take(left.names, right)
        placed = split_keys(self._renamed(found), left.names, right)
        if not outer:
            self.same |= {other: one for one, other in placed.keys}
        plan = TableJoin(
            left.plan,
            entry.table,
            entry.schema,
            tuple((left.inner(one), other.split(".", 1)[1]) for one, other in placed.keys),
            conjunction(placed.residual),
            left.prefix,
            entry.alias,
            outer,
        )
        return Joined(plan, left.names | right, left.streams, None)

    # --- two streams ----------------------------------------------------------------------------------------------

    def _pair(self, left: Joined, right: Joined) -> Joined:
        newcomer = right.streams[0]
        found = self._renamed(self._waiting.take(left.names, right.names))
        placed = split_keys(found, left.names, right.names)
        self.same |= {other: one for one, other in placed.keys}
        residual = list(placed.residual)
        windows: tuple[Window, Window]
        if len(left.streams) == 1:
            first = left.streams[0]
            written = self._written(first), self._written(newcomer)
            times = _time(first), _time(newcomer)
            windows = written[0] or UNBOUNDED, written[1] or UNBOUNDED
            if times[0] is not None and times[1] is not None:
                *made, residual = interval_windows(residual, times[0].name, times[1].name, *written)
                windows = made[0], made[1]
        else:
            windows = self._composite(left.streams), self._written(newcomer) or UNBOUNDED
            residual += self._still_within(left.streams, newcomer)
        if windows != (UNBOUNDED, UNBOUNDED):
            _same_units(left.streams, newcomer)
        plan = WindowJoin(
            left.plan,
            right.plan,
            *windows,
            tuple((left.inner(one), right.inner(other)) for one, other in placed.keys),
            conjunction(tuple(residual)),
            left.prefix,
            right.prefix,
        )
        return Joined(plan, left.names | right.names, left.streams + right.streams, None)

    def _renamed(self, found: list[Expression]) -> list[Expression]:
        return [rename(conjunct, self.same) for conjunct in found]

    def _written(self, entry: Entry) -> Window | None:
        """The window of a stream as written, or None. Beside an `OVER` window, a stream without one only probes."""
        clause = entry.window
        if clause is None:
            return Window(rows=0) if self._probed else None
        if clause.attribute is not None and clause.attribute != entry.schema.time:
            hint = f"its time column is '{entry.schema.time}'" if entry.schema.time else ""
            raise entry.fail("M3005", f"a window of a join is on time, not on '{clause.attribute}'", hint)
        return join_window(clause, entry.schema.unit)

    def _composite(self, members: tuple[Entry, ...]) -> Window:
        """The window of a join's result as an input of the next: the longest of its parts."""
        longest = 0
        for member in members:
            window = self._written(member)
            if window is not None and window.rows is not None:
                hint = "put the stream with the ROWS window last in FROM"
                raise member.fail("M3008", "a ROWS window in a join of three streams is not available yet", hint)
            if window is None or window.range is None:
                return UNBOUNDED
            longest = max(longest, window.range)
        return Window(range=longest)

    def _still_within(self, members: tuple[Entry, ...], newcomer: Entry) -> list[Expression]:
        """For each part of a composite with a window: it is not older than that beside the newcomer."""
        made: list[Expression] = []
        for member in members:
            window = self._written(member)
            if window is None or window.range is None:
                continue
            older, newer = _any_time(member), _any_time(newcomer)
            if older.type is Type.TIMESTAMP:
                length = Literal(Type.INTERVAL, timedelta(microseconds=window.range))
            else:
                length = Literal(Type.BIGINT, window.range)
            earliest = Binary(newer.type, "-", newer, length)
            made.append(Binary(Type.BOOLEAN, ">=", older, earliest))
        return made

    # --- sequences ------------------------------------------------------------------------------------------------

    def _sequence(self, test: ast.SequenceTest) -> Joined:
        place = test.line, test.column
        by_alias = {entry.alias: entry for entry in self._streams}
        if len(test.names) != 2 or len(self._streams) != 2:
            raise PlanError("M3006", "SEQ takes the two streams of FROM; more are not available yet").at(*place)
        for name in test.names:
            if name not in by_alias or test.names[0] == test.names[1]:
                hint = f"FROM has {', '.join(by_alias)}"
                raise PlanError("M3006", f"SEQ names the two streams of FROM, not '{name}'", hint=hint).at(*place)
        first, second = (self._single(by_alias[name]) for name in test.names)
        for side, kept in ((first, (UNBOUNDED, Window(rows=1))), (second, (UNBOUNDED, Window(rows=0)))):
            entry = side.streams[0]
            if entry.window is not None and join_window(entry.window, entry.schema.unit) not in kept:
                raise entry.fail("M3007", "a window on a stream of SEQ is not available yet")
        names = first.names | second.names
        # A condition on one stream alone decides which tuples can pair at all, so it belongs to the sequence too.
        placed = split_keys(self._waiting.take_within(names), first.names, second.names)
        self.same |= {other: one for one, other in placed.keys}
        plan = Sequence(
            first.plan,
            second.plan,
            test.mode,
            tuple((first.inner(one), second.inner(other)) for one, other in placed.keys),
            conjunction(placed.residual),
            first.prefix,
            second.prefix,
        )
        return Joined(plan, names, second.streams, None)


def _time(entry: Entry) -> Column | None:
    """The time column of a stream, under its name in the whole FROM."""
    time = entry.schema.time
    if time is None or entry.schema.kind is not TimeKind.EXTERNAL:
        return None
    return Column(entry.schema.type_of(time), f"{entry.alias}.{time}")


def _any_time(entry: Entry) -> Column:
    time = entry.schema.time
    if time is not None:
        return Column(entry.schema.type_of(time), f"{entry.alias}.{time}")
    type_ = Type.BIGINT if entry.schema.unit == 1 else Type.TIMESTAMP
    return Column(type_, f"{entry.alias}.{ENTRY_TIME}")


def _same_units(members: tuple[Entry, ...], newcomer: Entry) -> None:
    for member in members:
        if member.schema.unit != newcomer.schema.unit:
            message = f"'{member.alias}' and '{newcomer.alias}' count time in different units"
            detail = "A window needs both time columns TIMESTAMP, or both BIGINT."
            error = newcomer.fail("M3009", message)
            error.detail = detail
            raise error
