"""When a punctuation may be emitted, and that it is emitted once.

An operator that stores tuples may forward a punctuation only when no stored tuple matches it: `Pending` holds the
punctuations of one input until then. An operator with several inputs may receive the same punctuation from each:
`Emitted` drops a punctuation that an earlier one covers. Punctuations that several inputs release in one step count as
simultaneous, since their order is not known: of these only equal ones are dropped, so that another cut of the input
does not lose the weaker ones.

>>> pending = Pending()
>>> pending.add(Punctuations.from_column("k", "=", pl.Series([1, 2])))
>>> pending.release(pl.DataFrame({"k": [2, 3]})), len(pending)
(Punctuations([k = 1]), 1)
>>> pending.release(pl.DataFrame({"k": [3]})), len(pending)
(Punctuations([k = 2]), 0)
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from itertools import permutations, product
from operator import ge, gt, le, lt
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from millstream.algebra.arrays import Mask
from millstream.algebra.punctuation.column_order import canonical
from millstream.algebra.punctuation.group import Group
from millstream.algebra.punctuation.punctuations import Punctuations, PunctuationSet
from millstream.algebra.schema import NEVER

INSIDE: dict[str, Callable[[Any, Any], Any]] = {"<": gt, "<=": ge, ">": lt, ">=": le}
"""For each comparison, the relation of a bound to a value inside it."""
_ROW = "__row"
NO_PUNCTUATIONS = Punctuations.of(())


class Withheld:
    """Punctuations of one input, in order of arrival, that may not be emitted yet. Those in `_fresh` have not been
    compared with the stored tuples."""

    __slots__ = ("_fresh", "_waiting")

    def __init__(self) -> None:
        self._waiting = NO_PUNCTUATIONS
        self._fresh = NO_PUNCTUATIONS

    def __len__(self) -> int:
        return len(self._waiting) + len(self._fresh)

    @property
    def attributes(self) -> frozenset[str]:
        """All attributes that the punctuations restrict."""
        return restricted(self._waiting) | restricted(self._fresh)

    def add(self, punctuations: Punctuations) -> None:
        self._fresh = Punctuations.concat([self._fresh, punctuations])

    def to_value(self) -> Punctuations:
        return Punctuations.concat([self._waiting, self._fresh])


class Pending(Withheld):
    """Withheld punctuations that stored tuples still match."""

    __slots__ = ()

    def release(self, stored: pl.DataFrame, *, shrunk: bool = True) -> Punctuations:
        """Remove and return those that no stored tuple matches. If the store has not shrunk since the last call, only
        new punctuations can be among them."""
        asked = Punctuations.concat([self._waiting, self._fresh]) if shrunk or not len(self._waiting) else self._fresh
        kept = self._waiting if asked is self._fresh else NO_PUNCTUATIONS
        self._fresh = NO_PUNCTUATIONS
        if not stored.height or not len(asked):
            self._waiting = kept
            return asked
        blocked = matched(asked, stored)
        self._waiting = Punctuations.concat([kept, asked.keep(blocked)]) if blocked.any() else kept
        return asked.keep(~blocked)

    def restore(self, punctuations: Punctuations) -> None:
        """Restore the value of `to_value`; all punctuations are compared anew."""
        self._waiting, self._fresh = NO_PUNCTUATIONS, punctuations


class Emitted:
    """The punctuations that an operator has emitted. `shared` are the attributes that several inputs can restrict, None
    if all are: an input never repeats a punctuation, so only those that restrict a shared attribute are compared."""

    __slots__ = ("_known", "_shared")

    def __init__(self, shared: Collection[str] | None = None) -> None:
        self._known = PunctuationSet()
        self._shared = None if shared is None else frozenset(shared)

    def release(self, ports: Sequence[Punctuations]) -> Punctuations:
        """Return the ports' punctuations that no earlier one covers, in order, port by port, without progress."""
        common = [self._common(punctuations) for punctuations in ports]
        if not any(shared.any() for shared in common):
            return Punctuations.concat(ports).with_progress(NEVER)
        fresh = self._fresh([port.keep(shared) for port, shared in zip(ports, common, strict=True)])
        released: list[Punctuations] = []
        for port, shared, new in zip(ports, common, fresh, strict=True):
            shared[shared] = ~new  # now true for those that were emitted before
            released.append(port.keep(~shared))
        return Punctuations.concat(released).with_progress(NEVER)

    def _common(self, punctuations: Punctuations) -> Mask:
        """Return a mask of the punctuations that another input could send too."""
        if self._shared is None:
            return np.ones(len(punctuations), dtype=np.bool_)
        common = np.zeros(len(punctuations), dtype=np.bool_)
        if len(punctuations):
            groups, odd = punctuations.parts
            for group in groups:
                # A punctuation without restrictions covers everything.
                common[group.positions] = not group.shape or not self._shared.isdisjoint(group.attributes)
            for position, pattern in odd:
                common[position] = not self._shared.isdisjoint(pattern.attributes)
        return common

    def _fresh(self, ports: Sequence[Punctuations]) -> list[Mask]:
        """Return per port a mask of the punctuations that no emitted one covers and no earlier port has too."""
        if not _overlap(ports):
            return [self._known.admit(port) for port in ports]
        fresh = [~self._known.covered(port).to_numpy() for port in ports]
        for index, port in enumerate(ports):
            for other in ports[:index]:
                fresh[index] &= ~_equal(port, other)
        self._known.admit(Punctuations.concat([port.keep(new) for port, new in zip(ports, fresh, strict=True)]))
        return fresh

    def to_value(self) -> Any:
        return self._known.to_value()

    def restore(self, value: Any) -> None:
        self._known = PunctuationSet.from_value(value)


