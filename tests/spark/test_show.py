"""SHOW and EXPLAIN on Spark, with every kind of stream, before, while and after queries read them."""

from pathlib import Path

from pyspark.sql import SparkSession

import millstream as ms

STREAMS = {
    "fed": "CREATE STREAM fed (k BIGINT, ts BIGINT) ORDER BY ts",
    "entered": "CREATE STREAM entered (k BIGINT) ORDER BY current_time",
    "latent": "CREATE STREAM latent (k BIGINT)",
    "skewed": "CREATE STREAM skewed (k BIGINT, ts BIGINT) ORDER BY ts MAX SKEW 5",
    "csv": "CREATE STREAM csv (k BIGINT, ts BIGINT) ORDER BY ts WITH (connector = 'csv', path = '{0}/in', once = true)",
    "missing": "CREATE STREAM missing (k BIGINT, ts BIGINT) ORDER BY ts WITH (connector = 'csv', path = '{0}/nowhere')",
    "ticks": "CREATE STREAM ticks (value BIGINT, ts TIMESTAMP) ORDER BY ts WITH (connector = 'rate', events = 10)",
    "endless": "CREATE STREAM endless (value BIGINT, ts TIMESTAMP) ORDER BY ts WITH (connector = 'rate', speed = 1)",
    "keyed": "CREATE STREAM keyed (id BIGINT, ts TIMESTAMP) ORDER BY ts PRIMARY KEY (id) "
    "WITH (connector = 'nexmark', stream = 'auction', events = 1000)",
    "derived": "CREATE STREAM derived AS SELECT k, ts FROM csv WHERE k > 0",
}
READABLE = ["fed", "entered", "latent", "skewed", "csv", "ticks", "endless", "keyed", "derived", "frame", "csv__late"]


def shown(mill: ms.Connection) -> dict[str, str]:
    return dict(line.split(" ", 1) for line in str(mill.sql("SHOW STREAMS")).splitlines())


def test_show_and_explain_with_every_kind_of_stream(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "1.csv").write_text("k,ts\n1,10\n2,5\nx,11\n3,12\n")
    with ms.connect(spark, checkpoint=tmp_path / "checkpoint", shards=2) as mill:
        for text in STREAMS.values():
            mill.sql(text.format(tmp_path))
        mill.stream("frame", spark.readStream.format("rate").load())
        mill.sql("CREATE TABLE rates (k BIGINT, x DOUBLE)")
        assert {*shown(mill)} == {*STREAMS, "frame"}
        for stage in ("LOGICAL", "OPTIMIZED", "PHYSICAL", "CONTRACT"):
            for stream in READABLE:
                read = "csv" if stream == "derived" else stream
                assert read in str(mill.sql(f"EXPLAIN {stage} SELECT * FROM {stream}"))
        mill.sql("CREATE QUERY q AS SELECT k, ts FROM csv")
        mill.sql("CREATE QUERY t AS SELECT value FROM ticks")
        mill.sql("CREATE QUERY e AS SELECT value FROM endless")
        mill.sql("CREATE QUERY f AS SELECT value FROM frame")
        fed = mill.sql("CREATE QUERY g AS SELECT fed.k, r.x FROM fed JOIN rates r ON fed.k = r.k")
        mill.insert("fed", [(1, 1)])
        assert fed.take().is_empty()
        for name in ("q", "t", "e", "f", "g", "derived"):
            for stage in ("", "PHYSICAL", "CONTRACT"):
                assert mill.sql(f"EXPLAIN {stage} {name}")
        while not shown(mill)["csv"].endswith("2 accepted, 1 late, 1 bad"):
            mill.check()
        assert str(mill.sql("SHOW QUERIES")).count(" out") == 5
        assert "rates" in str(mill.sql("SHOW TABLES"))
        for name in ("q", "t", "e", "f", "g"):
            mill.sql(f"DROP QUERY {name}")
        assert shown(mill)["csv"].endswith("2 accepted, 1 late, 1 bad")
    with ms.connect(spark, checkpoint=tmp_path / "checkpoint", shards=2) as mill:
        assert {*shown(mill)} == {*STREAMS, "frame"}
