"""Random scripts: statements, input, files, moves of the clock, queries added and dropped, streams created again,
feedback, a table that a stream writes, restarts.

A script is a transcript whose `expect`, `late` and `state` blocks are still empty; `record` fills them in. `chance`
makes every choice, so a seed or an example of hypothesis is a script.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from tests.scripts.queries import query
from tests.time_kinds import IN_ORDER, KINDS

EXTERNAL = ("ordered", "punctuated", "watermarked")
SKEWED = ("ordered", "skewed", "lagging")
CLOCKED = ("latent", "internal", "internal")
COLUMNS = ("k", "v", "ts")
KEYS = ("1", "3", "10")
"""Values of k that are on different shards, of two as of three."""
STREAMS = ("s1", "s2", "s3")
STRATEGIES = ("dfs", "bfs", "rr", "batch:2", "dfs; union: bfs; windowaggregate: rr", "batch:4; select: bfs")
SETTINGS = (
    *(f"strategy = '{strategy}'" for strategy in STRATEGIES),
    "breaks = 'project; select; windowaggregate'",
    "breaks = ''",
    "multi_join = 'always'",
    "multi_join = 'never'",
)
TABLE = "w"
WRITER = "written"
"""The stream that writes the table."""
END = "[*, *, *]"
UNDECLARED = ("[*, 2, *]", "[*, {0, 5}, *]", "[*, < 2, *]", "[< 3, *, *]", "[{1, 3}, *, *]", "[3, 4, *]", END)
NO_NUMBER = "x"
"""What makes a row a bad one."""
MOST_QUERIES = 6


@dataclass
class Script:
    """The blocks of a transcript, and what is there at its end."""

    chance: Random
    allowed: tuple[str, ...]
    """The kinds of time that its streams may have."""
    blocks: list[str] = field(default_factory=list)
    kinds: dict[str, str] = field(default_factory=dict)
    derived: dict[str, str] = field(default_factory=dict)
    """The base stream of each derived stream."""
    queries: dict[str, str] = field(default_factory=dict)
    """The running queries."""
    files: dict[str, str] = field(default_factory=dict)
    """The folder of each stream with a connector."""
    writer: str = ""
    """The kind of time of the stream that writes the table, if there is one."""
    now: int = 0
    made: int = 0

    def add(self, *lines: str) -> None:
        self.blocks.append("\n".join(lines))

    def create(self, name: str) -> None:
        kind = self.chance.choice(self.allowed)
        self.kinds[name] = kind
        self.files.pop(name, None)
        source = ""
        if kind in ("ordered", "watermarked") and self.chance.random() < 0.4:
            self.made += 1
            format_ = self.chance.choice(("csv", "csv", "json", "parquet"))
            self.files[name] = f"{name}-{self.made}-{format_}"
            source = f" WITH (connector = '{format_}', path = '{self.files[name]}')"
            self._write(name)
        self.add("statement", f"CREATE STREAM {name} (k BIGINT, v BIGINT, ts BIGINT) {KINDS[kind]}{source}".rstrip())

    def write_table(self) -> None:
        """Create a table, a stream that writes it, and a query that joins it. All are there before any input."""
        self.writer = self.chance.choice(self.allowed)
        options = self.chance.choice(("", " WITH (partitioned = true)"))
        self.add("statement", f"CREATE STREAM {WRITER} (k BIGINT, v BIGINT, ts BIGINT) {KINDS[self.writer]}")
        self.add("statement", f"CREATE TABLE {TABLE} (k BIGINT PRIMARY KEY, v BIGINT){options}")
        conflict = "ON CONFLICT DO UPDATE SET v = excluded.v"
        insert = f"INSERT INTO {TABLE} SELECT k, v FROM {WRITER} WHERE k <> 2 {conflict}"
        self.add("statement", f"CREATE QUERY writes AS {insert}")
        reader, kind = self.chance.choice(sorted(self.kinds)), self.chance.choice(("JOIN", "LEFT JOIN"))
        text = f"SELECT x.k, x.v, {TABLE}.v AS w FROM {reader} AS x {kind} {TABLE} ON x.k = {TABLE}.k"
        self.queries["reads"] = text
        self.add("query reads", text)

    def derive(self) -> None:
        self.made += 1
        name, base = f"d{self.made}", self.chance.choice(sorted(self.kinds))
        self.derived[name] = base
        where = self.chance.choice(("", " WHERE v > 1", " WHERE k <> 2"))
        self.add("statement", f"CREATE STREAM {name} AS SELECT k, v, ts FROM {base}{where}")

    def query(self) -> None:
        if len(self.queries) >= MOST_QUERIES:
            return
        self.made += 1
        name = f"q{self.made}"
        equal = sorted(self.queries.keys() - {"reads"})
        if equal and self.chance.random() < 0.3:
            text = self.queries[self.chance.choice(equal)]
        else:
            text = self._text()
        self.queries[name] = text
        start = self._start(text)
        if start:
            self.add("statement", f"CREATE QUERY {name} WITH (start = '{start}') AS", text)
        else:
            self.add(f"query {name}", text)

    def _text(self) -> str:
        if self.chance.random() < 0.1:
            stream = self.chance.choice(sorted(self.kinds))
            column = "1 AS one" if stream in self.files else "input"  # a file has the row in a text of its own
            return self.chance.choice((f"SELECT k, v, ts FROM {stream}__late", f"SELECT {column} FROM {stream}__bad"))
        return query(self.chance, (*sorted(self.kinds), *sorted(self.derived)), self.kinds | self._bases())

    def _start(self, text: str) -> str:
        draw = self.chance.random()
        if draw < 0.1:
            return "shared"
        read = {name for name in (*self.kinds, *self.derived) if name in words(text)}
        reread = all(self.derived.get(name, name) in self.files for name in read)
        return "beginning" if reread and draw < 0.5 else ""

    def _bases(self) -> dict[str, str]:
        return {name: self.kinds[base] for name, base in self.derived.items()}

    def drop_query(self) -> None:
        if self.queries:
            self._drop(self.chance.choice(sorted(self.queries)))

    def _drop(self, name: str) -> None:
        self.observe(name)
        del self.queries[name]
        self.add("statement", f"DROP QUERY {name}")

    def create_again(self) -> None:
        """Drop a stream, with all that reads it, and create it again."""
        stream = self.chance.choice(sorted(self.kinds))
        names = [stream, *(name for name, base in self.derived.items() if base == stream)]
        for query_, text in list(self.queries.items()):
            if words(text) & {*names}:
                self._drop(query_)
        for name in names[1:]:
            del self.derived[name]
            self.add("statement", f"DROP STREAM {name}")
        self.add("statement", f"DROP STREAM {stream}")
        self.create(stream)

    def feed(self) -> None:
        stream = self.chance.choice(sorted(self.kinds))
        if self.writer and self.chance.random() < 0.3:
            self.add(f"input {WRITER}", *self._elements(self.writer))
        elif stream in self.files:
            self._write(stream)
        else:
            self.add(f"input {stream}", *self._elements(self.kinds[stream]), *self._closing())

    def _write(self, stream: str) -> None:
        self.made += 1
        elements = self._elements("ordered" if self.allowed is SKEWED else "watermarked")
        rows = [row.replace(" ", "").split("|") for row in elements]
        format_ = self.files[stream].split("-")[-1]
        name = f"file {self.files[stream]}/{self.made:03}.{format_}"
        if format_ == "json":
            values = [[f'"{v}"' if v == NO_NUMBER else v.lower() for v in row] for row in rows]
            objects = (", ".join(f'"{n}": {v}' for n, v in zip(COLUMNS, row, strict=True)) for row in values)
            self.add(name, *(f"{{{line}}}" for line in objects))
        else:  # a column of a parquet file has one type
            typed = [row for row in rows if format_ == "csv" or NO_NUMBER not in row] or [["1", "1", str(self.now)]]
            self.add(name, ",".join(COLUMNS), *(",".join(row).replace("NULL", "") for row in typed))

    def _closing(self) -> list[str]:
        """Punctuation that no stream declares, sometimes."""
        return [self.chance.choice(UNDECLARED)] if self.chance.random() < 0.1 else []

    def _elements(self, kind: str) -> list[str]:
        return [self._element(kind) for _ in range(self.chance.randint(1, 5))]

    def _element(self, kind: str) -> str:
        chance = self.chance
        self.now += chance.randint(0, 3)
        if kind == "punctuated" and chance.random() < 0.3:
            return chance.choice((f"[*, *, < {self.now - 3}]", f"[{chance.choice(KEYS)}, *, *]"))
        strict = kind in IN_ORDER and (self.allowed is SKEWED or chance.random() < 0.9)
        jitter = 0 if strict else -chance.randint(0, 3)
        row = [chance.choice((*KEYS, "NULL")), str(chance.randint(0, 6)), str(self.now + jitter)]
        if chance.random() < 0.05:
            row[chance.randrange(3)] = NO_NUMBER
        elif self.allowed is not CLOCKED and chance.random() < 0.03:
            row[2] = "NULL"  # no time
        return " | ".join(row)

    def observe(self, name: str) -> None:
        self.add(f"expect {name}")
        if self.chance.random() < 0.5:
            self.add(f"state {name} 0")

    def look(self) -> None:
        if self.queries:
            self.observe(self.chance.choice(sorted(self.queries)))

    def count(self) -> None:
        self.add(f"{self.chance.choice(('late', 'bad'))} {self.chance.choice(sorted(self.kinds))} 0")

    def advance(self) -> None:
        seconds = self.chance.choice((1, 2, 5))
        self.now += seconds  # a stream with a skew may have promised as much: nothing is late by a promise
        self.add(f"advance {seconds} SECONDS")

    def set(self) -> None:
        self.add("statement", f"SET {self.chance.choice(SETTINGS)}")

    def feedback(self) -> None:
        """Disclaim rows of a query by a column that all have."""
        told = sorted(name for name, text in self.queries.items() if text.startswith(("SELECT k, ", "SELECT x.k, ")))
        if told:
            name = self.chance.choice(told)
            self.add(f"expect {name}")
            self.add(f"feedback {name} ~[k = {self.chance.choice(KEYS)}]")

    def restart(self) -> None:
        self.add("restart")

    def end(self) -> None:
        """End all streams, and look at everything."""
        if self.writer:
            self.add(f"input {WRITER}", END)
        for stream in sorted(self.kinds.keys() - self.files.keys()):
            self.add(f"input {stream}", END)
        for name in sorted(self.queries):
            self.add(f"expect {name}")
            self.add(f"state {name} 0")
        for stream in sorted(self.kinds):
            self.add(f"late {stream} 0")
            self.add(f"bad {stream} 0")


def words(text: str) -> set[str]:
    """The words of a query; a companion of a stream counts as the stream."""
    return {word.partition("__")[0] for word in text.replace("(", " ").replace(")", " ").split()}


STEPS = (
    (Script.feed, 40),
    (Script.query, 15),
    (Script.drop_query, 5),
    (Script.derive, 4),
    (Script.create_again, 3),
    (Script.look, 10),
    (Script.count, 3),
    (Script.advance, 8),
    (Script.set, 3),
    (Script.feedback, 3),
    (Script.restart, 4),
)


def random_script(chance: Random, steps: int = 25) -> list[str]:
    """The blocks of a random script."""
    script = Script(chance, chance.choice((EXTERNAL, EXTERNAL, SKEWED, CLOCKED)))
    for name in STREAMS[: chance.randint(2, 3)]:
        script.create(name)
    if script.allowed is not CLOCKED and chance.random() < 0.3:
        script.write_table()
    script.query()
    for _ in range(chance.randint(5, steps)):
        step = chance.choices([step for step, _ in STEPS], [weight for _, weight in STEPS])[0]
        step(script)
    script.end()
    return script.blocks
