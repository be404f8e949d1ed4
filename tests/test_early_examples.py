"""The examples of early answers: what they print, and what holds of it."""

from __future__ import annotations

import importlib.util
from types import ModuleType

import polars as pl
import pytest

import millstream as ms
from tests.paths import ROOT

FOLDER = ROOT / "examples" / "early"


def loaded(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    assert spec is not None and spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def test_delayed_traffic() -> None:
    """Every window is answered half a minute before its end, over what had arrived by then."""
    traffic = loaded("traffic")
    with ms.connect(local=True) as mill:
        answers = traffic.run(mill)
    arrived = [(at, *what) for at, kind, what in traffic.deliveries() if kind == "row"]
    rows = pl.DataFrame(arrived, schema=["at", "ts", "volume"], orient="row")
    assert answers.height == 30
    for end, early, at, final, final_at in answers.rows():
        inside = rows.filter((pl.col("ts") < end) & (pl.col("ts") >= end - 5 * traffic.SLIDE))
        assert early == inside.filter(pl.col("at") < at)["volume"].sum() and final == inside["volume"].sum()
        assert at == end - traffic.LEAD and final_at >= end


def test_bursts() -> None:
    """Windows in a burst are answered early, over a part of their messages."""
    wireless = loaded("wireless")
    with ms.connect(local=True) as mill:
        rows = wireless.run(mill)
    early, final = (rows.filter(pl.col("finality") == kind) for kind in ("early", "final"))
    assert early["window_end"].to_list() == [end + 1 for end in wireless.BURST]
    assert final["window_end"].to_list() == [*range(1, wireless.SECONDS + 1)]
    both = early.join(final, on="window_end")
    assert (both["messages"] < both["messages_right"]).all() and (both["highest"] <= both["highest_right"]).all()


@pytest.mark.parametrize("name", ["traffic", "wireless"])
def test_what_is_printed(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    loaded(name).main([])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) > 30 and len(lines[0]) >= len(lines[1]) - 2
