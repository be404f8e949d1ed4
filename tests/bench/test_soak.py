"""The mixture of the soak test, small: a program in one process, disturbed once in every way."""

from __future__ import annotations

from pathlib import Path

from millstream_bench.soak.mixture.run import DISTURBANCES, Mixture, Site


def test_a_disturbed_run_has_the_rows_of_an_undisturbed_one(tmp_path: Path) -> None:
    said: list[str] = []
    mixture = Mixture(tmp_path / "soak", said.append, Site(10, 400, "none"), seed=7, limit=200, held=0.5)
    assert mixture.run(len(DISTURBANCES)), "\n".join(said)
    assert sum(" disturbances, seed 7" in line for line in said) == 1
