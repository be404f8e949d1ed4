"""Selection push-down: filter as early as the meaning allows.

    Select (b.price > 5)                      WindowJoin b, a ON b.auction = a.id
    └─ WindowJoin b, a ON b.auction = a.id    ├─ Select (price > 5)
       ├─ Scan bids                      →    │  └─ Scan bids
       └─ Scan auctions                       └─ Scan auctions

A conjunct goes

- through a projection, with its columns replaced by what they are computed from;
- into every member of a union;
- through duplicate elimination, unless it reads the hidden timestamp;
- into the closed stream of a closing, for whether a tuple is late does not depend on the others;
- below an aggregate, if it reads group columns only;
- through a join into the side that has its columns, and into other sides too if it reads join keys only; what reads
  several becomes part of the join. Never into a side with a ROWS window: which tuples are the last n would change;
- through an outer join of streams into the side that is kept, if only one is. Of what the join itself asks, a condition
  on the side that is not kept goes into that side; all else stays;
- through a stream-table join into the stream; what reads the table becomes part of the join, unless it is outer;
- into both streams of a sequence, if it reads keys only, for each key value is a sequence of its own. Otherwise a
  condition of the sequence goes into the second stream, and for CHRONICLE into the first (for RECENT a tuple that is
  filtered out would no longer replace an older one). One from above goes into the second stream for RECENT, and for
  CHRONICLE nowhere: there a pair uses its tuples up, wanted or not.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from millstream.algebra.expression import Column, Expression, conjunction, conjuncts, rewrite
from millstream.algebra.schema import TS, Schema
from millstream.logical import plan as node
from millstream.logical.closing import Closing
from millstream.logical.multi_join import MultiJoin
from millstream.logical.outer_join import OuterJoin
from millstream.logical.plan import Plan, Window
from millstream.optimizer.context import Context

Conditions = tuple[Expression, ...]


def push_selections(plan: Plan, context: Context) -> Plan:
    """Every selection as low as it can go; selections that meet are merged."""
    del context
    return _push(plan, ())


def _push(plan: Plan, conditions: Conditions) -> Plan:
    """The plan with the conditions applied to its result, somewhere in or above it."""
    match plan:
        case node.Select():
            return _push(plan.input, _distinct((*conjuncts(plan.predicate), *conditions)))
        case node.Project():
            return _project(plan, conditions)
        case node.Union():
            return _union(plan, conditions)
        case node.Distinct():
            below = tuple(c for c in conditions if TS not in c.columns())
            return _above(node.Distinct(_push(plan.input, below)), conditions, below)
        case Closing():
            return replace(plan, input=_push(plan.input, conditions), closing=_push(plan.closing, ()))
        case node.WindowAggregate() if not plan.over_panes:
            below = tuple(c for c in conditions if c.columns() and c.columns() <= set(plan.group))
            return _above(replace(plan, input=_push(plan.input, below)), conditions, below)
        case node.WindowJoin():
            return _join(plan, conditions)
        case MultiJoin():
            return _multi_join(plan, conditions)
        case OuterJoin():
            return _outer_join(plan, conditions)
        case node.TableJoin():
            return _table_join(plan, conditions)
        case node.Sequence():
            return _sequence(plan, conditions)
    inputs = tuple(_push(input_, ()) for input_ in plan.inputs)
    return _above(plan.with_inputs(inputs) if inputs else plan, conditions, ())


def _distinct(conditions: Iterable[Expression]) -> Conditions:
    return tuple(dict.fromkeys(conditions))


def _above(plan: Plan, conditions: Conditions, pushed: Iterable[Expression]) -> Plan:
    """A selection for the conditions that were not pushed."""
    done = set(pushed)
    left = conjunction(tuple(c for c in conditions if c not in done))
    return plan if left is None else node.Select(plan, left)


def _project(plan: node.Project, conditions: Conditions) -> Plan:
    items = dict(plan.items)
    below = tuple(
        rewrite(c, lambda e: items.get(e.name) if isinstance(e, Column) and e.name != TS else None) for c in conditions
    )
    return node.Project(_push(plan.input, below), plan.items)


def _union(plan: node.Union, conditions: Conditions) -> Plan:
    names = plan.schema.names
    members = []
    for member in plan.members:
        meant = dict(zip(names, member.schema.names, strict=True))
        members.append(_push(member, tuple(_over(c, meant, member.schema) for c in conditions)))
    return node.Union(tuple(members))


def _over(condition: Expression, names: dict[str, str], schema: Schema) -> Expression:
    """The condition over other columns that hold the same values."""

    def change(part: Expression) -> Expression | None:
        if not isinstance(part, Column) or part.name == TS:
            return None
        name = names[part.name]
        return Column(schema.type_of(name), name)

    return rewrite(condition, change)


class _Side:
    """One input of a join: which output columns are its own, and which equal one of its keys."""

    def __init__(self, plan: Plan, prefix: str | None, equal: dict[str, str], *, closed: bool = False) -> None:
        self.plan, self.closed = plan, closed
        self.own = {f"{prefix}.{name}" if prefix else name: name for name in plan.schema.names}
        self.names = self.own | equal
        self.pushed: list[Expression] = []

    def take(self, condition: Expression) -> bool:
        """Push the condition into this side, if it can be told from this side's columns alone."""
        columns = condition.columns()
        if self.closed or not columns or not columns <= set(self.names):
            return False
        self.pushed.append(_over(condition, self.names, self.plan.schema))
        return True

    def result(self) -> Plan:
        return _push(self.plan, _distinct(self.pushed))


