"""The examples of the freeway: what they print, and what holds of it."""

from __future__ import annotations

import importlib.util
from collections import Counter
from datetime import datetime
from types import ModuleType

import polars as pl
import pytest

from tests.paths import ROOT

FOLDER = ROOT / "examples" / "freeway"


@pytest.fixture
def imputation(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    spec = importlib.util.spec_from_file_location("imputation", FOLDER / "imputation.py")
    assert spec is not None and spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    monkeypatch.setattr(made, "END", datetime(2011, 9, 15, 0, 40))
    monkeypatch.setattr(made, "BUDGET", 60)
    return made


def test_imputation_in_time(imputation: ModuleType) -> None:
    """PACE alone loses what falls behind; with feedback less work has more use."""
    union, paced, told = (imputation.run(variant, budget=60) for variant in imputation.VARIANTS)
    assert union["useful"] < union["rows"] and union["estimates made"] == union["estimated"]
    for each in (paced, told):
        assert each["useful"] == each["rows"] < union["rows"]
        assert each["rows"] - each["estimated"] == union["rows"] - union["estimated"]  # all that were reported
    assert told["estimated"] > paced["estimated"]
    assert told["estimates made"] < paced["estimates made"] == union["estimates made"]


def test_an_estimate_is_the_last_speed_or_that_of_the_archive(imputation: ModuleType) -> None:
    estimates, at = imputation.Estimates(), datetime(2011, 9, 15, 1, 20)
    known = imputation.archive().filter(pl.col("detector") == 1346, pl.col("quarter") == at.replace(minute=15).time())
    ts = pl.Series([at] * 3)
    epoch = (at - datetime(1970, 1, 1)).total_seconds()
    found = estimates(
        pl.Series([1346] * 3), ts, pl.Series([41.0, 41.0, None]), pl.Series([epoch - 60, epoch - 600, None])
    )
    assert found.to_list() == [41.0, known["mean"].item(), known["mean"].item()]


def test_the_data() -> None:
    readings = pl.read_parquet(FOLDER / "readings.parquet")
    assert readings.height == 240_258 and readings["ts"].is_sorted()
    assert readings["speed"].null_count() == 36_491
    detectors, stations = (pl.read_csv(FOLDER / f"{name}.csv") for name in ("detectors", "stations"))
    assert Counter(readings["detector"].unique()) == Counter(detectors["detector"])
    assert set(detectors["station"]) == set(stations["station"]) == set(readings["station"].unique())
    assert set(stations["highway"]) <= set(pl.read_csv(FOLDER / "highways.csv")["highway"])
