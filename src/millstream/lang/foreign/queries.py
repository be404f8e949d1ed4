"""Clauses, joins, windows and operators that other dialects have and Millstream has not: their names, and hints."""

from __future__ import annotations

_BY_WINDOW = "a window stands after the stream: FROM s [RANGE 10 MINUTES] GROUP BY …; select window_start, window_end"
_SUBQUERY = "a subquery in FROM, or a derived stream: CREATE STREAM … AS SELECT …"
_ENDLESS = "A continuous query never ends, so it has no last row; sort the rows that you take from it."
_FIRST = "LIMIT 5 at the end of the query: the first five rows that come"
_OUTER = "LEFT JOIN, then WHERE b.k IS NULL keeps the tuples without a partner"
_SEMI = "JOIN … ON, and SELECT DISTINCT of the columns of the left stream"
_LATEST = "WHERE SEQ(a, b) MODE RECENT AND a.k = b.k pairs each b with the latest a before it"
_NULLS = "leave it out: only ORDER BY of a SELECT over tables says where NULLs come"
_OF_TABLE = "JOIN t ON …: a tuple meets the rows that the table has at its time"
_ROWS = "the source sends a row for each value"
_GLOBAL = (
    "mill.stream('g', spark.table('global_temp.g')) if it is streaming, else CREATE TABLE g (…), then "
    "mill.insert('g', spark.table('global_temp.g')); then FROM g"
)
_SETS = "a query for each set of columns"
_BOTH = "a window for each stream: a [RANGE 5 SECONDS] JOIN b [RANGE 5 SECONDS] ON …"
_OUTER_KINDS = {
    f"{outer} {kind} JOIN": (f"{outer} {kind} JOIN", f"{kind} JOIN … ON, or {outer} JOIN … ON")
    for outer in ("LEFT", "RIGHT", "FULL")
    for kind in ("KEY", "THRIFTY", "IMPATIENT")
}

