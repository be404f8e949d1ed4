"""How the rows of the sources of a query, or of the table of a statement, are found.

A condition is tested in the outermost loop that has its columns, unless an index finds the rows for which it holds:

| condition | rows |
|---|---|
| `column = value`, known before the loop | those of a key, unless it has fractions, where NaN equals NaN |
| that, and `column < value` of integers | the first or last ones of the key, in the order of that column |
| `column < value` alone | the first or last ones of the table, if it is sorted by that column anyway |
| `column IN (SELECT …)` | those of each key that the query has |
| `EXISTS (SELECT … FROM other WHERE other.a = a AND other.b < b)` | for each row of the other table, those of its key |

The last three are for rows that may come in any order; so is the second.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from millstream.algebra.expression import Binary, Column, Expression, conjuncts
from millstream.algebra.program.expression import Exists, InQuery, subqueries, walk
from millstream.algebra.program.query import Query, Source
from millstream.algebra.types import Type
from millstream.runtime.program.forms import has_nan
from millstream.runtime.program.ordered import Order, Range
from millstream.runtime.program.source import Frame, LocalStorage

TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
"""Comparisons with a bound, and the same with their sides exchanged."""
_WHOLE = (Type.INT, Type.BIGINT)


@dataclass(slots=True)
class Level:
    """The rows of one source: the table, or the source of a list of rows; the values to look up, by column, or a column
    and the query whose rows are looked up in it; and the conditions that are tested for each row."""

    source: Source
    variable: str
    storage: LocalStorage | None
    keys: dict[int, Expression] = field(default_factory=dict)
    members: tuple[int, Query] | None = None
    conditions: list[Expression] = field(default_factory=list)
    beyond: tuple[Order | Range, str, Expression] | None = None
    """A sorted index and a bound of its values."""
    probe: Level | None = None
    """The rows of another table, which have the values to look up, and the bound."""
    first: tuple[Order | Range, bool] | None = None
    """The order in which the rows come if only the first one is used, and True for the reverse."""

    @property
    def fixed(self) -> int:
        """The number of rows, if they need no loop."""
        return 0 if self.storage is None or self.source.outer else self.storage.fixed

    @property
    def is_own(self) -> bool:
        """True if the program alone fills the table, and it is looped over."""
        return self.storage is not None and self.storage.own and not (self.storage.fixed or self.source.outer)

    @property
    def columns(self) -> tuple[int, ...]:
        """The columns that are looked up."""
        return tuple(sorted(self.keys)) if self.members is None else (self.members[0],)

    def owns(self, node: Expression) -> bool:
        """True if it is a column of the source."""
        return isinstance(node, Column) and node.name.rpartition(".")[0] == self.source.alias

    def position(self, column: Expression) -> int:
        assert isinstance(column, Column)
        return self.source.columns.index(column.name.rpartition(".")[2])

    def assigns(self, node: Expression) -> bool:
        """True if it is a column that an UPDATE changes."""
        return self.storage is not None and self.owns(node) and self.position(node) in self.storage.assigned


class Access:
    """The levels of a query, the outermost first."""

    def __init__(
        self, frame: Frame, sources: Sequence[Source], condition: Expression | None, *, ordered: bool = True
    ) -> None:
        """`ordered`: the rows of the first table have to come in its order."""
        self._frame, self.ordered = frame, ordered
        self.levels: list[Level] = []
        self.before: list[Expression] = []
        """Conditions that use no source."""
        self.after: dict[int, list[Expression]] = {}
        """Conditions on the rows of an outer join, after it has added rows of NULLs."""
        for source in sources:
            self.levels.append(self._level(source))
        parts = [part for part in conjuncts(condition) if not self._looks_up_members(part)]
        for part in sorted(parts, key=self._changes):
            self._place(part)
        if not ordered:
            for at, level in enumerate(self.levels):
                self._takes_range(level, self.levels[at:])
            if len(self.levels) == 1:
                self._takes_probe(self.levels[0])

    def _level(self, source: Source) -> Level:
        frame, relation = self._frame, source.relation
        storage = frame.module.tables[relation] if isinstance(relation, str) else None
        level = Level(source, frame.module.name("r"), storage)
        if level.fixed:
            assert storage is not None
            frame.bind_cells(source.alias, storage)
        else:
            frame.bind_row(source.alias, level.variable, source.columns)
        if source.outer:
            for part in conjuncts(source.on):
                if not self._looks_up(level, part, known=len(self.levels)):
                    level.conditions.append(part)
        return level

    def _place(self, part: Expression) -> None:
        used = aliases(part)
        at = max((n for n, level in enumerate(self.levels) if level.source.alias in used), default=None)
        if at is None:
            self.before.append(part)
            return
        level = self.levels[at]
        if level.source.outer:
            self.after.setdefault(at, []).append(part)
        elif not self._looks_up(level, part, known=at):
            level.conditions.append(part)

    def _changes(self, part: Expression) -> bool:
        """True if a condition tests a column that an UPDATE changes: an index on others is better."""
        return any(level.assigns(node) for level in self.levels for node in walk(part))

    # --- keys -----------------------------------------------------------------------------------------------------

    def _looks_up(self, level: Level, part: Expression, known: int) -> bool:
        """Take an equality as a lookup, if its other side is known before the loop."""
        if level.storage is None or level.storage.fixed or not (isinstance(part, Binary) and part.op == "="):
            return False
        if level.members is not None:
            return False
        later = {level.source.alias, *(each.source.alias for each in self.levels[known:])}
        for column, value in ((part.left, part.right), (part.right, part.left)):
            own = level.owns(column) and not has_nan(column.type)
            if not own or (level.keys and level.assigns(column)) or aliases(value) & later:
                continue
            if level.position(column) not in level.keys and value.type is column.type:
                level.keys[level.position(column)] = value
                return True
        return False

    def _looks_up_members(self, part: Expression) -> bool:
        """Take `column IN (SELECT …)` as lookups, if the query is known before the loop."""
        part = self._membership(part)
        if not (isinstance(part, InQuery) and isinstance(part.operand, Column)):
            return False
        at = next((at for at, level in enumerate(self.levels) if level.owns(part.operand)), None)
        if at is None or has_nan(part.operand.type) or part.query.items[0].type is not part.operand.type:
            return False
        level, later = self.levels[at], {each.source.alias for each in self.levels[at:]}
        taken = level.storage is None or level.fixed or level.source.outer or level.members is not None
        if taken or query_aliases(part.query) & later:
            return False
        level.members = level.position(part.operand), part.query
        return True

    def _membership(self, part: Expression) -> Expression:
        """`EXISTS (SELECT … FROM other WHERE other.a = table.b)` as `table.b IN (SELECT other.a FROM other)`, where
        rows are in no order and `b` does not change."""
        other = self._other(part)
        if other is None or other.condition is None:
            return part
        pairs = _pairs(conjuncts(other.condition), other.sources[0].alias)
        if pairs is None or len(pairs) != 1 or pairs[0][1] != "=":
            return part
        ((inner, _, outer),) = pairs
        level = next((each for each in self.levels if each.owns(outer)), None)
        if level is None or level.source.relation == other.sources[0].relation or level.assigns(outer):
            return part
        return InQuery(Type.BOOLEAN, outer, Query(other.sources, (inner,)))

    def _other(self, part: Expression) -> Query | None:
        """The query of an EXISTS over one table, if rows may come in any order."""
        if self.ordered or not isinstance(part, Exists) or len(part.query.sources) != 1:
            return None
        query, (source,) = part.query, part.query.sources
        plain = query == Query(query.sources, query.items, query.condition) and not source.outer
        return query if plain and isinstance(source.relation, str) else None

    # --- ranges ---------------------------------------------------------------------------------------------------

    def _takes_range(self, level: Level, later: Sequence[Level]) -> None:
        """Take a bound of a column among the rows of a key."""
        if not level.keys or not level.is_own or any(at in _assigned(level) for at in level.keys):
            return
        unknown = {each.source.alias for each in later}
        for test in level.conditions:
            for column, op, bound in _turns(test):
                safe = self._frame.module.facts.is_safe(bound)
                if self._is_sortable(level, column) and bound.type in _WHOLE and safe and not aliases(bound) & unknown:
                    level.beyond = Range(level.columns, level.position(column)), op, bound
                    level.conditions.remove(test)
                    return

    def takes_bound(self, level: Level, test: Expression) -> bool:
        """Take the only condition as a bound, if the table has a sorted index of its column anyway."""
        if self.ordered or level.storage is None:
            return False
        for column, op, bound in _turns(test):
            if not level.owns(column) or level.source.alias in aliases(bound) or level.assigns(column):
                continue
            order = level.storage.sorted_by(level.position(column))
            if order is not None and column.type in _WHOLE and bound.type in _WHOLE:
                level.beyond = order, op, bound
                level.conditions.clear()
                return True
        return False

    def _takes_probe(self, level: Level) -> None:
        """Take an EXISTS with keys and a bound: the rows of its table find those of this one."""
        if level.keys or level.members is not None or not level.is_own:
            return
        for part in level.conditions:
            if (query := self._other(part)) is not None and self._probes(level, query):
                level.conditions.remove(part)
                return

    def _probes(self, level: Level, query: Query) -> bool:
        (source,) = query.sources
        assert isinstance(source.relation, str)
        storage = self._frame.module.tables[source.relation]
        if source.relation == level.source.relation or storage.fixed or query.condition is None:
            return False
        tests = conjuncts(query.condition)
        local = [test for test in tests if level.source.alias not in aliases(test)]
        pairs = _pairs([test for test in tests if test not in local], source.alias)
        if pairs is None or not all(map(self._frame.module.facts.is_safe, local)):
            return False
        keys = [(outer, inner) for inner, op, outer in pairs if op == "="]
        bounds = [(outer, TURNED[op], inner) for inner, op, outer in pairs if op in TURNED]
        distinct = len({level.position(outer) for outer, _ in keys}) == len(keys) if self._own(level, pairs) else False
        if not distinct or not keys or len(bounds) != 1 or len(keys) + 1 != len(pairs):
            return False
        ((outer, op, inner),) = bounds
        if not self._is_sortable(level, outer) or inner.type not in _WHOLE:
            return False
        level.keys = {level.position(column): value for column, value in keys}
        level.beyond = Range(level.columns, level.position(outer)), op, inner
        level.probe = Level(source, self._frame.module.name("r"), storage, conditions=local)
        self._frame.bind_row(source.alias, level.probe.variable, source.columns)
        return True

    @staticmethod
    def _own(level: Level, pairs: Iterable[tuple[Column, str, Column]]) -> bool:
        return all(level.owns(outer) and not level.assigns(outer) for _, _, outer in pairs)

    def takes_first(self, column: Expression, *, last: bool) -> None:
        """The rows of the innermost source are used up to the first in the order of a column."""
        level, facts = self.levels[-1], self._frame.module.facts
        if self.ordered or not level.is_own or not self._is_sortable(level, column):
            return
        if level.members is not None or not all(map(facts.is_safe, level.conditions)):
            return
        at = level.position(column)
        if level.beyond is not None:
            index = level.beyond[0]
            if index.column == at:
                level.first = index, last
        elif not level.keys:
            level.first = Order(at, descending=False), last
        elif not any(key in _assigned(level) for key in level.keys):
            level.first = Range(level.columns, at), last

    @staticmethod
    def _is_sortable(level: Level, column: Expression) -> bool:
        return level.owns(column) and column.type in _WHOLE and not level.assigns(column)


def _assigned(level: Level) -> set[int]:
    return set() if level.storage is None else level.storage.assigned


def _turns(test: Expression) -> list[tuple[Expression, str, Expression]]:
    """A comparison with a bound, read from both sides."""
    if not isinstance(test, Binary) or test.op not in TURNED:
        return []
    return [(test.left, test.op, test.right), (test.right, TURNED[test.op], test.left)]


def _pairs(tests: Sequence[Expression], alias: str) -> list[tuple[Column, str, Column]] | None:
    """Comparisons of a column of this source with one of another, that of the source first; None if there are others.
    Columns of an equality have one type that has no NaN."""
    found = []
    for test in tests:
        if not (isinstance(test, Binary) and isinstance(test.left, Column) and isinstance(test.right, Column)):
            return None
        own = [column.name.rpartition(".")[0] == alias for column in (test.left, test.right)]
        compares = test.op in TURNED or (test.op == "=" and not has_nan(test.left.type))
        if own.count(True) != 1 or not compares or (test.op == "=" and test.left.type is not test.right.type):
            return None
        op = TURNED.get(test.op, test.op)
        found.append((test.left, test.op, test.right) if own[0] else (test.right, op, test.left))
    return found


def aliases(expression: Expression) -> set[str]:
    """The aliases whose columns an expression uses, also inside subqueries."""
    found = {node.name.rpartition(".")[0] for node in walk(expression) if isinstance(node, Column)}
    return found.union(*map(query_aliases, subqueries(expression)))


def query_aliases(query: Query) -> set[str]:
    """The aliases whose columns a query uses, its own and those of the queries around it."""
    parts = (part for inner in query.walk() for part in inner.expressions())
    return {node.name.rpartition(".")[0] for part in parts for node in walk(part) if isinstance(node, Column)}
