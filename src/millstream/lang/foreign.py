"""Constructs of other dialects, and clauses at the wrong place: named when a text does not parse, with what to write.

They are looked up only after the grammar has failed, around the token that it cannot use, so a valid text is never
refused here. A pattern is a list of tokens; `name`, `number` and `string` stand for any token of that kind. `^` is the
start of a statement.

>>> from millstream.lang.tokens import tokenize
>>> print(find(tokenize("SELECT a FROM s EMIT CHANGES"), 5).message)
EMIT: not available
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from typing import NamedTuple

from millstream.lang.tokens import Kind, Token

_VIEW = "CREATE STREAM … AS SELECT names the result of a query"
_DEFINED = "DROP it, then CREATE it again"
_FED = "rows come from a connector, or in Python from mill.insert('{0}', rows)"
_BY_WINDOW = "a window stands after the stream: FROM s [RANGE 10 MINUTES] GROUP BY …; select window_start, window_end"
_SUBQUERY = "a subquery in FROM, or a derived stream: CREATE STREAM … AS SELECT …"
_ENDLESS = "A continuous query never ends, so it has no last row; limit the rows that you take from it."
_OUTER = "LEFT JOIN, then WHERE b.k IS NULL keeps the tuples without a partner"
_SEMI = "JOIN … ON, and SELECT DISTINCT of the columns of the left stream"
_LATEST = "WHERE SEQ(a, b) MODE RECENT AND a.k = b.k pairs each b with the latest a before it"
_SETS = "a query for each set of columns"
_CONSTRAINT = "leave it out; PRIMARY KEY (…) and NOT NULL are the constraints of a column"
_SHOWN = "SHOW STREAMS, SHOW TABLES, SHOW QUERIES, SHOW FUNCTIONS or SHOW AGGREGATES"
_COMPUTED = "compute them in a derived stream: CREATE STREAM … AS SELECT"
_BOTH = "a window for each stream: a [RANGE 5 SECONDS] JOIN b [RANGE 5 SECONDS] ON …"
_RUNNING = "CREATE QUERY starts a query, DROP QUERY stops it"

_NOT_AVAILABLE: dict[str, tuple[str, str]] = {
    # statements
    "^ WITH name AS": ("WITH … AS before a query", _SUBQUERY),
    "^ WITH RECURSIVE": ("WITH RECURSIVE", _SUBQUERY),
    "^ DESCRIBE": ("DESCRIBE", "SHOW STREAMS and SHOW TABLES list the columns"),
    "^ DESC": ("DESC", "SHOW STREAMS and SHOW TABLES list the columns"),
    "^ MERGE": ("MERGE", "INSERT INTO t SELECT … ON CONFLICT DO UPDATE SET …"),
    "^ TRUNCATE": ("TRUNCATE", "DELETE FROM t removes all rows of a table"),
    "^ USE": ("USE", "there is one catalog, without databases"),
    "^ VALUES": ("VALUES", _FED.format("s")),
    "^ RESET": ("RESET", "SET name = value, with the default of the option"),
    "^ SOURCE": (
        "SOURCE",
        "WITH (connector = 'csv', path = '…') reads files; without it, a program feeds the stream: mill.insert",
    ),
    "^ START": ("START", _RUNNING),
    "^ STOP": ("STOP", _RUNNING),
    "^ RUN": ("RUN", _RUNNING),
    "^ PAUSE": ("PAUSE", _RUNNING),
    "^ RESUME": ("RESUME", _RUNNING),
    "^ KILL": ("KILL", _RUNNING),
    "^ TERMINATE": ("TERMINATE", _RUNNING),
    "^ EXECUTE": ("EXECUTE", "each statement takes effect at once"),
    "^ ADD": ("ADD", "--functions names a module of Python functions"),
    "^ LIST": ("LIST", _SHOWN),
    "^ RENAME": ("RENAME", _DEFINED),
    "^ VACUUM": ("VACUUM", "leave it out: state that is purged takes no room"),
    "^ BEGIN": ("transactions", "each statement takes effect at once"),
    "^ COMMIT": ("transactions", "each statement takes effect at once"),
    "^ ROLLBACK": ("transactions", "each statement takes effect at once"),
    "^ COPY": ("COPY", "a stream or table WITH (connector = 'csv', path = '…') reads files"),
    "^ LOAD": ("LOAD", "a stream or table WITH (connector = 'csv', path = '…') reads files"),
    "^ PRINT": ("PRINT", "SELECT * FROM … INTO console"),
    "^ SUBSCRIBE": ("SUBSCRIBE", "a SELECT is a continuous query"),
    "^ REFRESH": ("REFRESH", "results are always up to date"),
    "^ AGGREGATE": (
        "AGGREGATE without CREATE",
        "CREATE [WINDOW] AGGREGATE name(argument type, …) : type { … }",
    ),
    "^ ANALYZE": ("ANALYZE", "EXPLAIN shows the plan of a query"),
    "^ GRANT": ("GRANT", "there are no users"),
    "^ REVOKE": ("REVOKE", "there are no users"),
    "CREATE OR REPLACE": ("CREATE OR REPLACE", f"{_DEFINED}, or CREATE … IF NOT EXISTS"),
    "CREATE MATERIALIZED": ("CREATE MATERIALIZED VIEW", _VIEW),
    "CREATE LIVE": ("CREATE LIVE VIEW", _VIEW),
    "CREATE TEMPORARY": ("TEMPORARY", "leave it out, and DROP it when it is no longer needed"),
    "CREATE TEMP": ("TEMP", "leave it out, and DROP it when it is no longer needed"),
    "CREATE EXTERNAL": ("CREATE EXTERNAL", "CREATE STREAM or CREATE TABLE … WITH (connector = '…')"),
    "CREATE SOURCE": ("CREATE SOURCE", "CREATE STREAM name (…) WITH (connector = '…')"),
    "CREATE SINK": ("CREATE SINK", "CREATE QUERY name AS SELECT … INTO parquet WITH (path = '…')"),
    "CREATE CONNECTOR": ("CREATE CONNECTOR", "CREATE STREAM name (…) WITH (connector = '…')"),
    "CREATE CONTINUOUS": ("CREATE CONTINUOUS QUERY", "CREATE QUERY name AS SELECT …: every query is continuous"),
    "CREATE FUNCTION": (
        "CREATE FUNCTION",
        "@millstream.function in a module of --functions, or @mill.function, registers one written in Python",
    ),
    "CREATE INDEX": ("CREATE INDEX", "joins index their state by their keys"),
    "CREATE UNIQUE": ("CREATE UNIQUE INDEX", "PRIMARY KEY (…) of a stream"),
    "CREATE DATABASE": ("CREATE DATABASE", "there is one catalog, without databases"),
    "CREATE SCHEMA": ("CREATE SCHEMA", "there is one catalog, without schemas"),
    "CREATE CATALOG": ("CREATE CATALOG", "there is one catalog"),
    "CREATE TYPE": ("CREATE TYPE", "a column for each value"),
    "DROP MATERIALIZED": ("DROP MATERIALIZED VIEW", "DROP STREAM drops a derived stream"),
    "CASCADE": ("DROP … CASCADE", "drop its readers first"),
    "DROP STREAM name ,": ("DROP of several names", "a statement for each"),
    "DROP TABLE name ,": ("DROP of several names", "a statement for each"),
    "DROP QUERY name ,": ("DROP of several names", "a statement for each"),
    "IF EXISTS name ,": ("DROP of several names", "a statement for each"),
    "INSERT OVERWRITE": ("INSERT OVERWRITE", "DELETE FROM t, then INSERT INTO t …"),
    "SET TIME ZONE": ("SET TIME ZONE", "a TIMESTAMP is in UTC"),
    "INTO OUTFILE": ("INTO OUTFILE", "INTO parquet WITH (path = '…')"),
    "SHOW VIEWS": ("SHOW VIEWS", "SHOW STREAMS lists views over streams, SHOW TABLES views over tables"),
    "SHOW CREATE": ("SHOW CREATE", _SHOWN),
    "SHOW COLUMNS": ("SHOW COLUMNS", "SHOW STREAMS and SHOW TABLES list the columns"),
    "SHOW ALL": ("SHOW ALL", _SHOWN),
    "SHOW OPTIONS": ("SHOW OPTIONS", "SET name = value sets one; an unknown name lists them"),
    "SHOW DATABASES": ("SHOW DATABASES", "there is one catalog, without databases"),
    "SHOW SCHEMAS": ("SHOW SCHEMAS", "there is one catalog, without schemas"),
    "EXPLAIN ANALYZE": (
        "EXPLAIN ANALYZE",
        "EXPLAIN PHYSICAL SELECT …; --metrics-port, or query.progress() in Python, counts rows and state",
    ),
    "EXPLAIN (": ("EXPLAIN with options", "EXPLAIN PHYSICAL SELECT …"),
    "EXPLAIN EXTENDED": ("EXPLAIN EXTENDED", "EXPLAIN PHYSICAL SELECT …"),
    "EXPLAIN FORMATTED": ("EXPLAIN FORMATTED", "EXPLAIN PHYSICAL SELECT …"),
    "EXPLAIN VERBOSE": ("EXPLAIN VERBOSE", "EXPLAIN PHYSICAL SELECT …"),
    "EXPLAIN PLAN": ("EXPLAIN PLAN FOR", "EXPLAIN SELECT …"),
    # columns and clauses of CREATE
    "^ CREATE … DEFAULT": ("DEFAULT of a column", "COALESCE(x, value) in the query"),
    "^ CREATE … UNIQUE": ("UNIQUE", "PRIMARY KEY (…): each value comes once"),
    "^ CREATE … CHECK (": ("CHECK", "a condition in WHERE of a query or a derived stream"),
    "^ CREATE … REFERENCES": ("REFERENCES", _CONSTRAINT),
    "^ CREATE … FOREIGN KEY (": ("FOREIGN KEY", _CONSTRAINT),
    "^ CREATE … CONSTRAINT name": ("CONSTRAINT", _CONSTRAINT),
    "^ CREATE … GENERATED": ("GENERATED columns", _COMPUTED),
    "^ CREATE … AUTO_INCREMENT": ("AUTO_INCREMENT", "rows have their keys when they arrive"),
    "^ CREATE … METADATA": ("METADATA columns", "the file has the value in a column of its own"),
    "^ CREATE … COMMENT": ("COMMENT", "-- starts a comment"),
    "^ CREATE … name <": ("nested types (ARRAY, MAP, STRUCT)", "a column for each value, or VARCHAR"),
    "^ CREATE … PARTITIONED": ("PARTITIONED BY", "leave it out; queries divide streams by their keys"),
    "^ CREATE … PARTITION": ("PARTITION BY", "leave it out; queries divide streams by their keys"),
    "^ CREATE … DISTRIBUTED": ("DISTRIBUTED BY", "leave it out; queries divide streams by their keys"),
    "^ CREATE … ENGINE": ("ENGINE", "WITH (connector = '…', path = '…')"),
    "^ CREATE … STORED": ("STORED AS", "WITH (connector = 'parquet', path = '…')"),
    "^ CREATE … LOCATION": ("LOCATION", "WITH (connector = 'parquet', path = '…')"),
    "^ CREATE … USING name": ("USING a format", "WITH (connector = 'parquet', path = '…')"),
    "^ CREATE … OPTIONS (": ("OPTIONS", "WITH (name = 'value', …)"),
    "^ CREATE … TBLPROPERTIES": ("TBLPROPERTIES", "WITH (name = 'value', …)"),
    "^ CREATE … TTL": ("TTL", "a window or punctuation bounds the state of a query"),
    "^ CREATE … TIMESTAMP BY": ("TIMESTAMP BY", "ORDER BY the time column"),
    "^ CREATE … LIKE name": ("LIKE another stream", "write its columns"),
    "ORDER BY name DESC": ("descending order of a stream", "time rises: ORDER BY col"),
    "^ CREATE STREAM … ORDER BY name ,": ("ORDER BY several columns of a stream", "ORDER BY the time column alone"),
    "^ CREATE … ( name AS": ("computed columns", _COMPUTED),
    "^ CREATE … , name AS": ("computed columns", _COMPUTED),
    "^ CREATE … KEY": ("KEY of a column", "PRIMARY KEY (k) after the columns"),
    "^ CREATE … [ ]": ("arrays", "a column for each value"),
    "NOT ENFORCED": ("NOT ENFORCED", "leave it out: PRIMARY KEY (k)"),
    "DROP TABLE name PURGE": ("PURGE", "leave it out"),
    "IF EXISTS name PURGE": ("PURGE", "leave it out"),
    "DELETE TOPIC": ("DELETE TOPIC", "leave it out"),
    # the select list
    "TOP number": ("TOP", _ENDLESS),
    "DISTINCT ON (": ("DISTINCT ON", "GROUP BY the columns, with MIN and MAX of the others"),
    "SELECT STREAM": ("SELECT STREAM", "SELECT: every query is continuous"),
    "* EXCEPT (": ("* EXCEPT", "name the columns"),
    "* EXCLUDE": ("* EXCLUDE", "name the columns"),
    "* REPLACE": ("* REPLACE", "name the columns"),
    # FROM
    "CUMULATE (": ("CUMULATE", "HOP, or s [RANGE … SLIDE …]"),
    "SESSION (": ("SESSION windows", "[RANGE …] for windows of a fixed length"),
    "UNNEST (": ("UNNEST", "a row for each value in the source"),
    "EXPLODE (": ("EXPLODE", "a row for each value in the source"),
    "LATERAL (": ("LATERAL", _SUBQUERY),
    "LATERAL TABLE": ("LATERAL TABLE", _SUBQUERY),
    "LATERAL VIEW": ("LATERAL VIEW", "a row for each value in the source"),
    "( VALUES": (
        "VALUES",
        "CREATE TABLE t (…) WITH (connector = 'csv', path = '…'), or in Python mill.insert('t', rows)",
    ),
    "FROM VALUES": (
        "VALUES",
        "CREATE TABLE t (…) WITH (connector = 'csv', path = '…'), or in Python mill.insert('t', rows)",
    ),
    "FOR SYSTEM_TIME": ("FOR SYSTEM_TIME AS OF", f"a table is static: JOIN t ON …; of a stream, {_LATEST}"),
    "AS OF": ("AS OF", f"a table is static: JOIN t ON …; of a stream, {_LATEST}"),
    "TABLESAMPLE": ("TABLESAMPLE", "a condition in WHERE, such as MOD(id, 10) = 0"),
    "PIVOT (": ("PIVOT", "SUM(CASE WHEN k = 1 THEN x END) AS k1, …"),
    "UNPIVOT (": ("UNPIVOT", "UNION ALL of a SELECT for each column"),
    "CROSS APPLY": ("CROSS APPLY", "JOIN with a subquery in FROM"),
    "OUTER APPLY": ("OUTER APPLY", "LEFT JOIN with a subquery in FROM"),
    "ANTI JOIN": ("ANTI JOIN", _OUTER),
    "LEFT ANTI JOIN": ("LEFT ANTI JOIN", _OUTER),
    "RIGHT ANTI JOIN": ("RIGHT ANTI JOIN", _OUTER),
    "SEMI JOIN": ("SEMI JOIN", _SEMI),
    "LEFT SEMI JOIN": ("LEFT SEMI JOIN", _SEMI),
    "RIGHT SEMI JOIN": ("RIGHT SEMI JOIN", _SEMI),
    "ASOF JOIN": ("ASOF JOIN", _LATEST),
    "LEFT ASOF JOIN": ("LEFT ASOF JOIN", _LATEST),
    "ASOF LEFT JOIN": ("ASOF LEFT JOIN", _LATEST),
    "TEMPORAL JOIN": ("TEMPORAL JOIN", _LATEST),
    "LOOKUP JOIN": ("LOOKUP JOIN", "JOIN with a table"),
    "GLOBAL JOIN": ("GLOBAL JOIN", "JOIN … ON"),
    "ANY JOIN": ("ANY JOIN", "KEY JOIN: each tuple is in one result at most"),
    "INTERVAL JOIN": ("INTERVAL JOIN", "ON a.k = b.k AND a.ts BETWEEN b.ts - INTERVAL '5' SECOND AND b.ts"),
    **dict.fromkeys(("WITHIN number", "WITHIN INTERVAL", "WITHIN ("), ("WITHIN", _BOTH)),
    "GRACE PERIOD": ("GRACE PERIOD", "WATERMARK FOR ts AS ts - INTERVAL '5' SECOND of the stream"),
    "FROM name .": ("a stream of another database", "there is one catalog: FROM s"),
    "JOIN name .": ("a stream of another database", "there is one catalog: JOIN s"),
    "FROM string": ("a file in FROM", "CREATE STREAM s (…) WITH (connector = 'csv', path = '…'), then FROM s"),
    "FROM name (": ("a function in FROM", "TUMBLE, HOP, a stream or a subquery"),
    "FOR UPDATE": ("FOR UPDATE", "leave it out: a query locks nothing"),
    "WITH ( NOLOCK": ("WITH (NOLOCK)", "leave it out: a query locks nothing"),
    "ROWS FROM": ("ROWS FROM", "FROM a stream, a table or a subquery"),
    "LATEST ON": ("LATEST ON", _LATEST),
    "LATEST BY": ("LATEST BY", _LATEST),
    # windows
    "WINDOW TUMBLING": ("WINDOW TUMBLING", _BY_WINDOW),
    "WINDOW HOPPING": ("WINDOW HOPPING", "FROM s [RANGE 60 SECONDS SLIDE 20 SECONDS]"),
    "WINDOW SESSION": ("SESSION windows", "[RANGE …] for windows of a fixed length"),
    "WINDOW name AS": ("named windows", _BY_WINDOW),
    "[ TUMBLE": ("[TUMBLE …]", "[RANGE 60 SECONDS]: without SLIDE the windows are tumbling"),
    "[ TUMBLING": ("[TUMBLING …]", "[RANGE 60 SECONDS]: without SLIDE the windows are tumbling"),
    "[ HOP": ("[HOP …]", "[RANGE 60 SECONDS SLIDE 20 SECONDS]"),
    "[ LAST": ("[LAST …]", "[RANGE 5 MINUTES] of time, [ROWS 5] of tuples"),
    "FROM name RANGE number": ("a window without brackets", "FROM s [RANGE 5 MINUTES]"),
    "FROM name ROWS number": ("a window without brackets", "FROM s [ROWS 5]"),
    "[ SESSION": ("SESSION windows", "[RANGE …] for windows of a fixed length"),
    "[ PARTITION": ("[PARTITION BY …]", "GROUP BY the columns; [ROWS n] counts the tuples of the stream"),
    "EVERY number": ("EVERY", "a window with SLIDE: s [RANGE 60 SECONDS SLIDE 10 SECONDS]"),
    "SAMPLE BY": ("SAMPLE BY", _BY_WINDOW),
    "WINDOW (": ("window(ts, …)", _BY_WINDOW),
    # after FROM
    "FETCH FIRST": ("FETCH FIRST", _ENDLESS),
    "FETCH NEXT": ("FETCH NEXT", _ENDLESS),
    "QUALIFY": ("QUALIFY", "HAVING, or a subquery in FROM with WHERE"),
    "EMIT CHANGES": ("EMIT", "leave it out: rows are emitted when they are final"),
    "EMIT FINAL": ("EMIT", "leave it out: rows are emitted when they are final"),
    "EMIT EVERY": ("EMIT EVERY", "a window with SLIDE: s [RANGE 60 SECONDS SLIDE 10 SECONDS]"),
    "EMIT WITH": ("EMIT WITH", "rows are emitted when they are final"),
    "EMIT STREAM": ("EMIT", "leave it out: rows are emitted when they are final"),
    "EMIT AFTER": ("EMIT AFTER", "leave it out: rows are emitted when they are final"),
    "EMIT ON": ("EMIT ON", "leave it out: rows are emitted when they are final"),
    "PARTITION BY": ("PARTITION BY of a query", "GROUP BY; queries divide streams by their keys"),
    "CLUSTER BY": ("CLUSTER BY", "leave it out"),
    "DISTRIBUTE BY": ("DISTRIBUTE BY", "leave it out; queries divide streams by their keys"),
    "SORT BY": ("SORT BY", _ENDLESS),
    "WITH ROLLUP": ("WITH ROLLUP", _SETS),
    "WITH CUBE": ("WITH CUBE", _SETS),
    "MINUS SELECT": ("MINUS", _OUTER),
    "GROUP BY ALL": ("GROUP BY ALL", "name the columns"),
    "CONNECT BY": ("CONNECT BY", "a join for each level"),
    # expressions
    "IGNORE NULLS": ("IGNORE NULLS", "aggregates ignore NULL"),
    "RESPECT NULLS": ("RESPECT NULLS", "aggregates ignore NULL"),
    "ILIKE": ("ILIKE", "LOWER(x) LIKE 'text%'"),
    "NOT ILIKE": ("ILIKE", "LOWER(x) NOT LIKE 'text%'"),
    "RLIKE": ("RLIKE", "LIKE, with % and _"),
    "REGEXP": ("REGEXP", "LIKE, with % and _"),
    "! ~": ("regular expressions", "NOT LIKE, with % and _"),
    "ALL (": ("a comparison with ALL", "a comparison with MAX or MIN of a subquery in FROM, joined"),
    ", ( name ,": ("several values in parentheses", "column by column: a = 1 AND b = 2"),
    "WHERE ( name ,": ("several values in parentheses", "column by column: a = 1 AND b = 2"),
    "SELECT ( name ,": ("several values in parentheses", "column by column: a = 1 AND b = 2"),
    "TIME string": ("TIME", "TIMESTAMP '2024-01-31 12:00:00', or INTERVAL '10' HOUR"),
    "IS NAN": ("IS NAN", "IS NULL tests for missing values"),
    "IS EMPTY": ("IS EMPTY", "x = ''"),
    "IS NOT EMPTY": ("IS NOT EMPTY", "x <> ''"),
    "MAP [": ("maps", "a column for each value"),
    "MOD number": ("the operator MOD", "MOD(a, b), or a % b"),
    "MOD name": ("the operator MOD", "MOD(a, b), or a % b"),
    "DIV number": ("the operator DIV", "(a - MOD(a, b)) / b"),
    "DIV name": ("the operator DIV", "(a - MOD(a, b)) / b"),
    "SIMILAR TO": ("SIMILAR TO", "LIKE, with % and _"),
    "~": ("regular expressions", "LIKE, with % and _"),
    "IS DISTINCT": ("IS DISTINCT FROM", "a <> b OR (a IS NULL) <> (b IS NULL)"),
    "IS NOT DISTINCT": ("IS NOT DISTINCT FROM", "a = b OR (a IS NULL AND b IS NULL)"),
    "BETWEEN SYMMETRIC": ("BETWEEN SYMMETRIC", "BETWEEN LEAST(a, b) AND GREATEST(a, b)"),
    "AT TIME ZONE": ("AT TIME ZONE", "times are UTC; add an INTERVAL"),
    "COLLATE": ("COLLATE", "LOWER(x) compares without regard to case"),
    "TRY_CAST ( name AS": ("TRY_CAST", "CAST, which gives NULL if the value does not fit"),
    "SAFE_CAST ( name AS": ("SAFE_CAST", "CAST, which gives NULL if the value does not fit"),
    "POSITION ( string IN": ("the function POSITION", "x LIKE '%text%' tests for a text"),
    "LEFT (": ("the function LEFT", "SUBSTRING(x, 1, n)"),
    "RIGHT (": ("the function RIGHT", "SUBSTRING(x, LENGTH(x) - n + 1)"),
    "ARRAY [": ("arrays", "a column for each value"),
    "name [ number ]": ("arrays", "a column for each value"),
    "^ SELECT … ^": ("the operator ^", "POWER(a, b)"),
    "* *": ("the operator **", "POWER(a, b)"),
    "& &": ("the operator &&", "AND"),
    "<= >": ("the operator <=>", "a = b OR (a IS NULL AND b IS NULL)"),
    "- >": ("the operator ->", "a column for each value"),
    "?": ("parameters", "write the value itself"),
    ": name": ("parameters", "write the value itself"),
    "@ name": ("variables", "write the value itself"),
    "`": ("names in backquotes", 'write them in double quotes: "name"'),
}
"""Constructs without an equivalent syntax here: their names, and hints."""

_ELSEWHERE: dict[str, tuple[str, str]] = {
    "^ CREATE … WATERMARK FOR name": (
        "WATERMARK FOR stands after the columns",
        "CREATE STREAM s (ts TIMESTAMP) WATERMARK FOR ts AS ts - INTERVAL '5' SECOND",
    ),
    "^ SELECT … INTO name FROM": ("INTO stands at the end of a query", "SELECT … FROM … INTO console"),
    "INTO string": ("a sink has a name", "INTO parquet WITH (path = '…')"),
    "USING (": ("USING stands after JOIN", "a JOIN b USING (k)"),
    "JOIN name USING name": ("USING needs parentheses", "a JOIN b USING (k)"),
    "BETWEEN number ,": ("BETWEEN needs AND", "x BETWEEN 1 AND 2"),
    "AS string": ("an alias is a name", 'AS x, or AS "x y"'),
    "WITH name =": ("options stand in parentheses", "WITH (connector = 'csv', path = '…')"),
    "[ number": ("a window begins with its kind", "[RANGE 10 MINUTES], or [ROWS 100]"),
    "FILTER WHERE": ("FILTER needs parentheses", "COUNT(*) FILTER (WHERE k > 1)"),
    "IN SELECT": ("IN needs a list in parentheses", "put the subquery in FROM and join with it"),
    "CREATE STREAM name FROM": ("a derived stream is a query", "CREATE STREAM name AS SELECT * FROM …"),
    "CREATE STREAM name SELECT": ("AS is missing before SELECT", "CREATE STREAM name AS SELECT …"),
    "CREATE STREAM IF EXISTS": ("IF NOT EXISTS, not IF EXISTS", "CREATE STREAM IF NOT EXISTS name (…)"),
    "CREATE TABLE IF EXISTS": ("IF NOT EXISTS, not IF EXISTS", "CREATE TABLE IF NOT EXISTS name (…)"),
    "CREATE QUERY IF EXISTS": ("IF NOT EXISTS, not IF EXISTS", "CREATE QUERY IF NOT EXISTS name AS SELECT …"),
    "CREATE QUERY name SELECT": ("AS is missing before SELECT", "CREATE QUERY name AS SELECT …"),
}
"""Constructs that exist, written differently: what is wrong, and hints."""


@dataclass(frozen=True, slots=True)
class Foreign:
    """A construct found in a text: the token that it starts with, and what to say."""

    token: Token
    code: str
    message: str
    hint: str


def find(tokens: Sequence[Token], at: int) -> Foreign | None:
    """The construct around the token `at`, which the grammar cannot use: it contains the token, or ends just before
    it. Of several, the one with the most keywords, or else the last."""
    start = next((place + 1 for place in range(at - 1, -1, -1) if tokens[place].is_symbol(";")), 0)
    found: list[tuple[int, int, Pattern]] = []
    for begin in range(max(start, at - 4), at + 1):
        for pattern in (pattern for name in _names(tokens[begin]) for pattern in _patterns().get(name, ())):
            near = at <= begin + len(pattern.words) and (begin == start or not pattern.anchored)
            if near and _matches(tokens, start, pattern.statement) and _matches(tokens, begin, pattern.words):
                found.append((sum(not word.islower() for word in pattern.words), begin, pattern))
    if not found:
        return None
    _, begin, best = max(found)
    return Foreign(tokens[begin], best.code, best.message, best.hint)


def misspelt(tokens: Sequence[Token], at: int, expected: Sequence[str]) -> tuple[Token, str] | None:
    """The word at a place, or the one before it, which was read as an alias, if it resembles one of these keywords."""
    for place in (at, at - 1):
        word = tokens[place].upper if place > 0 else ""
        if len(word) > 3 and word not in expected and (close := get_close_matches(word, expected, 1, 0.7)):
            return tokens[place], close[0]
    return None


class Pattern(NamedTuple):
    statement: tuple[str, ...]
    """The first words of the statement."""
    anchored: bool
    """True if the construct starts the statement."""
    words: tuple[str, ...]
    code: str
    message: str
    hint: str


@cache
def _patterns() -> dict[str, list[Pattern]]:
    """The patterns by their first token."""
    found: dict[str, list[Pattern]] = {}
    entries = [(text, "M1090", f"{what}: not available", hint) for text, (what, hint) in _NOT_AVAILABLE.items()]
    entries += [(text, "M1001", message, hint) for text, (message, hint) in _ELSEWHERE.items()]
    for text, *said in entries:
        statement, _, words = text.rpartition(" … ")
        anchored = not statement and words.startswith("^ ")
        wanted = tuple(words.removeprefix("^ ").split() if anchored else words.split())
        made = Pattern(tuple(statement.split())[1:], anchored, wanted, *said)
        found.setdefault(wanted[0], []).append(made)
    return found


def _first(token: Token) -> str:
    return token.upper or (token.text if token.kind is Kind.SYMBOL else "")


def _matches(tokens: Sequence[Token], begin: int, wanted: Sequence[str]) -> bool:
    if begin + len(wanted) > len(tokens):
        return False
    return all(want in _names(token) for want, token in zip(wanted, tokens[begin:], strict=False))


def _names(token: Token) -> Iterator[str]:
    """What a pattern may call a token."""
    yield _first(token)
    if token.kind in (Kind.WORD, Kind.QUOTED):
        yield "name"
    elif token.kind in (Kind.NUMBER, Kind.STRING):
        yield token.kind.value
