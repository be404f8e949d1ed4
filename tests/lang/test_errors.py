"""Mistakes in the text: each error has a position, what was expected, and often a suggestion."""

from __future__ import annotations

import pytest

from millstream.errors import SqlSyntaxError
from millstream.lang import parse

CASES = [
    # text, code, line, column, part of the message, part of the hint
    ("SELEC a FROM s", "M1001", 1, 1, "expected a statement", "'select'"),
    ("SELECT FROM s", "M1001", 1, 8, "expected a column or an expression", "SELECT *"),
    ("SELECT a,, b FROM s", "M1001", 1, 10, "expected an expression, found ','", ""),
    ("SELECT a", "M1001", 1, 9, "expected FROM and a stream, found the end of the text", ""),
    ("SELECT a b c FROM s", "M1001", 1, 12, "expected ',' or FROM, found 'c'", ""),
    ("SELECT a FROM", "M1001", 1, 14, "expected a stream", ""),
    ("SELECT a FROM where", "M1001", 1, 15, "expected a stream, found 'where'", "double quotes"),
    ("SELECT (a + FROM s", "M1001", 1, 13, "expected an expression, found 'FROM'", ""),
    ("SELECT (a FROM s", "M1001", 1, 11, "expected ')'", ""),
    ("SELECT a FROM s x y", "M1001", 1, 19, "expected ';' or the end of the statement", ""),
    ("SELECT a\nFROM s\nWHERE a >", "M1001", 3, 10, "expected an expression, found the end", ""),
    ("SELECT a FROM s WHERE a = 'it", "M1004", 1, 27, "unterminated string", "close it with '"),
    ('SELECT "a FROM s', "M1004", 1, 8, "unterminated quoted name", ""),
    ("SELECT a /* FROM s", "M1004", 1, 10, "unterminated comment", "*/"),
    ("SELECT a FROM s WHERE a ! b", "M1090", 1, 25, "the operator !", "NOT"),
    ("SELECT a FROM s WHERE € = 1", "M1002", 1, 23, "unexpected character", ""),
    ("SELECT 99999999999999999999 FROM s", "M1003", 1, 8, "out of range for BIGINT", ""),
    ("SELECT 1e999 FROM s", "M1003", 1, 8, "out of range for DOUBLE", ""),
    ("SELECT 1e FROM s", "M1003", 1, 8, "not a number", ""),
    ("SELECT 1_000 FROM s", "M1003", 1, 8, "'1_000' is not a number", "write 1000"),
    ("SELECT a, 0x10 FROM s", "M1003", 1, 11, "'0x10' is not a number", "write 16"),
    ("SELECT 12abc FROM s", "M1003", 1, 8, "'12abc' is not a number", "leave a blank after 12"),
    ("SELECT a FROM s WHERE a = 1_0", "M1003", 1, 27, "'1_0' is not a number", "write 10"),
    ('SELECT "a.b" FROM s', "M1002", 1, 8, "cannot be a name", ""),
    ("SELECT a FROM s [RANGE 10 SECNDS]", "M1006", 1, 27, "unknown unit 'SECNDS'", "'seconds'"),
    ("SELECT a FROM s [RANGE]", "M1001", 1, 23, "expected a duration", ""),
    ("SELECT a FROM s [RANG 10]", "M1001", 1, 18, "expected one of RANGE", "'range'"),
    ("SELECT a FROM s [SLIDE 10]", "M1008", 1, 17, "needs RANGE", "[RANGE 60"),
    ("SELECT a FROM s [ROWS 10 SLIDE 5]", "M1008", 1, 17, "SLIDE needs RANGE", ""),
    ("SELECT a FROM s [ROWS 10 RANGE 5]", "M1008", 1, 17, "either RANGE or ROWS", ""),
    ("SELECT a FROM s [RANGE 1 RANGE 5]", "M1007", 1, 26, "RANGE appears twice", ""),
    ("SELECT a FROM s [ROWS x]", "M1001", 1, 23, "expected a number of rows", ""),
    ("SELECT a FROM s [RANGE 1 MONTH]", "M1006", 1, 24, "MONTH has no fixed length", "DAYS"),
    ("SELECT INTERVAL 'x' SECOND FROM s", "M1006", 1, 8, "'x' is not a plain number", ""),
    ("SELECT INTERVAL '5' FROM s", "M1006", 1, 8, "'5' is not an interval", "INTERVAL '5' SECOND"),
    ("SELECT a FROM s WHERE a WHERE b", "M1007", 1, 25, "WHERE appears twice", ""),
    ("SELECT a FROM s GROUP a", "M1001", 1, 23, "expected BY", ""),
    ("SELECT a FROM s JOIN t", "M1001", 1, 23, "expected ON or USING", "CROSS JOIN"),
    ("SELECT CASE a END FROM s", "M1001", 1, 15, "expected WHEN", ""),
    ("SELECT CASE WHEN a THEN b FROM s", "M1001", 1, 27, "expected END", ""),
    ("SELECT CAST(a BIGINT) FROM s", "M1001", 1, 15, "expected AS", ""),
    ("SELECT EXTRACT(HOURS FROM a) FROM s", "M1001", 1, 16, "expected one of YEAR", "'hour'"),
    ("SELECT a IS 5 FROM s", "M1001", 1, 13, "expected NULL, TRUE or FALSE", ""),
    ("SELECT * FROM a, b WHERE SEQ(a, b)", "M1001", 1, 35, "expected MODE", ""),
    ("SELECT * FROM a, b WHERE SEQ(a, b) MODE RECNT", "M1001", 1, 41, "expected RECENT", "'recent'"),
    ("CREATE STREM s (a INT)", "M1001", 1, 8, "expected STREAM", "'stream'"),
    ("CREATE STREAM s (a)", "M1001", 1, 19, "the type of column 'a'", ""),
    ("CREATE STREAM s (a INT b INT)", "M1001", 1, 24, "expected ',' or ')'", ""),
    ("CREATE STREAM s (a INT) ODER BY a", "M1001", 1, 25, "expected one of ORDER BY", "'order'"),
    ("CREATE STREAM s (a INT) ORDER BY a ORDER BY a", "M1007", 1, 42, "ORDER BY appears twice", ""),
    ("CREATE STREAM s (a INT) PUNCTUATED ON (a)", "M1001", 1, 41, "expected +, # or -", "upper bound"),
    ("CREATE STREAM s (a INT) WATERMARK FOR a AS b - 5", "M1011", 1, 44, "computed from 'a'", ""),
    ("CREATE STREAM s (a INT) WITH (x = )", "M1001", 1, 35, "expected a value", ""),
    ("CREATE STREAM s (a INT) WITH (x = 1, x = 2)", "M1007", 1, 38, "option 'x' appears twice", ""),
    ("DROP STREM s", "M1001", 1, 6, "expected STREAM, TABLE, QUERY", "'stream'"),
    ("SHOW STREAM", "M1001", 1, 6, "expected STREAMS", "'streams'"),
    ("SET x 5", "M1001", 1, 7, "expected '='", ""),
    ("EXPLAIN LOGICL SELECT * FROM s", "M1001", 1, 9, "expected a query", "'logical'"),
    ("EXPLAIN CREATE TABLE t (a INT)", "M1009", 1, 9, "only a query can be explained", ""),
    # a comma is missing, or one too many
    ("SELECT a b c FROM s", "M1001", 1, 12, "expected ',' or FROM", "is a comma missing before 'c'?"),
    ("SELECT ABS(a b) FROM s", "M1001", 1, 14, "expected ')'", "is a comma missing before 'b'?"),
    ("SELECT a FROM s WHERE a IN (1 2)", "M1001", 1, 31, "expected ')'", "is a comma missing before '2'?"),
    ("CREATE STREAM s (a INT b INT)", "M1001", 1, 24, "expected ',' or ')'", "is a comma missing before 'b'?"),
    (
        "CREATE STREAM s (a INT, PRIMARY KEY (a b))",
        "M1001",
        1,
        40,
        "expected ',' or ')'",
        "is a comma missing before 'b'?",
    ),
    ("SELECT a, b, FROM s", "M1001", 1, 14, "expected a column", "leave the last comma out"),
    # a bracket that is not closed, or that closes nothing
    ("SELECT (a + (b) FROM s", "M1001", 1, 17, "expected ')'", "'(' in line 1, column 8 is not closed"),
    ("SELECT ((a) + 1 FROM s; SELECT b)", "M1001", 1, 17, "expected ')'", "'(' in line 1, column 8 is not closed"),
    ("SELECT a FROM (SELECT a\nFROM s\nWHERE a = 1", "M1001", 3, 12, "expected ')'", "line 1, column 15 is not closed"),
    ("SELECT SUM(a) FROM s [RANGE 10 GROUP BY k", "M1001", 1, 32, "expected one of", "'[' in line 1, column 22 is not"),
    ("SELECT SUM(a FROM s [RANGE 10]", "M1001", 1, 21, "expected ')'", "'(' in line 1, column 11 is not closed"),
    ("CREATE STREAM s (a INT WITH (x = 1)", "M1001", 1, 24, "expected ',' or ')'", "'(' in line 1, column 17 is not"),
    ("SELECT SUM(a) OVER (ROWS 5 PRECEDING FROM s", "M1001", 1, 38, "or ')'", "'(' in line 1, column 20 is not closed"),
    ("SELECT a + 1) FROM s", "M1001", 1, 13, "expected ',' or FROM", "')' closes nothing"),
    ("SELECT 1; SELECT a FROM (s", "M1001", 1, 9, "expected ',' or FROM", ""),
    # values of options without quotes
    ("CREATE STREAM s (a INT) WITH (path = in/x.csv, y = 1)", "M1001", 1, 40, "expected ',' or ')'", "'in/x.csv'"),
    ("CREATE STREAM s (a INT) WITH (path = /x.csv)", "M1001", 1, 38, "expected a value", "'/x.csv'"),
    ("CREATE STREAM s (a INT) WITH (rate = 64 MB, y = 1)", "M1001", 1, 41, "expected ',' or ')'", "'64 MB'"),
    ("CREATE STREAM s (a INT) WITH (delimiter = |)", "M1001", 1, 43, "expected a value", "'|'"),
    ("CREATE STREAM s (a INT) WITH (x = 1 y = 2)", "M1001", 1, 37, "expected ',' or ')'", "comma missing before 'y'"),
    ("SELECT a FROM s INTO parquet WITH (path = out/x)", "M1001", 1, 46, "expected ',' or ')'", "'out/x'"),
    # watermarks
    *(
        (f"CREATE STREAM s (ts TIMESTAMP) WATERMARK {text}", code, 1, column, message, "AS ts - INTERVAL '5' SECOND")
        for text, code, column, message in (
            ("FOR ts AS ts INTERVAL '5' SECOND", "M1001", 55, "expected AS ts -"),
            ("FOR ts AS ts 5", "M1001", 55, "expected AS ts -"),
            ("FOR ts 5 SECONDS", "M1001", 49, "expected AS ts -"),
            ("FOR ts INTERVAL '5' SECOND", "M1001", 49, "expected AS ts -"),
            ("FOR ts AS INTERVAL '5' SECOND", "M1011", 52, "must be computed from 'ts'"),
            ("FOR ts AS ts + INTERVAL '5' SECOND", "M1001", 42, "it is a difference"),
            ("5 SECONDS", "M1001", 42, "expected FOR"),
        )
    ),
    # constructs that are not available yet
    ("AGGREGATE f (x INT) : INT {}", "M1090", 1, 1, "AGGREGATE without CREATE", "CREATE [WINDOW] AGGREGATE"),
    ("CREATE WINDOW f (x INT) : INT {}", "M1001", 1, 15, "expected AGGREGATE", "such as CREATE AGGREGATE"),
    ("CREATE AGGREGATE f (x) : INT {}", "M1001", 1, 22, "the type of argument 'x'", ""),
    ("CREATE AGGREGATE f (x INT) {}", "M1001", 1, 28, "expected ':'", ""),
    ("CREATE AGGREGATE f (x INT) : INT { ITERAT: { } }", "M1012", 1, 36, "unknown state block ITERAT", "'iterate'"),
    ("CREATE AGGREGATE f (x INT) : INT { ITERATE: ITERATE: { } }", "M1007", 1, 45, "ITERATE appears twice", ""),
    (
        "CREATE AGGREGATE f (x INT) : INT { ITERATE: { SELECT 1; } }",
        "M1001",
        1,
        47,
        "UPDATE or DELETE",
        "RETURN",
    ),
    ("CREATE AGGREGATE f (x INT) : INT { ITERATE: { DELETE FROM t; UPDATE t a = 1; } }", "M1001", 1, 71, "SET", ""),
    ("CREATE AGGREGATE f (x INT) : INT { ITERATE: { INSERT INTO t VALUES (1) }", "M1001", 1, 73, "'}'", ""),
    ("CREATE AGGREGATE f (x INT) : INT { TABLE t(a INT) ITERATE: { } }", "M1001", 1, 51, "expected ';'", "TABLE state"),
    ("SELECT SUM(a) OVER (ROWS 2 FOLLOWING) FROM s", "M1090", 1, 28, "ends after the tuple", "n PRECEDING"),
    ("SELECT SUM(a) OVER (ORDER BY ts DESC) FROM s", "M1090", 1, 33, "descending", "MAX(v)"),
    ("SELECT SUM(a) OVER (PARTITION k) FROM s", "M1001", 1, 31, "expected BY", "OVER (PARTITION BY k"),
    ("SELECT SUM(a) OVER (ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) FROM s", "M1001", 1, 50, "CURRENT ROW", "later"),
    ("SELECT a FROM s MATCH_RECOGNIZE (x)", "M1090", 1, 17, "MATCH_RECOGNIZE: not available yet", ""),
    ("SELECT * FROM a, b WHERE EVENT SEQ(a, b)", "M1090", 1, 26, "event patterns", ""),
    ("INSERT INTO t VALUES ((SELECT 1 FROM t))", "M1090", 1, 24, "a subquery inside an expression", "FROM"),
    ("INSERT INTO t VALUES (EXISTS (SELECT 1 FROM t))", "M1090", 1, 23, "EXISTS", ""),
    ("SELECT a FROM s NATURAL JOIN t", "M1090", 1, 17, "NATURAL JOIN", "USING"),
    ("SELECT a FROM s GROUP BY ROLLUP (a)", "M1090", 1, 26, "GROUP BY ROLLUP", ""),
]


@pytest.mark.parametrize(("text", "code", "line", "column", "message", "hint"), CASES, ids=[case[0] for case in CASES])
def test_errors(text: str, code: str, line: int, column: int, message: str, hint: str) -> None:
    with pytest.raises(SqlSyntaxError) as caught:
        parse(text)
    error = caught.value
    assert (error.code, error.line, error.column) == (code, line, column), str(error)
    assert message in error.message
    assert hint in error.hint


@pytest.mark.parametrize(
    "value", ['= "hunter2"', "'hunter2'", "hunter2", "= hunter2 x", "= - 'hunter2'", "= 'hunter2' hunter2"]
)
def test_secrets_are_not_told(value: str) -> None:
    with pytest.raises(SqlSyntaxError, match="M1001: expected") as caught:
        parse(f"CREATE STREAM s (k INT) WITH (connector = 'csv', password {value})")
    assert "hunter2" not in str(caught.value) and caught.value.column