def together(punctuations: Punctuations) -> set[frozenset[str]]:
    """Return the sets of attributes that some punctuation restricts together."""
    groups, odd = punctuations.parts
    return {group.attributes for group in groups} | {pattern.attributes for _, pattern in odd}


def restricted(punctuations: Punctuations) -> frozenset[str]:
    """Return all attributes that some punctuation restricts."""
    return frozenset().union(*together(punctuations))


def _equal(punctuations: Punctuations, others: Punctuations) -> Mask:
    """Return a mask of the punctuations that are among the others."""
    found = np.zeros(len(punctuations), dtype=np.bool_)
    for group in punctuations.parts.groups:
        for other in others.parts.groups:
            if not group.same_kind(other):
                continue
            if not group.shape:
                found[group.positions] = True
                continue
            if len(group.columns) == 1:
                [own], [others_own] = group.columns.values(), other.columns.values()
                found[group.positions] |= _found(own, others_own)
                continue
            rows = pl.DataFrame(dict(group.columns)).with_row_index(_ROW)
            alike = rows.join(pl.DataFrame(dict(other.columns)), on=list(group.columns), how="semi")
            found[group.positions[alike.get_column(_ROW).to_numpy()]] = True
    patterns = {pattern for _, pattern in others.parts.odd}
    for position, pattern in punctuations.parts.odd:
        found[position] = pattern in patterns
    return found


def _overlap(ports: Sequence[Punctuations]) -> bool:
    """Return whether a punctuation of one port may cover a different one of another port. It then restricts no other
    attributes than the covered one."""
    if not any(port.parts.odd for port in ports):
        kinds = {group.shape for port in ports for group in port.parts.groups}
        if len(kinds) == 1 and all(op == "=" for _, op in next(iter(kinds))):
            return False
    shapes = [together(port) for port in ports]
    return any(one <= other for own, others in permutations(shapes, 2) for one, other in product(own, others))


def matched(punctuations: Punctuations, rows: pl.DataFrame) -> Mask:
    """Return a mask of the punctuations that some row matches."""
    found = np.zeros(len(punctuations), dtype=np.bool_)
    fill(found, punctuations, rows, _group_matched, pl.Series.any)
    return found


def fill(
    found: npt.NDArray[Any],
    punctuations: Punctuations,
    rows: pl.DataFrame,
    of_group: Callable[[Group, pl.DataFrame], npt.NDArray[Any]],
    of_matches: Callable[[pl.Series], Any],
) -> None:
    """Set `found` of each punctuation: by `of_group` for whole groups, for others by `of_matches` of the match mask."""
    if rows.height:
        for group in punctuations.parts.groups:
            found[group.positions] = of_group(group, rows)
        for position, pattern in punctuations.parts.odd:
            found[position] = of_matches(pattern.match(rows))


def _group_matched(group: Group, rows: pl.DataFrame) -> Mask:
    names = [name for name, op in group.shape if op == "="]
    bounds = [(name, op) for name, op in group.shape if op != "="]
    if not group.shape:
        return np.ones(group.height, dtype=np.bool_)
    if len(bounds) > 1:
        return np.array([bool(pattern.match(rows).any()) for pattern in group.patterns()], dtype=np.bool_)
    columns = {name: comparable(rows.get_column(name), group.columns[name].dtype) for name, _ in group.shape}
    if not bounds and len(names) == 1:
        return _found(group.columns[names[0]], columns[names[0]])
    if not names:
        return _within(group.columns[bounds[0][0]], bounds[0][1], columns[bounds[0][0]])
    restrictions = pl.DataFrame(dict(group.columns))
    stored = pl.DataFrame(columns)
    if not bounds:
        known = stored.unique().with_columns(pl.lit(True).alias("__known"))
        found = restrictions.join(known, on=names, how="left", maintain_order="left").get_column("__known")
        return found.fill_null(False).to_numpy()
    # Among rows with equal values in the other columns, the one furthest inside the bound decides.
    name, op = bounds[0]
    furthest = (pl.col(name).min() if op in ("<", "<=") else pl.col(name).max()).alias("__furthest")
    joined = restrictions.join(stored.group_by(names).agg(furthest), on=names, how="left", maintain_order="left")
    inside: pl.Series = INSIDE[op](joined.get_column(name), joined.get_column("__furthest"))
    return inside.fill_null(False).to_numpy()


def _found(values: pl.Series, column: pl.Series) -> Mask:
    """Return a mask of the values that are in the column."""
    column = column.drop_nulls() if column.null_count() else column
    if values.dtype == pl.Int64:
        return np.isin(values.to_numpy(), column.to_numpy())
    return values.is_in(column.implode()).to_numpy()


def _within(bounds: pl.Series, op: str, column: pl.Series) -> Mask:
    """Return a mask of the bounds that the column's value furthest inside lies within."""
    furthest = column.min() if op in ("<", "<=") else column.max()
    if furthest is None:
        return np.zeros(bounds.len(), dtype=np.bool_)
    if bounds.dtype == pl.String:
        inside: pl.Series = INSIDE[op](bounds, furthest)
        return inside.to_numpy()
    numbers = bounds.to_numpy()
    return np.asarray(INSIDE[op](numbers, np.array(furthest, dtype=numbers.dtype)), dtype=np.bool_)


def comparable(column: pl.Series, dtype: pl.DataType) -> pl.Series:
    """Return the column in the type of patterns, with NaN, which matches nothing, as null."""
    column = column if column.dtype == dtype else canonical(column)
    return column.fill_nan(None) if column.dtype.is_float() else column
