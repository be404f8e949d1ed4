"""The kinds of time of streams with the columns k, v, ts (BIGINT), as clauses of CREATE STREAM."""

KINDS = {
    "ordered": "ORDER BY ts",
    "punctuated": "ORDER BY ts PUNCTUATED ON (ts +) PUNCTUATED ON (k #)",
    "watermarked": "ORDER BY ts WATERMARK FOR ts AS ts - 3",
    "latent": "",
    "internal": "ORDER BY current_time",
    "skewed": "ORDER BY ts MAX SKEW 0",
    "lagging": "ORDER BY ts MAX SKEW 2",
}
IN_ORDER = {"ordered", "skewed", "lagging"}
