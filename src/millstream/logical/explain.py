"""A plan as text: a tree, the result on top, each node with a stable number and what is known of its stream.

Nodes are numbered from the scans up, in the order in which tuples meet them. `*` marks the time column; in angle
brackets stand the kind of time and whether tuples come in its order.

>>> from millstream.algebra.schema import Schema, TimeKind
>>> from millstream.algebra.types import Type
>>> from millstream.logical.plan import Distinct, Scan
>>> schema = Schema.of(("k", Type.INT), ("ts", Type.BIGINT), kind=TimeKind.EXTERNAL, time="ts")
>>> print(explain(Distinct(Scan("s", schema))))
#2 Distinct  (k INT, ts* BIGINT) <external, ordered>
└─ #1 Scan s  (k INT, ts* BIGINT) <external, ordered>
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from millstream.algebra.aggregate_call import AggregateCall
from millstream.algebra.expression import Column, Expression
from millstream.algebra.schema import Schema
from millstream.logical import plan as node
from millstream.logical.closing import Closing
from millstream.logical.join_cost import costs
from millstream.logical.multi_join import MultiJoin
from millstream.logical.outer_join import OuterJoin
from millstream.logical.plan import Plan, Window
from millstream.logical.windows import attribute_unit, spelled, written


def explain(plan: Plan) -> str:
    """The tree of a plan, one node a line."""
    numbers = iter(range(1, 1 + sum(1 for _ in plan.walk())))
    return "\n".join(_lines(_numbered(plan, numbers)))


class _Numbered:
    """A node with its number; equal sub-plans at different places are different nodes here."""

    def __init__(self, plan: Plan, number: int, inputs: tuple[_Numbered, ...]) -> None:
        self.plan, self.number, self.inputs = plan, number, inputs


def _numbered(plan: Plan, numbers: Iterator[int]) -> _Numbered:
    inputs = tuple(_numbered(input_, numbers) for input_ in plan.inputs)
    return _Numbered(plan, next(numbers), inputs)


def _lines(tree: _Numbered, inside: bool = False) -> Iterator[str]:
    """The lines of a node and of what it reads; `inside`: it is part of a tree of joins whose costs have been told."""
    yield f"#{tree.number} {describe(tree.plan)}  {_properties(tree.plan.schema)}"
    told = costs(tree.plan) if not inside or isinstance(tree.plan, MultiJoin) else None
    if told is not None:
        yield f"│    {told}"
    for position, input_ in enumerate(tree.inputs):
        last = position == len(tree.inputs) - 1
        below = isinstance(tree.plan, node.WindowJoin) or (inside and isinstance(tree.plan, node.Project))
        first_line, *more = _lines(input_, below)
        yield f"{'└─' if last else '├─'} {first_line}"
        for line in more:
            yield f"{'   ' if last else '│  '}{line}"


def _properties(schema: Schema) -> str:
    columns = ", ".join(f"{a.name}{'*' if a.name == schema.time else ''} {a.type.value}" for a in schema)
    return f"({columns}) <{schema.kind.value}, {'ordered' if schema.ordered else 'unordered'}>"


def describe(plan: Plan) -> str:
    """The node itself with its parameters, on one line."""
    match plan:
        case node.Scan():
            return f"Scan {plan.stream}"
        case Closing():
            late = " late" if plan.only_late else ""
            keys = " AND ".join(f"{a} = {b}" for a, b in plan.keys)
            return f"Closing{late} {keys} {'merging' if plan.merges else 'on arrival'}"
        case node.Select():
            return f"Select {plan.predicate}"
        case node.Project():
            return f"Project {', '.join(_item(name, e) for name, e in plan.items)}"
        case node.Union():
            return "Union"
        case node.Distinct():
            return "Distinct"
        case node.WindowJoin():
            order = "merging" if plan.merges else "on arrival"
            sides = _sides(plan.inputs, (plan.left_prefix, plan.right_prefix), (plan.left_window, plan.right_window))
            keys = _keys(plan.keys, plan.left_prefix, plan.right_prefix)
            return f"WindowJoin {sides}{keys}{_where(plan.residual)} {order}"
        case OuterJoin():
            order = "merging" if plan.merges else "on arrival"
            sides = _sides(plan.inputs, (plan.left_prefix, plan.right_prefix), (plan.left_window, plan.right_window))
            keys = _keys(plan.keys, plan.left_prefix, plan.right_prefix)
            asked = "" if plan.residual is None else f" {'AND' if keys else 'ON'} {plan.residual}"
            return f"OuterJoin {plan.kept} {sides}{keys}{asked} {order}"
        case MultiJoin():
            order = "merging" if plan.merges else "on arrival"
            sides = _sides(plan.members, plan.prefixes, plan.windows)
            keys = " AND ".join(" = ".join(names) for names in plan.equal)
            return f"MultiJoin {sides} ON {keys}{_where(plan.residual)} {order}"
        case node.TableJoin():
            outer = " outer" if plan.outer else ""
            keys = _keys(plan.keys, plan.stream_prefix, plan.table_prefix)
            return f"TableJoin {plan.table}{outer}{keys}{_where(plan.residual)}"
        case node.Sequence():
            keys = _keys(plan.keys, plan.first_prefix, plan.second_prefix)
            return f"Sequence {plan.mode}{keys}{_where(plan.residual)}"
        case node.WindowAggregate():
            below = " over panes" if plan.over_panes else _of_partials(plan.partials)
            window = ""
            if plan.range is not None and plan.slide is not None:
                unit = _unit(plan)
                lengths = f"RANGE {spelled(plan.range, unit)} SLIDE {spelled(plan.slide, unit)}"
                window = f" [{lengths}{_on(plan.attribute)}]"
            return f"WindowAggregate{window}{_calls(plan.group, plan.aggregates)}{below}"
        case node.PaneAggregate():
            calls = f"{_calls(plan.group, plan.aggregates)}{_of_partials(plan.partials)}"
            return f"PaneAggregate [PANE {spelled(plan.pane, _unit(plan))}{_on(plan.attribute)}]{calls}"
    return type(plan).__name__


def _item(name: str, expression: Expression) -> str:
    if isinstance(expression, Column) and expression.name == name:
        return name
    return f"{expression} AS {name}"


def _prefixed(name: str, prefix: str | None) -> str:
    return f"{prefix}.{name}" if prefix else name


def _keys(keys: tuple[tuple[str, str], ...], left: str | None, right: str | None) -> str:
    pairs = " AND ".join(f"{_prefixed(one, left)} = {_prefixed(other, right)}" for one, other in keys)
    return f" ON {pairs}" if pairs else ""


def _where(residual: Expression | None) -> str:
    return "" if residual is None else f" WHERE {residual}"


def _sides(inputs: Iterable[Plan], prefixes: Iterable[str | None], windows: Iterable[Window]) -> str:
    """The inputs of a join by name, each with its window."""
    sides = zip(inputs, prefixes, windows, strict=True)
    return ", ".join(f"{prefix or ''} {written(window, own.schema.unit)}".lstrip() for own, prefix, window in sides)


def _unit(plan: node.WindowAggregate | node.PaneAggregate) -> int:
    """Units a second of what the windows of an aggregate are over."""
    source = plan.input.schema
    return source.unit if plan.attribute is None else attribute_unit(source.type_of(plan.attribute).is_integer)


def _on(attribute: str | None) -> str:
    return "" if attribute is None else f" ON {attribute}"


def _of_partials(partials: bool) -> str:
    return " of partials" if partials else ""


def _calls(group: tuple[str, ...], calls: tuple[AggregateCall, ...]) -> str:
    by = f" BY {', '.join(group)}" if group else ""
    return f"{by} {', '.join(map(str, calls))}" if calls else by