def _output(name: str, prefix: str | None) -> str:
    return f"{prefix}.{name}" if prefix else name


def _counts(window: Window) -> bool:
    """Whether a filter below would change which tuples the window holds."""
    return window.rows is not None and window.rows > 0


def _multi_join(plan: MultiJoin, conditions: Conditions) -> Plan:
    sides = []
    for place, (member, prefix, window) in enumerate(zip(plan.members, plan.prefixes, plan.windows, strict=True)):
        equal = {name: own for own, names in zip(plan.keys[place], plan.equal, strict=True) for name in names}
        sides.append(_Side(member, prefix, equal, closed=_counts(window)))
    inside, above = _into(sides, (*conjuncts(plan.residual), *conditions))
    made = replace(plan, members=tuple(side.result() for side in sides), residual=conjunction(inside))
    return _above(made, above, ())


def _into(sides: Sequence[_Side], conditions: Iterable[Expression]) -> tuple[Conditions, Conditions]:
    """Push conditions into every side that can tell; returns those left to the join, and those left to stand above."""
    inside: list[Expression] = []
    above: list[Expression] = []
    for condition in _distinct(conditions):
        taken = [side.take(condition) for side in sides]
        if not any(taken):
            (above if TS in condition.columns() else inside).append(condition)
    return tuple(inside), tuple(above)


def _join(plan: node.WindowJoin, conditions: Conditions) -> Plan:
    to_left = {_output(b, plan.right_prefix): a for a, b in plan.keys}
    to_right = {_output(a, plan.left_prefix): b for a, b in plan.keys}
    left = _Side(plan.left, plan.left_prefix, to_left, closed=_counts(plan.left_window))
    right = _Side(plan.right, plan.right_prefix, to_right, closed=_counts(plan.right_window))
    inside, above = _into((left, right), (*conjuncts(plan.residual), *conditions))
    made = replace(plan, left=left.result(), right=right.result(), residual=conjunction(inside))
    return _above(made, above, ())


def _outer_join(plan: OuterJoin, conditions: Conditions) -> Plan:
    """Dropping a tuple before the join drops its results, padded or not; dropping its partners pads it instead."""
    sides = (
        _Side(plan.left, plan.left_prefix, {}, closed=_counts(plan.left_window)),
        _Side(plan.right, plan.right_prefix, {}, closed=_counts(plan.right_window)),
    )
    alone = [side for side, other in zip(sides, plan.preserved[::-1], strict=True) if not other]
    lost = [side for side, kept in zip(sides, plan.preserved, strict=True) if not kept]
    above = tuple(c for c in conditions if not any(side.take(c) for side in alone))
    inside = tuple(c for c in conjuncts(plan.residual) if not any(side.take(c) for side in lost))
    left, right = (side.result() for side in sides)
    return _above(replace(plan, left=left, right=right, residual=conjunction(_distinct(inside))), above, ())


def _table_join(plan: node.TableJoin, conditions: Conditions) -> Plan:
    equal = {} if plan.outer else {_output(b, plan.table_prefix): a for a, b in plan.keys}
    stream = _Side(plan.input, plan.stream_prefix, equal)
    inside: list[Expression] = list(conjuncts(plan.residual))
    above: list[Expression] = []
    for condition in conditions:
        if not stream.take(condition):
            (above if plan.outer or TS in condition.columns() else inside).append(condition)
    made = replace(plan, input=stream.result(), residual=conjunction(_distinct(inside)))
    return _above(made, tuple(above), ())


def _sequence(plan: node.Sequence, conditions: Conditions) -> Plan:
    to_first = {_output(b, plan.second_prefix): a for a, b in plan.keys}
    to_second = {_output(a, plan.first_prefix): b for a, b in plan.keys}
    keys = set(to_first) | set(to_second)
    first = _Side(plan.first, plan.first_prefix, to_first)
    second = _Side(plan.second, plan.second_prefix, to_second)
    chronicle = plan.mode == "CHRONICLE"

    def take(condition: Expression, into_first: bool, into_second: bool) -> bool:
        if condition.columns() and condition.columns() <= keys:
            return first.take(condition) and second.take(condition)
        return (into_second and second.take(condition)) or (into_first and first.take(condition))

    inside = [c for c in conjuncts(plan.residual) if not take(c, chronicle, True)]
    above = [c for c in conditions if not take(c, False, not chronicle)]
    made = replace(plan, first=first.result(), second=second.result(), residual=conjunction(_distinct(inside)))
    return _above(made, tuple(above), ())
