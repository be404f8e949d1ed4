"""Functions and columns of other dialects: what to write instead."""

from __future__ import annotations

_WINDOW = "a window stands after the stream: FROM s [RANGE 10 SECONDS SLIDE 5 SECONDS] GROUP BY …"
_START, _END = "select window_start, of a window after the stream", "select window_end, of a window after the stream"
_NOW = "a query has no clock: select a time column, or current_time of a stream with ORDER BY current_time"
_NULL = "COALESCE(a, b)"
_SECONDS = "EXTRACT(EPOCH FROM a) - EXTRACT(EPOCH FROM b) in seconds; a - b is an INTERVAL"
_TRUNCATED = "a window groups by time: s [RANGE 1 HOUR]; window_start is the start of the hour"
_ONE_COLUMN = "an aggregate is of one column: MAX(x), LAST(x); a join with a subquery finds the tuple of the maximum"
_OFTEN = "COUNT(*) of a subquery that groups by the value counts how often it occurs"
_PLACE = "FIRST(x) and LAST(x) are aggregates; LAG(x, n) OVER (…) is the value n tuples before"
_LIKE = "LIKE, with % and _"
_NESTED = "a column for each value; nested values are not available"
_PYTHON = "a Python function: @millstream.function registers one"
_AGGREGATE = "CREATE AGGREGATE, or @millstream.aggregate in Python"
_NUMBER = "CAST(x AS BIGINT), CAST(x AS DOUBLE); NULL for a text that is not a number"
_RANKED = "later tuples would change it; ROW_NUMBER() OVER (…) numbers tuples as they come"