QUERIES: dict[str, tuple[str, str]] = {
    # the select list
    "TOP number": ("TOP", _FIRST),
    "DISTINCT ON (": ("DISTINCT ON", "GROUP BY the columns, with MIN and MAX of the others"),
    "SELECT STREAM": ("SELECT STREAM", "SELECT: every query is continuous"),
    "* EXCEPT (": ("* EXCEPT", "name the columns"),
    "* EXCLUDE": ("* EXCLUDE", "name the columns"),
    "* REPLACE": ("* REPLACE", "name the columns"),
    # FROM
    "CUMULATE (": ("CUMULATE", "HOP, or s [RANGE … SLIDE …]"),
    "SESSION (": ("SESSION windows", "[RANGE …] for windows of a fixed length"),
    "UNNEST (": ("UNNEST", _ROWS),
    "EXPLODE (": ("EXPLODE", _ROWS),
    "LATERAL (": ("LATERAL", _SUBQUERY),
    "LATERAL TABLE": ("LATERAL TABLE", _SUBQUERY),
    "LATERAL VIEW": ("LATERAL VIEW", _ROWS),
    "( VALUES": (
        "VALUES",
        "CREATE TABLE t (…) WITH (connector = 'csv', path = '…'), or in Python mill.insert('t', rows)",
    ),
    "FROM VALUES": (
        "VALUES",
        "CREATE TABLE t (…) WITH (connector = 'csv', path = '…'), or in Python mill.insert('t', rows)",
    ),
    "FOR SYSTEM_TIME": ("FOR SYSTEM_TIME AS OF", f"{_OF_TABLE}; of a stream, {_LATEST}"),
    "AS OF": ("AS OF", f"{_OF_TABLE}; of a stream, {_LATEST}"),
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
    **dict.fromkeys(("FROM GLOBAL_TEMP .", "JOIN GLOBAL_TEMP ."), ("a global view of Spark", _GLOBAL)),
    "FROM name .": ("a stream of another database", "there is one catalog: FROM s"),
    "JOIN name .": ("a stream of another database", "there is one catalog: JOIN s"),
    "FROM string": ("a file in FROM", "CREATE STREAM s (…) WITH (connector = 'csv', path = '…'), then FROM s"),
    "FOR UPDATE": ("FOR UPDATE", "leave it out: a query locks nothing"),
    "WITH ( NOLOCK": ("WITH (NOLOCK)", "leave it out: a query locks nothing"),
    "ROWS FROM": ("ROWS FROM", "FROM a stream, a table or a subquery"),
    "LATEST ON": ("LATEST ON", _LATEST),
    "LATEST BY": ("LATEST BY", _LATEST),
    "STRAIGHT_JOIN name": ("STRAIGHT_JOIN", "JOIN … ON"),
    "WINDOW JOIN": ("WINDOW JOIN", _BOTH),
    **_OUTER_KINDS,
    "^ SELECT … AS name (": ("names of columns after an alias", "name them in a subquery: (SELECT k AS id FROM s) a"),
    "] [": ("two windows of one stream", "one of them: [RANGE 10 SECONDS], or [ROWS 100]"),
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
    "[ PARTITION BY": (
        "[PARTITION BY …]",
        "OVER (PARTITION BY k ROWS 5 PRECEDING); [ROWS 5] counts all tuples",
    ),
    "EVERY number": ("EVERY", "a window with SLIDE: s [RANGE 60 SECONDS SLIDE 10 SECONDS]"),
    "SAMPLE BY": ("SAMPLE BY", _BY_WINDOW),
    "WINDOW (": ("window(ts, …)", _BY_WINDOW),
    **dict.fromkeys(("BY WINDOW", ", WINDOW", "SELECT WINDOW"), ("window as a column", _BY_WINDOW)),
    "WINDOW . name": ("window.start and window.end", "window_start, window_end"),
    "FROM name WATERMARK name": (
        "WATERMARK of a query",
        "it belongs to the stream: CREATE STREAM s (…) WATERMARK FOR ts AS ts - INTERVAL '5' SECOND",
    ),
    # after FROM
    "FETCH FIRST": ("FETCH FIRST", _FIRST),
    "FETCH NEXT": ("FETCH NEXT", _FIRST),
    "QUALIFY": ("QUALIFY", "FROM (SELECT k, v, ROW_NUMBER() OVER (PARTITION BY k) AS n FROM s) WHERE n = 1"),
    "EMIT CHANGES": ("EMIT", "leave it out: rows are emitted when they are final"),
    "EMIT FINAL": ("EMIT", "leave it out: rows are emitted when they are final"),
    "EMIT EVERY": ("EMIT EVERY", "a window with SLIDE: s [RANGE 60 SECONDS SLIDE 10 SECONDS]"),
    "EMIT WITH": ("EMIT WITH", "rows are emitted when they are final"),
    "EMIT STREAM": ("EMIT", "leave it out: rows are emitted when they are final"),
    "EMIT AFTER": ("EMIT AFTER", "leave it out: rows are emitted when they are final"),
    "EMIT LATE": ("EMIT LATE", "EMIT EARLY gives early answers; rows that come too late are in s__late"),
    "EMIT ON": ("EMIT ON", "EMIT ON WINDOW CLOSE, or nothing: rows are emitted when they are final"),
    "PARTITION BY": ("PARTITION BY of a query", "GROUP BY; queries divide streams by their keys"),
    "CLUSTER BY": ("CLUSTER BY", "leave it out"),
    "DISTRIBUTE BY": ("DISTRIBUTE BY", "leave it out; queries divide streams by their keys"),
    "SORT BY": ("SORT BY", _ENDLESS),
    "WITH ROLLUP": ("WITH ROLLUP", _SETS),
    "WITH CUBE": ("WITH CUBE", _SETS),
    "ALL BY NAME": ("UNION ALL BY NAME", "select the columns in the same order"),
    "MINUS SELECT": ("MINUS", _OUTER),
    "GROUP BY ALL": ("GROUP BY ALL", "name the columns"),
    "CONNECT BY": ("CONNECT BY", "a join for each level"),
    "LIMIT number ,": ("LIMIT with an offset", "LIMIT 5: the first five rows that come"),
    "LIMIT ALL": ("LIMIT ALL", "leave it out"),
    "OFFSET number ROW": ("OFFSET", "LIMIT 5: the first five rows that come"),
    "OFFSET number ROWS": ("OFFSET", "LIMIT 5: the first five rows that come"),
    "WITH TIES": ("WITH TIES", "LIMIT 5: the first five rows that come"),
    "INTO name ,": ("several sinks", "a query for each"),
    # expressions
    "IGNORE NULLS": ("IGNORE NULLS", "aggregates ignore NULL"),
    "RESPECT NULLS": ("RESPECT NULLS", "aggregates ignore NULL"),
    "NULLS FIRST": ("NULLS FIRST", _NULLS),
    "NULLS LAST": ("NULLS LAST", _NULLS),
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
    "/ /": ("the operator //", "(a - MOD(a, b)) / b"),
    "SIMILAR TO": ("SIMILAR TO", "LIKE, with % and _"),
    "~": ("regular expressions", "LIKE, with % and _"),
    "IS DISTINCT": ("IS DISTINCT FROM", "a <> b OR (a IS NULL) <> (b IS NULL)"),
    "IS NOT DISTINCT": ("IS NOT DISTINCT FROM", "a = b OR (a IS NULL AND b IS NULL)"),
    "BETWEEN SYMMETRIC": ("BETWEEN SYMMETRIC", "BETWEEN LEAST(a, b) AND GREATEST(a, b)"),
    "AT TIME ZONE": ("AT TIME ZONE", "times are UTC; add an INTERVAL"),
    "COLLATE": ("COLLATE", "LOWER(x) compares without regard to case"),
    "POSITION ( string IN": ("the function POSITION", "x LIKE '%text%' tests for a text"),
    "LEFT (": ("the function LEFT", "SUBSTRING(x, 1, n)"),
    "RIGHT (": ("the function RIGHT", "SUBSTRING(x, LENGTH(x) - n + 1)"),
    "ARRAY [": ("arrays", "a column for each value"),
    "name [ number ]": ("arrays", "a column for each value"),
    "^ SELECT … ^": ("the operator ^", "POWER(a, b)"),
    "* *": ("the operator **", "POWER(a, b)"),
    "& &": ("the operator &&", "AND"),
    "^ SELECT … &": ("the operator &", "AND between conditions; a function in Python combines bits"),
    "^ SELECT … |": ("the operator |", "OR between conditions; a function in Python combines bits"),
    "<= >": ("the operator <=>", "a = b OR (a IS NULL AND b IS NULL)"),
    "- >": ("the operator ->", "a column for each value"),
    "?": ("parameters", "write the value itself"),
    ": name": ("parameters", "write the value itself"),
    "@ name": ("variables", "write the value itself"),
    "SEPARATOR string": ("SEPARATOR", "STRING_AGG(x, ',')"),
    "DISTINCT *": ("COUNT(DISTINCT *)", "COUNT(*) of a subquery: FROM (SELECT DISTINCT * FROM s)"),
    "BY ( name ,": ("several values in parentheses", "without them: GROUP BY a, b"),
    "=>": ("the operator =>", "a >= b"),
    **dict.fromkeys(
        ("( name =>", ", name =>"), ("names of arguments of this function", "the values alone, in their order: f(x, 2)")
    ),
    "= <": ("the operator =<", "a <= b"),
    "> <": ("the operator ><", "a <> b"),
    "!": ("the operator !", "NOT"),
    "^ SELECT … ISNULL": ("ISNULL", "x IS NULL"),
    "^ SELECT … NOTNULL": ("NOTNULL", "x IS NOT NULL"),
}
