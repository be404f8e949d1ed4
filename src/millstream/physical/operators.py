"""Plan node → worker operator, one case each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl

from millstream.algebra.expression import Column, Expression, conjunction, rewrite
from millstream.algebra.schema import TS, Schema, TimeKind
from millstream.errors import PlanError
from millstream.logical import closing
from millstream.logical import multi_join as logical_multi
from millstream.logical import outer_join as logical_outer
from millstream.logical import plan as logical
from millstream.physical import exchange, placeholders
from millstream.physical.hashing import shard_of
from millstream.runtime.closing import Closing
from millstream.runtime.distinct import Distinct
from millstream.runtime.exchange import Exchange
from millstream.runtime.join_kernel import JoinWindow
from millstream.runtime.multi_join import MultiJoin
from millstream.runtime.operator import Operator
from millstream.runtime.outer_join import OuterJoin
from millstream.runtime.pane_aggregate import PaneAggregate
from millstream.runtime.pipeline import Pipeline
from millstream.runtime.placeholders import Placeholders
from millstream.runtime.project import Project
from millstream.runtime.select import Select
from millstream.runtime.sequence import Chronicle, Recent
from millstream.runtime.table_join import TableJoin
from millstream.runtime.union import Union
from millstream.runtime.window_aggregate import WindowAggregate
from millstream.runtime.window_join import WindowJoin

_JoinParts = tuple[Schema, Schema, Schema, tuple[tuple[str, str], ...], Expression | None, JoinWindow, JoinWindow]


ALONE = 0, 1
"""The place of the only shard."""


def build(plan: logical.Plan, tables: Mapping[str, pl.DataFrame], place: tuple[int, int] = ALONE) -> Operator:
    """A new operator that carries out the topmost node of a plan, on the shard of this number among so many."""
    match plan:
        case logical.Select():
            return Select(plan.schema, plan.predicate)
        case logical.Project():
            return Project(plan.input.schema, plan.schema, plan.items, equal_columns(plan.input))
        case logical.Union():
            members = tuple(member.schema for member in plan.members)
            return Union(plan.schema, members, merges=plan.schema.kind is not TimeKind.LATENT)
        case exchange.Gather():
            return Union(plan.schema, tuple(member.schema for member in plan.members), merges=plan.merges)
        case exchange.Exchange():
            return Exchange(plan.schema)
        case placeholders.Placeholders(key=key):
            number, shards = place
            return Placeholders(plan.schema, lambda rows: shard_of(rows, key, shards) == number)
        case logical.Distinct():
            return Distinct(plan.schema)
        case closing.Closing():
            return Closing(plan.schema, plan.keys, merges=plan.merges, only_late=plan.only_late)
        case logical.WindowJoin():
            return _window_join(plan)
        case logical_outer.OuterJoin():
            return _outer_join(plan)
        case logical_multi.MultiJoin():
            return _multi_join(plan)
        case logical.TableJoin():
            return _table_join(plan, tables)
        case logical.Sequence():
            return _sequence(plan)
        case logical.WindowAggregate():
            return WindowAggregate(
                plan.input.schema,
                plan.schema,
                plan.range,
                plan.slide,
                plan.group,
                plan.aggregates,
                plan.attribute,
                plan.over_panes,
                plan.partials,
            )
        case logical.PaneAggregate():
            schemas = plan.input.schema, plan.schema
            return PaneAggregate(*schemas, plan.pane, plan.group, plan.aggregates, plan.attribute, plan.partials)
    raise PlanError("M3090", f"no operator carries out {type(plan).__name__}")


def build_pipeline(chain: Sequence[logical.Plan]) -> Pipeline:
    """One operator for a chain of selections and projections, the topmost first."""
    stages: list[Select | Project] = []
    for plan in reversed(chain):
        if isinstance(plan, logical.Select):
            stages.append(Select(plan.schema, plan.predicate))
        elif isinstance(plan, logical.Project):
            stages.append(Project(plan.input.schema, plan.schema, plan.items, equal_columns(plan.input)))
    condition, items = fused(chain)
    return Pipeline(stages, condition, items)


def fused(chain: Sequence[logical.Plan]) -> tuple[Expression | None, tuple[tuple[str, Expression], ...]]:
    """A chain of selections and projections as one condition and one list of columns over what its bottom reads."""
    bottom = chain[-1].inputs[0].schema
    columns: dict[str, Expression] = {a.name: Column(a.type, a.name) for a in bottom}
    conditions: list[Expression] = []

    def over_input(expression: Expression) -> Expression:
        return rewrite(expression, lambda node: columns.get(node.name) if isinstance(node, Column) else None)

    for plan in reversed(chain):
        if isinstance(plan, logical.Select):
            conditions.append(over_input(plan.predicate))
        elif isinstance(plan, logical.Project):
            columns = {name: over_input(item) for name, item in plan.items}
    return conjunction(tuple(conditions)), tuple(columns.items())


def equal_columns(plan: logical.Plan) -> tuple[tuple[str, ...], ...]:
    """Groups of output columns that are equal in every row, because a join below made them so."""
    match plan:
        case logical.Select(input, _) | logical.Distinct(input):
            return equal_columns(input)
        case logical.WindowJoin():
            pairs = [(_name(a, plan.left_prefix), _name(b, plan.right_prefix)) for a, b in plan.keys]
            below = [*_renamed(plan.left, plan.left_prefix), *_renamed(plan.right, plan.right_prefix)]
            return _closure([*pairs, *below])
        case logical_outer.OuterJoin():
            return _closure([*_renamed(plan.left, plan.left_prefix), *_renamed(plan.right, plan.right_prefix)])
        case logical_multi.MultiJoin():
            below = [g for m, prefix in zip(plan.members, plan.prefixes, strict=True) for g in _renamed(m, prefix)]
            return _closure([*plan.equal, *below])
        case logical.Sequence():
            pairs = [(_name(a, plan.first_prefix), _name(b, plan.second_prefix)) for a, b in plan.keys]
            below = [*_renamed(plan.first, plan.first_prefix), *_renamed(plan.second, plan.second_prefix)]
            return _closure([*pairs, *below])
        case logical.TableJoin(outer=False):
            pairs = [(_name(a, plan.stream_prefix), _name(b, plan.table_prefix)) for a, b in plan.keys]
            return _closure([*pairs, *_renamed(plan.input, plan.stream_prefix)])
    return ()


def _renamed(plan: logical.Plan, prefix: str | None) -> list[tuple[str, ...]]:
    return [tuple(_name(column, prefix) for column in group) for group in equal_columns(plan)]


def _name(column: str, prefix: str | None) -> str:
    return f"{prefix}.{column}" if prefix else column


def _closure(groups: list[tuple[str, ...]]) -> tuple[tuple[str, ...], ...]:
    """Groups that share a column, put together."""
    merged: list[list[str]] = []
    for group in groups:
        touching = [m for m in merged if set(m) & set(group)]
        merged = [m for m in merged if m not in touching]
        merged.append(list(dict.fromkeys([c for m in touching for c in m] + list(group))))
    return tuple(tuple(m) for m in merged)


def _window_join(plan: logical.WindowJoin) -> Operator:
    return WindowJoin(*_join_parts(plan), merges=plan.merges)


def _outer_join(plan: logical_outer.OuterJoin) -> Operator:
    return OuterJoin(plan.preserved, *_join_parts(plan), merges=plan.merges)


def _join_parts(plan: logical.WindowJoin | logical_outer.OuterJoin) -> _JoinParts:
    """What any join of two streams is made of."""
    left, right = (JoinWindow(window.range, window.rows) for window in (plan.left_window, plan.right_window))
    return plan.left.schema, plan.right.schema, plan.schema, plan.keys, plan.residual, left, right


def _multi_join(plan: logical_multi.MultiJoin) -> Operator:
    return MultiJoin(
        [member.schema for member in plan.members],
        plan.schema,
        plan.keys,
        [JoinWindow(window.range, window.rows) for window in plan.windows],
        plan.residual,
        merges=plan.merges,
    )


def _table_join(plan: logical.TableJoin, tables: Mapping[str, pl.DataFrame]) -> Operator:
    frame = tables.get(plan.table)
    if frame is None:
        frame = plan.table_schema.empty().drop(TS)
    return TableJoin(plan.input.schema, plan.table_schema, plan.schema, frame, plan.keys, plan.residual, plan.outer)


def _sequence(plan: logical.Sequence) -> Operator:
    kind = Recent if plan.mode == "RECENT" else Chronicle
    return kind(plan.first.schema, plan.second.schema, plan.schema, plan.keys, plan.residual)
