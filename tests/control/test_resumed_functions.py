"""Python functions and checkpoints: what is missing or has changed on resume, and what keeps its meaning."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

import millstream as ms
from millstream.algebra.python import code as codes
from millstream.control.mill import LocalMill
from millstream.errors import OperatorError, PlanError

STREAM = "CREATE STREAM s (k BIGINT, v DOUBLE, name VARCHAR, at TIMESTAMP, ts BIGINT) ORDER BY ts"
ROW = (3, 2.0, "x", datetime(2024, 5, 6, 7), 1)


def made(body: str) -> Callable[..., Any]:
    """A function as a notebook has it."""
    space: dict[str, Any] = {"__name__": "__main__"}
    exec(f"def inverse(x: float) -> float:\n    return {body}", space)
    found: Callable[..., Any] = space["inverse"]
    return found


@pytest.fixture
def checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkpoint with a query that calls a function, as another process finds it."""
    folder = kept(tmp_path)
    monkeypatch.setattr(codes, "_CODE", {})
    return folder


def kept(tmp_path: Path) -> Path:
    """A checkpoint with a query that calls a function."""
    folder = tmp_path / "checkpoint"
    with ms.connect(local=True, checkpoint=folder) as mill:
        mill.function(made("1 / x"))
        mill.sql(STREAM)
        mill.sql("CREATE QUERY q AS SELECT inverse(v) AS x FROM s")
        mill.insert("s", [ROW])
        assert mill.query("q").take().rows() == [(0.5,)]
    return folder


def test_a_later_connection_of_the_process_registers_again(tmp_path: Path) -> None:
    checkpoint = kept(tmp_path)
    with pytest.raises(PlanError, match="M3070"):
        ms.connect(local=True, checkpoint=checkpoint)
    with ms.connect(local=True, checkpoint=checkpoint, resume=False) as mill:
        with pytest.raises(PlanError, match="M3070"):
            mill.resume()
        mill.function(made("2 / x"))
        with pytest.raises(PlanError, match="M3071"):
            mill.resume()
        mill.function(made("1 / x"))
        mill.resume()
        mill.function(made("3 / x"))  # for later statements
        mill.insert("s", [(1, 4.0, "", None, 2)])
        assert mill.query("q").take().rows() == [(0.25,)]
    with ms.connect(local=True, checkpoint=checkpoint, resume=False) as mill:
        mill.function(made("2 / x"))
        mill.resume(changed=True)
        mill.insert("s", [(1, 4.0, "", None, 3)])
        assert mill.query("q").take().rows() == [(0.5,)]


def test_a_checkpoint_holds_no_code(checkpoint: Path) -> None:
    held = b"".join(path.read_bytes() for path in checkpoint.rglob("*") if path.is_file())
    assert b"inverse" in held
    assert b"1 / x" not in held and b"cloudpickle" not in held and b"co_code" not in held


def test_a_function_is_missing_on_resume(checkpoint: Path) -> None:
    with pytest.raises(PlanError, match=r"M3070: function inverse \(__main__.inverse\) of query 'q' is not registered"):
        ms.connect(local=True, checkpoint=checkpoint)
    with pytest.raises(PlanError, match="M3070"):
        LocalMill(checkpoint=checkpoint)


def test_a_function_has_changed_on_resume(checkpoint: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with ms.connect(local=True, checkpoint=checkpoint, resume=False) as mill:
        mill.function(made("2 / x"))
        with pytest.raises(PlanError, match=r"M3071: function inverse .* of query 'q' has changed"):
            mill.resume()
        with pytest.raises(PlanError, match="M3071"):
            mill.sql("CREATE QUERY r AS SELECT k FROM s")
    monkeypatch.setattr(codes, "_CODE", {})
    with ms.connect(local=True, checkpoint=checkpoint, resume=False) as mill:
        mill.function(made("1 / x"))
        mill.resume()
        mill.insert("s", [(1, 4.0, "", None, 2)])
        assert mill.query("q").take().rows() == [(0.25,)]


def test_changed_code_is_accepted(checkpoint: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for changed in (True, False):
        with ms.connect(local=True, checkpoint=checkpoint, resume=False) as mill:
            mill.function(made("2 / x"))
            mill.resume(changed=changed)
            mill.insert("s", [(1, 4.0, "", None, 3 - changed)])
            assert mill.query("q").take().rows() == [(0.5,)]
        monkeypatch.setattr(codes, "_CODE", {})


def test_a_fixed_function_resumes_with_the_row_on_which_it_failed(
    checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ms.connect(local=True, checkpoint=checkpoint, resume=False) as mill:
        mill.function(made("1 / x"))
        mill.resume()
        with pytest.raises(OperatorError, match=r"of query q failed on a row of stream s \(.*v = 0.0.*inverse\(0.0\)"):
            mill.insert("s", [(1, 0.0, "", None, 2)])
    monkeypatch.setattr(codes, "_CODE", {})
    with ms.connect(local=True, checkpoint=checkpoint, resume=False) as mill:
        mill.function(made("1 / x if x else 0.0"))
        mill.resume(changed=True)
        assert mill.query("q").take().rows() == [(0.0,)]


def test_a_version_stands_for_the_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for body in ("1 / x", "2 / x"):
        with ms.connect(local=True, checkpoint=tmp_path / "c", resume=False) as mill:
            mill.function(made(body), version="1")
            if not mill.queries:
                mill.sql(STREAM)
                mill.sql("CREATE QUERY q AS SELECT inverse(v) AS x FROM s")
            mill.resume()
        monkeypatch.setattr(codes, "_CODE", {})


def test_statements_of_a_checkpoint_keep_their_meaning(tmp_path: Path) -> None:
    """A function registered later does not hide the built-in one that a statement has used."""
    with ms.connect(local=True, checkpoint=tmp_path) as mill:
        mill.sql(STREAM)
        mill.sql(
            "CREATE QUERY q AS SELECT UPPER(name) AS x FROM s; CREATE STREAM d AS SELECT LOWER(name) AS y, ts FROM s"
        )
    with ms.connect(local=True, checkpoint=tmp_path, resume=False) as mill:
        mill.function(lambda x: "mine", name="upper", arguments=["VARCHAR"], returns="VARCHAR")
        mill.resume()
        mill.insert("s", [ROW])
        assert mill.query("q").take().rows() == [("X",)]
