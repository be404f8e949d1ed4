"""One Spark session for all tests that need one: they run in one process, one after the other."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from millstream.control.spark.session import start_session


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    session = start_session("local[2]")
    yield session
    session.stop()


@pytest.hookimpl(tryfirst=True)  # before the groups become part of the names
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.parent == Path(__file__).parent:
            item.add_marker(pytest.mark.xdist_group("spark"))
