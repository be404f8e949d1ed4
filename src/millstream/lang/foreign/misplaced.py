"""Constructs that exist, written differently: what is wrong, and hints."""

from __future__ import annotations

_SINK_OPTIONS = ("options of a sink stand in WITH (…)", "INTO parquet WITH (path = '…')")
_KIND = ("a window begins with its kind", "[RANGE 10 MINUTES], or [ROWS 100]")
_UNITS = ("WEEK", "DAY", "HOUR", "MINUTE", "SECOND", "MILLISECOND", "MICROSECOND")
_DURATION = ("a duration stands without quotes", "[RANGE 10 SECONDS], or [RANGE INTERVAL '10' SECOND]")

MISPLACED: dict[str, tuple[str, str]] = {
    "^ CREATE TABLE … WATERMARK FOR name": ("WATERMARK FOR of a table", "only a stream has one: CREATE STREAM …"),
    "FOR name AS name +": (
        "a watermark lags behind the time: it is a difference",
        "WATERMARK FOR ts AS ts - INTERVAL '5' SECOND",
    ),
    "FROM name SEQ (": ("SEQ stands in WHERE", "FROM a, b WHERE SEQ(a, b) MODE RECENT"),
    "^ SELECT … INTO name FROM": ("INTO stands at the end of a query", "SELECT … FROM … INTO console"),
    "INTO string": ("a sink has a name", "INTO parquet WITH (path = '…')"),
    "USING (": ("USING stands after JOIN", "a JOIN b USING (k)"),
    "JOIN name USING name": ("USING needs parentheses", "a JOIN b USING (k)"),
    "BETWEEN number ,": ("BETWEEN needs AND", "x BETWEEN 1 AND 2"),
    "AS string": ("an alias is a name", 'AS x, or AS "x y"'),
    "WITH name =": ("options stand in parentheses", "WITH (connector = 'csv', path = '…')"),
    "[ number": _KIND,
    "FROM name [ number ]": _KIND,
    "FILTER WHERE": ("FILTER needs parentheses", "COUNT(*) FILTER (WHERE k > 1)"),
    "IN SELECT": ("IN needs a list in parentheses", "put the subquery in FROM and join with it"),
    "CREATE STREAM name FROM": ("a derived stream is a query", "CREATE STREAM name AS SELECT * FROM …"),
    "CREATE STREAM name SELECT": ("AS is missing before SELECT", "CREATE STREAM name AS SELECT …"),
    "CREATE STREAM IF EXISTS": ("IF NOT EXISTS, not IF EXISTS", "CREATE STREAM IF NOT EXISTS name (…)"),
    "CREATE TABLE IF EXISTS": ("IF NOT EXISTS, not IF EXISTS", "CREATE TABLE IF NOT EXISTS name (…)"),
    "CREATE QUERY IF EXISTS": ("IF NOT EXISTS, not IF EXISTS", "CREATE QUERY IF NOT EXISTS name AS SELECT …"),
    "CREATE QUERY name SELECT": ("AS is missing before SELECT", "CREATE QUERY name AS SELECT …"),
    **{
        f"{before} {value} {unit}{plural}": ("a duration in an expression is an INTERVAL", f"INTERVAL '5' {unit}")
        for before in ("+", "-", "<", ">", "<=", ">=", "<>", "^ SELECT … =", "BETWEEN")
        for value in ("number", "string")
        for unit in _UNITS
        for plural in ("", "S")
    },
    "^ CREATE STREAM … ) AS SELECT": (
        "a derived stream has the columns of its query",
        "CREATE STREAM name AS SELECT …",
    ),
    "^ CREATE STREAM … INTO name": ("a derived stream has no sink", "CREATE QUERY name AS SELECT … INTO …"),
    "PRIMARY KEY name": ("PRIMARY KEY needs parentheses", "PRIMARY KEY (k)"),
    "PUNCTUATED ON name": ("PUNCTUATED ON needs parentheses", "PUNCTUATED ON (k #)"),
    "ASCENDING name": ("ASCENDING needs parentheses", "ASCENDING (k)"),
    **{
        f"DROP {kind} name IF EXISTS": ("IF EXISTS stands before the name", f"DROP {kind} IF EXISTS name")
        for kind in ("STREAM", "TABLE", "QUERY", "VIEW")
    },
    **dict.fromkeys(
        ("IF NOT EXIST", "IF NOT EXITS"), ("IF NOT EXISTS is misspelt", "CREATE STREAM IF NOT EXISTS name (…)")
    ),
    "IF EXIST": ("IF EXISTS, not IF EXIST", "DROP STREAM IF EXISTS s"),
    "SET string": ("the name of an option stands without quotes", "SET strategy = 'dfs'"),
    "^ FROM": ("SELECT stands before FROM", "SELECT * FROM s"),
    "^ INSTRUMENT": ("INSTRUMENT stands in FROM", "SELECT * FROM INSTRUMENT(TABLE s, '~[k = 5]', ONCE)"),
    "^ DENOISE": ("DENOISE stands in FROM", "SELECT * FROM DENOISE(TABLE s, DESCRIPTOR(k), INTERVAL '1' SECOND, 6)"),
    "INTO name (": _SINK_OPTIONS,
    "INTO name string": _SINK_OPTIONS,
    "WINDOW number": ("a window stands in brackets", "FROM s [RANGE 10 SECONDS]"),
    "RANGE string": _DURATION,
    "SLIDE string": _DURATION,
    "OVER PARTITION BY": ("OVER needs parentheses", "OVER (PARTITION BY k)"),
    "OVER ORDER BY": ("OVER needs parentheses", "OVER (ORDER BY ts)"),
    **{
        f"FROM name ( {kind} number": ("a window stands in brackets", f"FROM s [{kind} {size}]")
        for kind, size in (("RANGE", "10 SECONDS"), ("ROWS", "100"))
    },
    "^ SELECT … name . name [ RANGE": (
        "a window stands after its stream",
        "FROM a [RANGE 5 SECONDS] JOIN b [RANGE 5 SECONDS] ON a.k = b.k",
    ),
    "^ SELECT … , name ON": ("ON stands after JOIN", "FROM a JOIN b ON a.k = b.k, or FROM a, b WHERE a.k = b.k"),
    "^ SELECT … name . name ON": ("a JOIN has one ON", "JOIN b ON a.k = b.k AND a.v = b.v"),
    "FOREIGN KEY name": ("FOREIGN KEY needs parentheses", "FOREIGN KEY (k) REFERENCES s (id)"),
    "PUNCTUATED BY": ("it is PUNCTUATED ON", "PUNCTUATED ON (k #)"),
    "FROM ( name )": ("a stream stands without parentheses", "FROM s"),
    "IN ( )": ("IN needs at least one value", "x IN (1, 2)"),
    "^ SELECT … NOT NULL": ("IS is missing before NOT NULL", "x IS NOT NULL"),
}
