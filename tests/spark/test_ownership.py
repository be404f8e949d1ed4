"""On Spark: the session of a program stays as it is, and a checkpoint has one owner."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import millstream as ms
from millstream.errors import OptionError

SETTINGS = {
    "spark.sql.session.timeZone": "America/New_York",
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.shuffle.partitions": "17",
    "spark.sql.streaming.stateStore.providerClass": "org.example.Provider",
}


def all_settings(spark: SparkSession) -> dict[str, str]:
    return dict(spark.conf.getAll)


def test_the_settings_of_a_session_stay(spark: SparkSession, tmp_path: Path) -> None:
    own = spark.newSession()
    for name, value in SETTINGS.items():
        own.conf.set(name, value)
    before = all_settings(own)
    name = "it\"s 'quoted'"
    with ms.connect(own, checkpoint=tmp_path / "kept", shards=2) as mill:
        assert all_settings(own) == before
        quoted = '"it""s \'quoted\'"'
        mill.sql(f"CREATE STREAM {quoted} (k BIGINT, ts BIGINT) ORDER BY ts")
        query = mill.sql(f"SELECT k, COUNT(*) AS n FROM {quoted} [RANGE 10] GROUP BY k").start(name=name)
        mill.insert(name, [(1, 1), (1, 2), (2, 30)])
        assert query.take().rows() == [(1, 2)]
        assert all_settings(own) == before
        assert mill.spark is not None
        assert mill.spark.conf.get("spark.sql.session.timeZone") == "America/New_York"
        with pytest.raises(OptionError, match=r"M6070: .*this process"):
            ms.connect(own, checkpoint=tmp_path / "kept")
    assert all_settings(own) == before
    assert own.range(3).count() == 3
    with pytest.raises(OptionError, match=r"M6072: .* 2 shards, which cannot become 3"):
        ms.connect(own, checkpoint=tmp_path / "kept", shards=3)
    with ms.connect(own, checkpoint=tmp_path / "kept") as mill:
        assert [query.name for query in mill.queries] == [name]


def test_the_session_of_the_program_is_neither_changed_nor_stopped(spark: SparkSession) -> None:
    before = all_settings(spark)
    with ms.connect(shards=2) as mill:
        mill.sql("CREATE STREAM s (k BIGINT)")
        query = mill.sql("SELECT k FROM s").start()
        mill.insert("s", [(1,)])
        assert query.take().rows() == [(1,)]
    assert all_settings(spark) == before
    assert spark.range(3).count() == 3
    with pytest.raises(OptionError, match="M6052: this program has a Spark session already"):
        ms.connect(settings={"spark.sql.shuffle.partitions": "3"})
