"""What the queries of a script must have emitted: each alone over the tuples accepted after it was added."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from millstream.algebra.punctuation.pattern import Pattern, parse_pattern
from millstream.algebra.schema import Schema
from millstream.algebra.stream_id import StreamId
from millstream.control.mill.base import Mill
from millstream.lang import ast, parse
from millstream.logical.bind import bind_select
from millstream.logical.nodes.scan import Scan
from millstream.logical.nodes.table_write import TableWrite
from millstream.logical.plan import Plan
from tests.reference.meaning.relation import Row, Rows
from tests.reference.plan import run
from tests.reference.source import SourceReference
from tests.reference.written_table import written

Bag = Counter[tuple[Any, ...]]


@dataclass
class Stream:
    """A stream as its front end accepts it: what was accepted, with the time of each tuple, what was late, and what was
    bad. `folder`: of its files, if it has a connector; `waiting`: rows in files that it has not read."""

    text: str
    folder: str | None = None
    front: SourceReference = field(init=False)
    accepted: Rows = field(default_factory=list)
    bad: Rows = field(default_factory=list)
    waiting: list[Row] = field(default_factory=list)

    def __post_init__(self) -> None:
        watermark = 3 if "WATERMARK" in self.text else None
        ordered = not self.clocked and watermark is None and "PUNCTUATED" not in self.text
        self.front = SourceReference(None if self.clocked else "ts", in_order=ordered, watermark=watermark)

    @property
    def clocked(self) -> bool:
        return "ORDER BY ts" not in self.text

    def rows(self, name: str) -> Rows:
        """What a scan of the stream, or of a companion of that name, has emitted."""
        late: Rows = [(row, 0) for row in self.front.late]
        return {"late": late, "bad": self.bad}.get(StreamId.of(name).companion, self.accepted)

    def take(self, row: Row, now: int = 0, text: str = "") -> None:
        missing = not self.clocked and row["ts"] is None
        if missing or any(isinstance(item, str) for item in row.values()):
            self.bad.append(({"input": text, "reason": ""}, 0))
            return
        late = len(self.front.late)
        self.front.take(row)
        if len(self.front.late) == late:
            self.accepted.append((row, now if self.clocked else row["ts"]))

    def drain(self) -> None:
        for row in self.waiting:
            self.take(row)
        self.waiting = []


@dataclass
class Query:
    """`streams`: those it reads, and how many tuples they had accepted before; `taken`: what an equal query, whose
    operators it shares, had emitted before."""

    plan: Plan
    streams: dict[str, tuple[Stream, int]]
    taken: Bag = field(default_factory=Counter)
    rows: Bag = field(default_factory=Counter)
    dropped: bool = False
    unwanted: list[Pattern] = field(default_factory=list)
    """What its consumer has disclaimed by feedback: such rows need not come, and none comes after it."""
    inherited: list[Pattern] = field(default_factory=list)
    """Likewise of the equal query whose operators it shares; such rows may come."""

    @property
    def open(self) -> bool:
        """True if more of its rows may come: it was dropped, or a stream has not ended."""
        return self.dropped or any(stream.folder for stream, _ in self.streams.values())


@dataclass
class Answers:
    streams: dict[str, Stream] = field(default_factory=dict)
    queries: dict[str, Query] = field(default_factory=dict)
    files: dict[str, list[Row]] = field(default_factory=dict)
    """The rows of each folder."""
    writers: dict[str, TableWrite] = field(default_factory=dict)
    """By table, what writes it, from before any input on."""

    def statement(self, text: str, mill: Mill, emitted: Mapping[str, list[tuple[Any, ...]]]) -> None:
        (made,) = parse(text)
        if isinstance(made, ast.Drop) and made.name in self.queries:
            self.queries[made.name].dropped = True
        elif isinstance(made, ast.CreateQuery) and isinstance(plan := mill.queries[made.name].plan, TableWrite):
            self.writers[plan.table] = plan
        elif isinstance(made, ast.CreateQuery):
            self._start(made, mill, emitted)
        elif isinstance(made, ast.CreateStream):
            found = re.search(r"path = '([^']*)'", text)
            self.streams[made.name] = stream = Stream(text, found and found[1])
            stream.waiting = list(self.files.get(stream.folder or "", ()))

    def _start(self, made: ast.CreateQuery, mill: Mill, emitted: Mapping[str, list[tuple[Any, ...]]]) -> None:
        plan, equal = bind_select(made.select, mill.catalog), None
        if made.start.how == "shared":
            own = mill.queries[made.name].plan
            equal = next((name for name, q in mill.queries.items() if name != made.name and q.plan == own), None)
        if equal is not None:
            other = self.queries[equal]
            taken = other.taken + other.rows + Counter(emitted.get(equal, ()))
            self.queries[made.name] = Query(plan, other.streams, taken, inherited=other.unwanted + other.inherited)
        elif made.start.how == "beginning":
            self.queries[made.name] = query = Query(plan, {})
            for name in scanned(plan):
                stream = self.streams[StreamId.of(name).base]
                again = Stream(stream.text, stream.folder)
                again.waiting = list(self.files.get(str(stream.folder), ()))
                query.streams[name] = again, 0
        else:
            self.queries[made.name] = self._now(plan)

    def query(self, name: str, text: str, mill: Mill) -> None:
        (made,) = parse(text)
        assert isinstance(made, ast.SelectStatement)
        self.queries[name] = self._now(bind_select(made.select, mill.catalog))

    def _now(self, plan: Plan) -> Query:
        read = {name: self.streams[StreamId.of(name).base] for name in scanned(plan)}
        return Query(plan, {name: (stream, len(stream.rows(name))) for name, stream in read.items()})

    def feed(self, name: str, lines: Iterable[str], mill: Mill) -> None:
        stream, schema = self.streams[name], mill.catalog.stream(name).schema
        for line in lines:
            if line.startswith("["):
                stream.front.take(parse_pattern(line, schema))
            else:
                values = map(number, line.replace(" ", "").split("|"))
                stream.take(dict(zip(schema.names, values, strict=True)), mill.clock.now(), line)

    def file(self, name: str, lines: Iterable[str]) -> None:
        folder = name.split("/")[0]
        if name.endswith(".json"):
            rows = [json.loads(line) for line in lines]
        else:
            head, *rest = lines
            names = head.split(",")
            rows = [dict(zip(names, map(number, line.split(",")), strict=True)) for line in rest]
        self.files.setdefault(folder, []).extend(rows)
        for stream in self._streams():
            if stream.folder == folder:
                stream.waiting += rows

    def drain(self) -> None:
        """Read the files of streams that a query reads."""
        for query in self.queries.values():
            for stream, _ in () if query.dropped else query.streams.values():
                stream.drain()

    def _streams(self) -> list[Stream]:
        read = [stream for query in self.queries.values() for stream, _ in query.streams.values()]
        return list({id(stream): stream for stream in (*self.streams.values(), *read)}.values())

    def feedback(self, name: str, text: str, schema: Schema) -> None:
        self.queries[name].unwanted.append(parse_pattern(text.removeprefix("~"), schema))

    def emitted(self, name: str, rows: list[tuple[Any, ...]], schema: Schema) -> None:
        query = self.queries[name]
        for row in rows:
            assert not matched(query.unwanted, row, schema), f"{name}: {row} is not wanted"
        query.rows.update(rows)

    def counted(self, name: str, what: str, found: int) -> None:
        """Of several readings of a stream, the one counts that has read most."""
        live = [query for query in self.queries.values() if not query.dropped]
        again = (
            stream for query in live for read, (stream, _) in query.streams.items() if StreamId.of(read).base == name
        )
        counts = [(len(s.accepted), len(s.front.late), len(s.bad)) for s in (self.streams[name], *again)]
        place = ("accepted", "late", "bad").index(what)
        allowed = {count[place] for count in counts if sum(count) == max(map(sum, counts))}
        assert found in allowed, f"{what} {name}: {found}, but the reference has {allowed}"

    def check(self) -> None:
        """A query that ran to the end of its streams emitted all its rows; any other, some of them."""
        accepted = {name: stream.accepted for name, stream in self.streams.items()}
        histories = {
            table: written(plan.target.table_schema.names, [], [(plan.program, run(plan.input, accepted, {}))])[0]
            for table, plan in self.writers.items()
        }
        for name, query in self.queries.items():
            read = {scan: made.rows(scan)[since:] for scan, (made, since) in query.streams.items()}
            meant = Counter(tuple(row.values()) for row, _ in run(query.plan, read, {}, histories))
            found = query.rows + query.taken
            extra, missing = found - meant, Counter() if query.open else meant - found
            disclaimed = query.unwanted + query.inherited
            missing = Counter({row: n for row, n in missing.items() if not matched(disclaimed, row, query.plan.schema)})
            assert not extra and not missing, f"{name}: extra {dict(extra)}, missing {dict(missing)}"


def matched(patterns: list[Pattern], row: tuple[Any, ...], schema: Schema) -> bool:
    values = dict(zip(schema.names, row, strict=True))
    return any(pattern.matches(values) for pattern in patterns)


def number(text: str) -> int | str | None:
    """The value of a text; one that is no number stays a text."""
    return None if text in ("", "NULL") else text if text == "x" else int(text)


def scanned(plan: Plan) -> set[str]:
    return {part.stream for part in plan.walk() if isinstance(part, Scan)}
