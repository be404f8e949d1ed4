"""The statements of a file, compared with those that the journal of a mill has.

Statements are the same if they mean the same: layout, comments and the case of words make no difference. A query
without a name is found by its text. What the file drops and creates again counts as it is at the end of the file.

| statement | then |
|---|---|
| in the file only | it is run |
| in both, and the same | nothing |
| in both, and another one; or in the journal only | a difference, unless the file has a DROP for it |
| SET with another value | it is run |
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from millstream.config import Options
from millstream.control.mill.base import Mill
from millstream.control.mill.dropping import kind_of
from millstream.control.mill.journal import Key, aggregate_name
from millstream.control.mill.statements import aggregate_kind, sink_of
from millstream.lang import ast, parse_one
from millstream.lang.aggregate.ast import CreateAggregate
from millstream.lang.spelling import spelled
from millstream.lang.table.ast import CreateTableFunction, CreateView, WriteStatement

_FREE = re.compile(r"(query|insert_.*|update_.*|delete_.*)_\d+")
CONSOLE = "console"
"""Sink of a query in a file that names none."""
Created = ast.CreateStream | ast.CreateDerivedStream | ast.CreateTable | ast.CreateQuery | CreateAggregate | CreateView


@dataclass(slots=True)
class Comparison:
    """`run`: the statements that are left to run, in the order of the file."""

    run: list[ast.Statement] = field(default_factory=list)
    changed: list[Key] = field(default_factory=list)
    gone: list[Key] = field(default_factory=list)
    unset: list[str] = field(default_factory=list)
    """Options that the file no longer sets."""

    @property
    def differs(self) -> bool:
        return bool(self.changed or self.gone or self.unset)

    def lines(self, mill: Mill) -> Iterator[str]:
        """The differences, each with what to write into the file."""
        for key in self.changed:
            what, drop = _described(mill, key)
            yield f"{what} has changed; to start it anew, write {drop} before it"
        for key in self.gone:
            what, drop = _described(mill, key)
            yield f"{what} is not in the file; to drop it, write {drop}"
        for option in self.unset:
            yield f"option {option} is no longer set; its value is {mill.journal.options[option]!r}"

    def _to_drop(self, mill: Mill) -> dict[Key, None]:
        """What differs, and what reads it."""
        left = dict.fromkeys([*self.changed, *self.gone])
        for key in (todo := [*left]):
            for reader in _readers(mill, key):
                if reader not in left:
                    left[reader] = None
                    todo.append(reader)
        return left

    def check_sinks(self, mill: Mill, statements: Sequence[ast.Statement], others: Collection[str]) -> None:
        """Raise OptionError if the statements could not run after `drop`, because a sink has the results of a query
        that would be dropped. `others`: further queries that are to be dropped."""
        dropped = {name for kind, name in self._to_drop(mill) if kind == "query"} | {*others}
        for statement in statements:
            if isinstance(statement, ast.CreateQuery) and statement.name in dropped:
                into, options = sink_of(statement)
                if into is not None and statement.name in mill.placements.of:
                    with statement.placing():
                        mill.deliveries.check_anew(statement.name, into, options)

    def drop(self, mill: Mill) -> list[str]:
        """Drop what differs, and what reads it; give options their defaults. Return what was dropped."""
        left = self._to_drop(mill)
        dropped = [_described(mill, key)[0] for key in left]
        while left:
            key = next(key for key in left if key[0] != "relation" or not _readers(mill, key))
            mill.execute(_described(mill, key)[1])
            del left[key]
        for option in self.unset:
            mill.set_option(option, _default(option))
        return dropped


def remaining(mill: Mill, statements: Sequence[ast.Statement]) -> Comparison:
    """Compare a file with the journal. A file that was interrupted is continued after its last statement that ran, if
    nothing before that statement has changed."""
    done = mill.journal.statements_done(len(statements))
    if done < len(statements):
        begun = compared(mill, statements[:done])
        if not begun.differs and not begun.run:
            return Comparison([*statements[done:]])
    return compared(mill, statements)


def compared(mill: Mill, statements: Sequence[ast.Statement]) -> Comparison:
    have = {key: _same(parse_one(text)) for key, text in mill.journal.texts.items()}
    wanted: dict[Key, ast.Statement] = {}
    options: dict[str, ast.SetOption] = {}
    dropped: dict[Key, ast.Drop] = {}
    for statement in statements:
        match statement:
            case ast.Drop(kind="FUNCTION", name=name) if not any(
                isinstance(made.get(("relation", name)), CreateTableFunction) for made in (have, wanted)
            ):
                pass  # a checkpoint has no functions in Python
            case ast.Drop():
                for key in _keys(statement):
                    dropped[key] = statement
                    wanted.pop(key, None)
            case ast.SetOption():
                options[statement.name.lower()] = statement
            case _ if isinstance(statement, Created):
                wanted[_keys(statement)[0]] = statement
    unnamed = {key: query for key, query in have.items() if key not in wanted and _FREE.fullmatch(key[1])}
    found, again, ran = Comparison(), set[Key](), mill.journal.once.copy()
    other = {key for key, statement in wanted.items() if key in have and _same(statement) != have[key]}
    again |= {key for key in other if getattr(wanted[key], "replaces", False) and not _readers(mill, key)}
    for statement in statements:
        match statement:
            case ast.Drop():
                last = [key for key in _keys(statement) if dropped.get(key) is statement]
                if any(key in have and (key not in wanted or key in other) for key in last):
                    found.run.append(statement)
                    again |= {*last}
            case ast.SetOption() if options[statement.name.lower()] is statement:
                if mill.journal.options.get(statement.name.lower()) != statement.value:
                    found.run.append(statement)
            case _ if isinstance(statement, Created):
                key = _keys(statement)[0]
                if wanted.get(key) is statement and (key not in have or key in again):
                    found.run.append(statement)
            case ast.SelectStatement() | ast.FeedbackStatement() | ast.AlterQuery() if ran[statement.text]:
                ran[statement.text] -= 1
            case ast.FeedbackStatement() | ast.AlterQuery():
                found.run.append(statement)
            case ast.SelectStatement():
                equal = next((key for key, query in unnamed.items() if _same(statement, key[1]) == query), None)
                if equal is None:
                    found.run.append(statement)
                else:
                    del unnamed[equal]
                    wanted[equal] = statement
    found.changed = [key for key in wanted if key in other and key not in dropped and key not in again]
    found.gone = [key for key in have if key not in wanted and key not in dropped]
    unset = mill.journal.options.keys() - options.keys() - {"shards"}
    found.unset = sorted(name for name in unset if getattr(mill.options, name) != _default(name))
    return found


def _keys(statement: Created | ast.Drop) -> tuple[Key, ...]:
    """What a statement creates or drops; DROP AGGREGATE drops both versions."""
    name = statement.name
    match statement:
        case ast.Drop(kind="AGGREGATE"):
            return ("aggregate", name), ("window aggregate", name)
        case CreateAggregate():
            return ((aggregate_kind(statement), name),)
        case ast.CreateQuery() | ast.Drop(kind="QUERY"):
            return (("query", name),)
    return (("relation", name),)


def _readers(mill: Mill, key: Key) -> list[Key]:
    """What reads a relation or calls an aggregate."""
    kind, name = key
    if kind == "query":
        return []
    return mill.journal.readers(name if kind == "relation" else aggregate_name(name))


def _same(statement: ast.Statement, name: str = "") -> ast.Statement:
    """The statement without differences that mean nothing. A query without a name gets this one."""
    if isinstance(statement, WriteStatement):
        return ast.CreateQuery(name, statement.select)
    if isinstance(statement, ast.SelectStatement):
        statement = ast.CreateQuery(name, statement.select, statement.into, statement.into_options)
    if isinstance(statement, ast.CreateQuery):
        into = CONSOLE if goes_to_console(statement) else statement.into
        return replace(statement, into=into, into_options=tuple(sorted(statement.into_options)))
    if isinstance(statement, CreateView):
        return replace(statement, replaces=False)
    if isinstance(statement, ast.CreateStream | ast.CreateDerivedStream | ast.CreateTable):
        return replace(statement, options=tuple(sorted(statement.options)))
    return statement


def goes_to_console(statement: ast.SelectStatement | ast.CreateQuery) -> bool:
    """Return whether a query of a file has results, and names no sink for them."""
    return isinstance(statement.select, ast.Query) and statement.into is None and not statement.into_options


def _default(option: str) -> Any:
    return Options.model_fields[option].default


def _described(mill: Mill, key: Key) -> tuple[str, str]:
    """What it is, with its name, and the statement that drops it."""
    kind, name = key
    if kind.endswith("aggregate"):
        return f"{kind} {spelled(name)}", f"DROP AGGREGATE IF EXISTS {spelled(name)}"
    if kind == "relation":
        kind = kind_of(mill, name)
    return f"{kind} {spelled(name)}", f"DROP {kind.upper()} {spelled(name)}"
