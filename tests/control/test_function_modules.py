"""Python functions of modules: those that the command line names."""

from __future__ import annotations

import importlib
import linecache
import sys
from pathlib import Path

import polars as pl
import pytest
from typer.testing import CliRunner

from millstream.algebra.python import code as codes
from millstream.cli import app
from millstream.errors import OptionError

MODULE = """
import millstream as ms

@ms.function
def half(x: float) -> float:
    return x / 2
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "half_functions.py").write_text(MODULE)
    (tmp_path / "rows.csv").write_text("v\n3\n")
    (tmp_path / "q.sql").write_text(
        "CREATE STREAM r (v DOUBLE) WITH (connector = 'csv', path = 'rows.csv', once = 'true'); "
        "CREATE QUERY q AS SELECT half(v) AS x FROM r INTO parquet WITH (path = 'out')"
    )
    monkeypatch.setattr(sys, "path", ["", *sys.path])
    monkeypatch.delitem(sys.modules, "half_functions", raising=False)
    return tmp_path


def test_a_file_of_statements_names_a_module(folder: Path) -> None:
    arguments = ["run", "q.sql", "--local", "--checkpoint", "c", "--functions", "half_functions"]
    done = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    assert pl.read_parquet(folder / "out" / "*.parquet").get_column("x").to_list() == [1.5]
    assert CliRunner().invoke(app, arguments, catch_exceptions=False).exit_code == 0
    explained = CliRunner().invoke(app, ["explain", "q.sql", "--functions", "half_functions"], catch_exceptions=False)
    assert "Project half(v) AS x" in explained.output


def test_a_module_has_changed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = ["run", "q.sql", "--local", "--checkpoint", "c", "--functions", "half_functions"]

    def run(*more: str) -> str:
        monkeypatch.setattr(codes, "_CODE", {})
        sys.modules.pop("half_functions", None)
        return CliRunner().invoke(app, [*arguments, *more], catch_exceptions=False).output

    run()
    (folder / "half_functions.py").write_text(MODULE.replace("x / 2", "x / 4"))
    importlib.invalidate_caches()
    linecache.clearcache()
    with pytest.raises(OptionError, match=r"half \(half_functions.half\) has changed; query q calls it"):
        run()
    assert "kept: half (half_functions.half) has changed" in run("--keep")
    assert "kept" not in run()
    (folder / "half_functions.py").write_text(MODULE.replace("x / 2", "x / 8.0"))
    linecache.clearcache()
    with pytest.raises(OptionError, match="M6041"):  # its results would be mixed with those of the old code
        run("--replace")
    assert "kept" in run("--keep")
    (folder / "half_functions.py").write_text(MODULE.replace("x / 2", "x / 16.0"))
    linecache.clearcache()
    text = (folder / "q.sql").read_text()
    (folder / "q.sql").write_text(text.replace("(path = 'out')", "(path = 'out', overwrite = true)"))
    assert "dropped: query q" in run("--replace")
    assert "dropped" not in run()


@pytest.mark.usefixtures("folder")
def test_a_module_that_cannot_be_imported() -> None:
    with pytest.raises(OptionError, match="M6025: module 'no_such_module' cannot be imported"):
        CliRunner().invoke(app, ["explain", "q.sql", "--functions", "no_such_module"], catch_exceptions=False)
