"""Projection push-down: columns that nobody reads leave the plan as low as possible.

    Project price, seller                         Project price, seller
    └─ WindowJoin b, a ON b.auction = a.id        └─ WindowJoin b, a ON b.auction = a.id
       ├─ Scan bids                          →       ├─ Project auction, price, ts
       └─ Scan auctions                              │  └─ Scan bids
                                                     └─ Project id, seller, ts
                                                        └─ Scan auctions

A punctuation that restricts a column cannot outlive the column, so time columns and columns named in a stream's
punctuation scheme or primary key are kept, whether or not the query reads them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from millstream.algebra.expression import Column, Expression
from millstream.algebra.schema import TS
from millstream.logical import plan as node
from millstream.logical.closing import Closing
from millstream.logical.multi_join import MultiJoin
from millstream.logical.outer_join import OuterJoin
from millstream.logical.plan import Plan, Project
from millstream.optimizer.context import Context

Names = frozenset[str]


def prune_columns(plan: Plan, context: Context) -> Plan:
    """The plan with the same result columns, whose lower parts carry only what is read or punctuated."""
    return _Pruner(context).exact(plan, plan.schema.names)


def _read(*expressions: Expression | None) -> Names:
    return frozenset(name for e in expressions if e is not None for name in e.columns() if name != TS)


class _Pruner:
    def __init__(self, context: Context) -> None:
        self._context = context

    def exact(self, plan: Plan, names: tuple[str, ...]) -> Plan:
        """The plan with just these columns, in this order."""
        pruned = self.prune(plan, frozenset(names))
        return pruned if pruned.schema.names == names else _narrowed(pruned, names)

    def side(self, plan: Plan, needed: Names) -> Plan:
        """An input whose tuples are kept in state: only the needed and the punctuated columns."""
        pruned = self.prune(plan, needed)
        kept = needed | self.carried(pruned)
        names = tuple(name for name in pruned.schema.names if name in kept) or pruned.schema.names[:1]
        return pruned if names == pruned.schema.names else _narrowed(pruned, names)

    def prune(self, plan: Plan, needed: Names) -> Plan:
        """The plan with at least the needed columns, in the order that they had."""
        match plan:
            case node.Scan():
                kept = needed | self.carried(plan)
                names = tuple(name for name in plan.schema.names if name in kept) or plan.schema.names[:1]
                return plan if names == plan.schema.names else _narrowed(plan, names)
            case node.Select():
                return replace(plan, input=self.prune(plan.input, needed | _read(plan.predicate)))
            case node.Project():
                kept = needed | self.carried(plan)
                items = tuple(item for item in plan.items if item[0] in kept) or plan.items[:1]
                return Project(self.prune(plan.input, _read(*(e for _, e in items))), items)
            case node.Distinct():
                return node.Distinct(self.exact(plan.input, plan.schema.names))
            case Closing():
                closed = self.prune(plan.input, needed | {own for own, _ in plan.keys})
                by = frozenset(other for _, other in plan.keys)
                names = tuple(name for name in plan.closing.schema.names if name in by)
                return replace(plan, input=closed, closing=self.exact(plan.closing, names))
            case node.Union():
                return self._union(plan, needed)
            case node.WindowAggregate() if not plan.over_panes:
                return self._aggregate(plan, needed)
            case node.WindowJoin() | OuterJoin():
                read = needed | _read(plan.residual)
                left = _own(plan.left, plan.left_prefix, read) | {a for a, _ in plan.keys}
                right = _own(plan.right, plan.right_prefix, read) | {b for _, b in plan.keys}
                return replace(plan, left=self.side(plan.left, left), right=self.side(plan.right, right))
            case MultiJoin():
                read = needed | _read(plan.residual)
                members = (
                    self.side(member, _own(member, prefix, read) | set(keys))
                    for member, prefix, keys in zip(plan.members, plan.prefixes, plan.keys, strict=True)
                )
                return replace(plan, members=tuple(members))
            case node.Sequence():
                read = needed | _read(plan.residual)
                first = _own(plan.first, plan.first_prefix, read) | {a for a, _ in plan.keys}
                second = _own(plan.second, plan.second_prefix, read) | {b for _, b in plan.keys}
                return replace(plan, first=self.side(plan.first, first), second=self.side(plan.second, second))
            case node.TableJoin():
                read = needed | _read(plan.residual)
                stream = _own(plan.input, plan.stream_prefix, read) | {a for a, _ in plan.keys}
                return replace(plan, input=self.prune(plan.input, stream))
        return plan.with_inputs(tuple(self.prune(i, frozenset(i.schema.names)) for i in plan.inputs))

    def _union(self, plan: node.Union, needed: Names) -> Plan:
        """All members lose the same positions."""
        names = plan.schema.names
        kept = {names.index(name) for name in needed}
        for member in plan.members:
            kept |= {member.schema.index(name) for name in self.carried(member)}
        positions = sorted(kept) or [0]
        return node.Union(
            tuple(self.exact(m, tuple(m.schema.names[position] for position in positions)) for m in plan.members)
        )

    def _aggregate(self, plan: node.WindowAggregate, needed: Names) -> Plan:
        """Calls whose result is not read are not computed; one is left, if there was one."""
        calls = tuple(call for call in plan.aggregates if call.name in needed) or plan.aggregates[:1]
        read = (*plan.group, *(call.argument for call in calls), plan.attribute)
        below = self.prune(plan.input, frozenset(name for name in read if name is not None))
        return replace(plan, input=below, aggregates=calls)

    def carried(self, plan: Plan) -> Names:
        """The result columns that punctuation may restrict."""
        match plan:
            case node.Scan():
                return self._context.punctuated(plan.stream) | _time(plan)
            case node.Select() | node.Distinct():
                return self.carried(plan.input)
            case Closing():
                return self.carried(plan.input) | {own for own, _ in plan.keys}
            case node.Project():
                below = self.carried(plan.input)
                return frozenset(name for name, e in plan.items if isinstance(e, Column) and e.name in below)
            case node.Union():
                names = plan.schema.names
                return frozenset(
                    names[member.schema.index(name)] for member in plan.members for name in self.carried(member)
                )
            case node.WindowJoin() | OuterJoin():
                return _prefixed(self.carried(plan.left), plan.left_prefix) | _prefixed(
                    self.carried(plan.right), plan.right_prefix
                )
            case MultiJoin():
                sides = zip(plan.members, plan.prefixes, strict=True)
                return frozenset(name for side, prefix in sides for name in _prefixed(self.carried(side), prefix))
            case node.Sequence():
                return _prefixed(self.carried(plan.first), plan.first_prefix) | _prefixed(
                    self.carried(plan.second), plan.second_prefix
                )
            case node.TableJoin():
                return _prefixed(self.carried(plan.input), plan.stream_prefix)
            case node.WindowAggregate() | node.PaneAggregate():
                return (self.carried(plan.input) & frozenset(plan.group)) | _time(plan)
        return frozenset(plan.schema.names)


def _time(plan: Plan) -> Names:
    return frozenset() if plan.schema.time is None else frozenset({plan.schema.time})


def _prefixed(names: Iterable[str], prefix: str | None) -> Names:
    return frozenset(f"{prefix}.{name}" if prefix else name for name in names)


def _own(plan: Plan, prefix: str | None, names: Names) -> Names:
    """Those of the join's columns that come from this input, under the input's names."""
    return frozenset(name for name in plan.schema.names if (f"{prefix}.{name}" if prefix else name) in names)


def _narrowed(plan: Plan, names: tuple[str, ...]) -> Plan:
    schema = plan.schema
    return Project(plan, tuple((name, Column(schema.type_of(name), name)) for name in names))
