"""Spark settings that are the same for every contestant.

Commits are made cheap (no forked `chmod` and `readlink` per file); there are as many partitions as cores, and no web
interface. Only the state store may differ.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DEFAULT_STORE, ROCKSDB = "default store", "RocksDB"
STORES = (DEFAULT_STORE, ROCKSDB)

_STREAMING = "spark.sql.streaming"


def common(cores: int) -> dict[str, str]:
    file_manager = "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    return {
        "spark.master": f"local[{cores}]",
        "spark.driver.memory": "6g",
        "spark.driver.extraJavaOptions": "-Djdk.lang.Process.launchMechanism=VFORK",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": str(cores),
        f"{_STREAMING}.checkpointFileManagerClass": file_manager,
        f"{_STREAMING}.checkpoint.fileChecksum.enabled": "false",
        f"{_STREAMING}.numRecentProgressUpdates": "10000",
    }


def store(name: str) -> dict[str, str]:
    """Settings of a state store; RocksDB with changelog checkpoints, its faster way to commit."""
    if name == DEFAULT_STORE:
        return {}
    return {
        f"{_STREAMING}.stateStore.providerClass": (
            "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
        ),
        f"{_STREAMING}.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    }


def session(cores: int, store_name: str) -> SparkSession:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName("millstream-bench")
    for key, value in (common(cores) | store(store_name)).items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark
