"""The command line."""

from importlib.metadata import version
from pathlib import Path

import pytest
from typer.testing import CliRunner

from millstream import cli
from millstream.errors import OptionError

GOOD = "statement\nCREATE STREAM s (k BIGINT)\n\nquery q\nSELECT k FROM s\n\ninput s\n1\n\nexpect q\n1\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "good.transcript").write_text(GOOD)
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "bad.transcript").write_text(GOOD.replace("\nexpect q\n1", "\nexpect q\n2"))
    return tmp_path


def run(*words: str) -> tuple[int, list[str]]:
    result = CliRunner().invoke(cli.app, list(words))
    return result.exit_code, result.output.rstrip().splitlines()


def test_transcripts_end_in_a_count(folder: Path) -> None:
    status, lines = run("test", str(folder))
    assert status == 1 and lines[-1] == "1 passed, 1 failed"
    assert any("missing: 2" in line for line in lines)
    status, lines = run("test", str(folder / "good.transcript"), "--shards", "3", "--cut", "random:9", "--restart")
    assert status == 0 and lines[-1] == "1 passed, 0 failed"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["test", "no/such/folder"], "no such file or folder"),
        (["test", ".", "--cut", "sometimes"], "--cut cannot be 'sometimes'"),
        (["test", ".", "--cut", "0"], "--cut cannot be '0'"),
        (["explain", "no/such.sql"], "cannot read"),
    ],
)
def test_mistakes_are_one_message(
    words: list[str], message: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["millstream", *words])
    with pytest.raises(SystemExit) as caught:
        cli.main()
    assert caught.value.code == 2
    shown = capsys.readouterr().err
    assert message in shown and "Traceback" not in shown


def test_explain_prints_every_query(tmp_path: Path) -> None:
    file = tmp_path / "queries.sql"
    file.write_text(
        "CREATE STREAM s (k BIGINT);\nCREATE QUERY q AS SELECT k FROM s WHERE k > 1;\nSELECT k + 1 FROM s;\n"
    )
    for stage in ("logical", "optimized", "physical"):
        status, lines = run("explain", str(file), "--stage", stage)
        assert status == 0 and "-- q" in lines and "-- query" in lines


def test_commands_of_a_missing_package_name_it(monkeypatch: pytest.MonkeyPatch) -> None:
    status, lines = run("bench", "--help")
    assert status == 0 and any("joins" in line for line in lines)
    monkeypatch.setattr(cli.COMMANDS, "get", lambda _: None)
    monkeypatch.setattr(cli.COMMANDS, "names", list)
    assert any(" soak " in line for line in run("--help")[1])
    for words in (("bench", "w1", "w2", "--rounds", "3"), ("soak",)):
        result = CliRunner().invoke(cli.app, list(words))
        assert isinstance(result.exception, OptionError) and result.exception.code == "M6061"


def test_the_version_is_that_of_the_package() -> None:
    assert run("--version") == (0, [f"millstream {version('millstream')}"])
