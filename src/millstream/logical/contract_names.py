"""Which columns of a plan are the same, under which names punctuation on them goes on, and where they come from.

These mirror what the operators do with punctuation at run time: a join puts out the left one of two equal keys, a
projection the first output column that holds a restricted one, or one that a join made equal to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from millstream.algebra.expression import Column
from millstream.logical import plan as node
from millstream.logical.closing import Closing
from millstream.logical.multi_join import MultiJoin
from millstream.logical.outer_join import OuterJoin
from millstream.logical.plan import Plan

Groups = tuple[tuple[str, ...], ...]
Pairs = Sequence[tuple[str, str]]


def prefixed(name: str, prefix: str | None) -> str:
    return f"{prefix}.{name}" if prefix else name


def names_under(plan: Plan, prefix: str | None) -> dict[str, str]:
    """A plan's columns as the join above it calls them."""
    return {name: prefixed(name, prefix) for name in plan.schema.names}


def key_names(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """For each key the first column that it equals; two keys that equal one column do not both stand for it.

    >>> key_names([("a", "x"), ("a", "y"), ("b", "x")])
    {'a': 'x'}
    """
    made: dict[str, str] = {}
    for own, other in pairs:
        if own not in made and other not in made.values():
            made[own] = other
    return made


def joined_names(plan: node.WindowJoin | node.Sequence) -> tuple[dict[str, str], dict[str, str]]:
    """For both inputs, the output columns on which their punctuation goes out; that on a right key on the left one."""
    left, right = plan.inputs
    if isinstance(plan, node.WindowJoin):
        prefixes = plan.left_prefix, plan.right_prefix
    else:
        prefixes = plan.first_prefix, plan.second_prefix
    equal = {b: prefixed(a, prefixes[0]) for b, a in key_names((b, a) for a, b in plan.keys).items()}
    return names_under(left, prefixes[0]), names_under(right, prefixes[1]) | equal


def member_names(plan: MultiJoin) -> tuple[dict[str, str], ...]:
    """For each input, the output columns on which its punctuation goes out; that on a key on the first input's."""
    first = [names[0] for names in plan.equal]
    sides = zip(plan.members, plan.prefixes, plan.keys, strict=True)
    return tuple(names_under(side, prefix) | dict(zip(keys, first, strict=True)) for side, prefix, keys in sides)


def projected_names(plan: node.Project) -> dict[str, str]:
    """For each input column whose restriction can be put out, the output column that it goes to."""
    first: dict[str, str] = {}
    for name, item in plan.items:
        if isinstance(item, Column) and item.name in plan.input.schema:
            first.setdefault(item.name, name)
    position = {name: place for place, (name, _) in enumerate(plan.items)}
    made = dict(first)
    for group in equal_columns(plan.input):
        kept = [first[column] for column in group if column in first]
        if kept:
            made |= dict.fromkeys(group, min(kept, key=lambda name: position[name]))
    return made


def equal_columns(plan: Plan) -> Groups:
    """Groups of columns that are equal in every tuple, because a join below made them so."""
    match plan:
        case node.Select(input, _) | node.Distinct(input):
            return equal_columns(input)
        case node.WindowJoin():
            return _equal_in(plan.keys, (plan.left, plan.left_prefix), (plan.right, plan.right_prefix))
        case OuterJoin():
            return _equal_in((), (plan.left, plan.left_prefix), (plan.right, plan.right_prefix))
        case node.Sequence():
            return _equal_in(plan.keys, (plan.first, plan.first_prefix), (plan.second, plan.second_prefix))
        case MultiJoin():
            sides = zip(plan.members, plan.prefixes, strict=True)
            return _closure([*plan.equal, *(group for side in sides for group in _renamed(*side))])
        case node.TableJoin(outer=False):
            pairs = [(prefixed(a, plan.stream_prefix), prefixed(b, plan.table_prefix)) for a, b in plan.keys]
            return _closure([*pairs, *_renamed(plan.input, plan.stream_prefix)])
    return ()


def _equal_in(keys: Pairs, left: tuple[Plan, str | None], right: tuple[Plan, str | None]) -> Groups:
    pairs = [(prefixed(a, left[1]), prefixed(b, right[1])) for a, b in keys]
    return _closure([*pairs, *_renamed(*left), *_renamed(*right)])


def _renamed(plan: Plan, prefix: str | None) -> list[tuple[str, ...]]:
    return [tuple(prefixed(column, prefix) for column in group) for group in equal_columns(plan)]


def _closure(groups: list[tuple[str, ...]]) -> Groups:
    """Groups that share a column, put together."""
    merged: list[list[str]] = []
    for group in groups:
        touching = [m for m in merged if set(m) & set(group)]
        merged = [m for m in merged if m not in touching]
        merged.append(list(dict.fromkeys([c for m in touching for c in m] + list(group))))
    return tuple(tuple(m) for m in merged)


def base_columns(plan: Plan, column: str) -> tuple[tuple[str, str], ...]:
    """The columns of base streams, as (stream, column), that a column of the plan holds; none if it is computed."""
    match plan:
        case node.Scan():
            return ((plan.stream, column),)
        case node.Select(input, _) | node.Distinct(input) | Closing(input):
            return base_columns(input, column)
        case node.Project(input, items):
            item = dict(items)[column]
            plain = isinstance(item, Column) and item.name in input.schema
            return base_columns(input, item.name) if isinstance(item, Column) and plain else ()
        case node.Union(members):
            position = plan.schema.index(column)
            found = [base_columns(member, member.schema.names[position]) for member in members]
            return tuple(base for bases in found for base in bases) if all(found) else ()
        case node.TableJoin():
            own = {output: name for name, output in names_under(plan.input, plan.stream_prefix).items()}
            return base_columns(plan.input, own[column]) if column in own else ()
        case node.WindowJoin() | OuterJoin() | node.Sequence():
            left, right = plan.inputs
            names = [*left.schema.names, *right.schema.names]
            position = plan.schema.index(column)
            return base_columns(left if position < len(left.schema) else right, names[position])
        case MultiJoin():
            sides = zip(plan.members, plan.prefixes, strict=True)
            owned = (
                (side, name) for side, prefix in sides for name in side.schema.names if prefixed(name, prefix) == column
            )
            return next((base_columns(side, name) for side, name in owned), ())
        case node.WindowAggregate(input, group=group) | node.PaneAggregate(input, group=group):
            return base_columns(input, column) if column in group else ()
    return ()


def base_streams(plan: Plan) -> tuple[str, ...]:
    """The base streams that a plan has tuples of."""
    if isinstance(plan, node.Scan):
        return (plan.stream,)
    read = (plan.input,) if isinstance(plan, Closing) else plan.inputs
    return tuple(dict.fromkeys(stream for part in read for stream in base_streams(part)))