INSTEAD: dict[str, str] = {
    **dict.fromkeys(("tumble", "hop", "session", "cumulate", "window", "time_bucket", "date_bin"), _WINDOW),
    **dict.fromkeys(("tumble_start", "hop_start", "session_start"), _START),
    **dict.fromkeys(("tumble_end", "hop_end", "session_end"), _END),
    **dict.fromkeys(("tumble_rowtime", "hop_rowtime", "tumble_proctime"), "select window_time"),
    **dict.fromkeys(
        ("now", "current_timestamp", "current_date", "localtimestamp", "localtime", "getdate", "sysdate"), _NOW
    ),
    **dict.fromkeys(("sysdatetime", "proctime", "today", "rowtime", "proc_time"), _NOW),
    **dict.fromkeys(("ifnull", "nvl"), _NULL),
    "isnull": f"x IS NULL; {_NULL}",
    "nvl2": "CASE WHEN a IS NULL THEN c ELSE b END",
    "iif": "IF(condition, a, b)",
    "decode": "CASE x WHEN … THEN … END",
    "len": "LENGTH(x)",
    "convert": "CAST(x AS type)",
    **dict.fromkeys(("to_char", "format", "date_format", "printf", "strftime"), "CAST(x AS VARCHAR)"),
    **dict.fromkeys(("to_timestamp", "from_unixtime", "timestamp_seconds"), "CAST(seconds AS TIMESTAMP)"),
    **dict.fromkeys(("to_date", "date"), "CAST(x AS DATE)"),
    **dict.fromkeys(("to_number", "int", "integer", "bigint", "double"), _NUMBER),
    **dict.fromkeys(("datediff", "timestampdiff", "date_diff"), _SECONDS),
    **dict.fromkeys(("unix_timestamp", "epoch", "to_unixtime", "epoch_ms"), "EXTRACT(EPOCH FROM x)"),
    **dict.fromkeys(("dateadd", "date_add", "timestampadd", "date_sub"), "a + INTERVAL '5' MINUTE"),
    "date_trunc": _TRUNCATED,
    **dict.fromkeys(("windowstart", "window_begin"), "window_start"),
    "windowend": "window_end",
    **dict.fromkeys((f"tostartof{unit}" for unit in ("second", "minute", "hour", "day")), _TRUNCATED),
    **dict.fromkeys(("trunc", "truncate"), f"FLOOR(x), or CAST(x AS BIGINT); {_TRUNCATED}"),
    **dict.fromkeys(("date_part", "datepart", "dayofmonth"), "EXTRACT(DAY FROM x)"),
    "mode": _OFTEN,
    "std": "STDDEV(x)",
    **dict.fromkeys(("mean", "average"), "AVG(x)"),
    **dict.fromkeys(("collect_set", "array_distinct"), "ARRAY_AGG(DISTINCT x)"),
    **dict.fromkeys(("lead", "nth_value"), _PLACE),
    **dict.fromkeys(("any_value", "arbitrary"), "FIRST(x), or MIN(x)"),
    **dict.fromkeys(("latest_by_offset", "latest"), "LAST(x)"),
    **dict.fromkeys(("earliest_by_offset", "earliest"), "FIRST(x)"),
    **dict.fromkeys(("topk", "topkdistinct", "top_k"), "ARRAY_AGG(x), or MAX(x); sort the rows that you take"),
    **dict.fromkeys(("explode", "unnest", "flatten", "posexplode"), "the source sends a row for each value"),
    **dict.fromkeys(("max_by", "min_by", "arg_max", "arg_min"), _ONE_COLUMN),
    **dict.fromkeys(("count_if", "countif"), "COUNT(*) FILTER (WHERE condition)"),
    **dict.fromkeys(("sum_if", "sumif"), "SUM(x) FILTER (WHERE condition)"),
    **dict.fromkeys(("count_distinct", "uniq", "nunique", "n_unique"), "COUNT(DISTINCT x)"),
    "size": "COUNT(*) counts tuples; LENGTH(x) the characters of a text",
    **dict.fromkeys(
        ("histogram", "value_counts"), "COUNT(*) with GROUP BY x, or GROUP BY FLOOR(x / 10) for ranges of 10"
    ),
    **dict.fromkeys(("rank", "dense_rank", "ntile", "percent_rank", "cume_dist"), _RANKED),
    **dict.fromkeys(("regexp_like", "regexp_matches", "rlike", "regexp", "contains", "startswith", "ends_with"), _LIKE),
    **dict.fromkeys(("position", "instr", "locate", "charindex", "strpos"), "x LIKE '%text%' tests for a text"),
    **dict.fromkeys(("row", "struct", "array", "map", "json_value", "json_extract", "get_json_object"), _NESTED),
    **dict.fromkeys(("any", "some", "all"), "x IN (1, 2, 3)"),
    **dict.fromkeys(("random", "rand", "uuid"), "a repeated batch must give the same rows: use a column"),
    "div": "(a - MOD(a, b)) / b",
    "square": "POWER(x, 2)",
    **dict.fromkeys(("var", "var_p"), "VAR_SAMP(x), or VAR_POP(x)"),
    **dict.fromkeys(("percentile_approx", "approx_quantiles"), "PERCENTILE(x, 0.5) or APPROX_QUANTILE(x, 0.5)"),
    **dict.fromkeys(("split", "split_part", "regexp_extract", "regexp_replace", "regexp_substr"), _PYTHON),
    **dict.fromkeys(("initcap", "lpad", "rpad", "reverse", "repeat", "translate", "concat_ws"), _PYTHON),
    **dict.fromkeys(("md5", "hash", "sha1", "sha2", "sha256", "crc32", "xxhash64"), _PYTHON),
    **dict.fromkeys(("sin", "cos", "tan", "atan2", "radians", "degrees", "st_distance", "st_contains"), _PYTHON),
    **dict.fromkeys(("corr", "covar_pop", "covar_samp", "regr_slope", "skewness", "kurtosis"), _AGGREGATE),
    **dict.fromkeys(("log", "log10", "log2"), "LN(x); LN(x) / LN(10)"),
}
"""Hints for functions that do not exist here, by lower-case name."""

WITHOUT_CALL = frozenset(
    {"current_timestamp", "current_date", "localtimestamp", "sysdate", "rowtime", "windowstart", "windowend"}
)
"""Functions that other dialects write without parentheses, as if they were columns."""
