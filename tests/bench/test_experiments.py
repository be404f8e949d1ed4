"""The experiments: analytic values, shapes, and files (W2, W16; appendix C 7 and 8)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from millstream_bench.engine.burstiness import burstiness
from millstream_bench.engine.experiment import Experiment
from millstream_bench.engine.run import run
from millstream_bench.engine.workload import poisson, poisson_bursts, regular, spaced_bursts
from tests.tries import sometimes

pytestmark = [sometimes(4, 5), pytest.mark.xdist_group("experiments")]  # they share a run


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("bench")
    run(out, quick=True)
    return out


def load(folder: Path, name: str) -> Experiment:
    held: dict[str, Any] = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
    held["columns"] = tuple(held["columns"])
    return Experiment(**held)


def test_burstiness() -> None:
    assert burstiness([0, 0, 30, 10]) == 3.0
    assert burstiness([10, 10, 10, 10]) == 0


def test_arrivals() -> None:
    rng = np.random.default_rng(1)
    times = poisson(rng, 1000, 20)
    assert len(times) == pytest.approx(20_000, rel=0.03)
    assert np.all(np.diff(times) >= 0)
    assert len(poisson_bursts(rng, 1000, 20, 10)) == pytest.approx(20_000, rel=0.1)
    assert spaced_bursts(2, 3, 10).tolist() == [10, 10, 10, 20, 20, 20]
    assert regular(4, 1).tolist() == [250_000, 500_000, 750_000, 1_000_000]


def test_files(folder: Path) -> None:
    names = ["fig_14a", "fig_14b", "fig_15", "fig_16", "fig_3_13", "fig_3_17"]
    for name in names:
        assert (folder / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        text = (folder / f"{name}.txt").read_text(encoding="utf-8")
        made = load(folder, name)
        assert made.title in text
        assert made.parameters["seed"] == 4
        assert made.rows
    whole = json.loads((folder / "engine.json").read_text(encoding="utf-8"))
    assert sorted(whole) == sorted(names)


def test_on_demand_is_orders_of_magnitude_below_none(folder: Path) -> None:
    made = load(folder, "fig_14a")
    for strategy in ("dfs", "bfs"):
        (none,) = made.column("latency_ms", strategy=strategy, mode="none")
        (beats,) = made.column("latency_ms", strategy=strategy, mode="heartbeat 10/s")
        (demand,) = made.column("latency_ms", strategy=strategy, mode="on demand")
        assert none > 10 * beats > 1000 * demand


def test_measured_latency_is_the_analytic_one(folder: Path) -> None:
    made = load(folder, "fig_14b")
    measured, analytic = (made.column(name, timestamps="latent") for name in ("latency_ms", "analytic_ms"))
    assert measured == pytest.approx(analytic, rel=0.01)
    depth, breadth = (made.column("latency_ms", timestamps="on demand", strategy=s)[-1] for s in ("dfs", "bfs"))
    assert 1.3 < breadth / depth < 1.6


def test_the_enhanced_graph_saves_more_the_more_operators_it_skips(folder: Path) -> None:
    made = load(folder, "fig_15")
    over = made.column("over_eqg_%", mode="punctuation")
    assert 0 < over[0] < over[-1]
    assert min(made.column("latency_ms", mode="none")) > 10 * max(made.column("latency_ms", mode="punctuation"))


def test_bursts_caused_by_the_slide_go_away(folder: Path) -> None:
    made = load(folder, "fig_16")
    none, demand = (made.column("burstiness", mode=mode) for mode in ("none", "eqg"))
    assert none[-1] > 2 * none[0]
    assert demand[-1] < 2


def test_idle_share_and_memory(folder: Path) -> None:
    made = load(folder, "fig_3_13")
    assert made.column("idle_%", policy="none")[0] > 98
    assert made.column("idle_%", policy="on demand")[0] < 0.1
    assert made.column("idle_%", policy="latent") == [0]
    peaks = load(folder, "fig_3_17")
    assert peaks.column("peak", policy="on demand")[0] < peaks.column("peak", policy="none")[0]
