"""The command line."""

import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from millstream import cli
from millstream.errors import MillstreamError, OptionError
from tests.paths import ROOT

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
        (["test", "FOLDER"], "M6021: no file of"),
        (["test", ".", "--cut", "sometimes"], "--cut cannot be 'sometimes'"),
        (["test", ".", "--cut", "0"], "--cut cannot be '0'"),
        (["explain", "no/such.sql"], "cannot read"),
        (["explain", "FILE", "--stage", "bogus"], "M6002: stage cannot be 'bogus': one of logical, optimized"),
        (["run", "FILE", "--checkpoint", "FILE"], "M6062: the checkpoint '"),
        (["run", "FILE", "--local", "--checkpoint", "/proc/none"], "M6062: cannot write to the checkpoint"),
        (["run", "FILE", "--log", "no/such/folder/spark.log"], "M6063: cannot write the log"),
        (["run", "FILE", "--master", "spark://127.0.0.1:1"], "M6064: cannot reach the Spark master"),
    ],
)
def test_mistakes_are_one_message(
    words: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file.sql").write_text("CREATE STREAM s (k BIGINT); SELECT k FROM s")
    places = {"FILE": str(tmp_path / "file.sql"), "FOLDER": str(tmp_path)}
    words = [places.get(word, word) for word in words]
    monkeypatch.setattr("sys.argv", ["millstream", *words])
    monkeypatch.setattr("millstream.control.connecting.current_session", lambda: None)  # other tests may have one
    with pytest.raises(SystemExit) as caught:
        cli.main()
    assert caught.value.code == 2
    shown = capsys.readouterr().err
    assert message in shown and "Traceback" not in shown


@pytest.mark.parametrize(
    ("home", "message"),
    [
        ("/no/such/jdk", "M6055: JAVA_HOME is '/no/such/jdk', and there is no bin/java in it"),
        ("old", "M6055: Spark needs Java 17 or newer; "),
    ],
)
def test_a_wrong_java_is_one_message(tmp_path: Path, home: str, message: str) -> None:
    """In a process of its own, as a user runs it."""
    (tmp_path / "file.sql").write_text("CREATE STREAM s (k BIGINT); SELECT k FROM s")
    (tmp_path / "old" / "bin").mkdir(parents=True)
    (tmp_path / "old" / "bin" / "java").touch(0o755)
    (tmp_path / "old" / "release").write_text('JAVA_VERSION="1.8.0_292"')
    command = [sys.executable, "-m", "millstream", "run", "file.sql"]
    environment = os.environ | {"JAVA_HOME": str(tmp_path / home)}
    result = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert result.returncode == 2 and message in result.stderr and "Traceback" not in result.stderr


def test_benchmarks_without_their_packages_name_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("millstream_bench.cli.find_spec", lambda _: None)
    result = CliRunner().invoke(cli.app, ["bench", "core", "--events", "1000"])
    assert isinstance(result.exception, OptionError) and result.exception.code == "M6061"
    assert result.exception.message == "benchmarks need duckdb, not installed"


def test_explain_prints_every_query(tmp_path: Path) -> None:
    file = tmp_path / "queries.sql"
    file.write_text(
        "CREATE STREAM s (k BIGINT);\nCREATE QUERY q AS SELECT k FROM s WHERE k > 1;\nSELECT k + 1 FROM s;\n"
    )
    for stage in ("logical", "optimized", "physical"):
        status, lines = run("explain", str(file), "--stage", stage)
        assert status == 0 and "-- q" in lines and "-- query_1" in lines


def test_explain_has_the_names_that_run_gives(tmp_path: Path) -> None:
    file = tmp_path / "queries.sql"
    file.write_text(
        "CREATE STREAM s (k BIGINT, ts BIGINT) ORDER BY ts; CREATE TABLE t (k BIGINT, n BIGINT);"
        "SELECT k FROM s INTO none; CREATE QUERY query_2 AS SELECT k + 1 AS x FROM s INTO none;"
        "INSERT INTO t SELECT k, ts FROM s; SELECT k FROM t; SELECT ts FROM s INTO none; SHOW QUERIES"
    )
    shown = [line.removeprefix("-- ") for line in run("explain", str(file))[1] if line.startswith("-- ")]
    names = [line.partition(":")[0] for line in run("run", "--local", str(file))[1] if re.match(r"\w+_\d: ", line)]
    assert [name for name in shown if "over tables" not in name] == names
    assert names == ["query_1", "query_2", "insert_t_1", "query_3"]


def test_explain_knows_the_queries_of_the_file(tmp_path: Path) -> None:
    file = tmp_path / "queries.sql"
    statements = [
        "CREATE STREAM s (k BIGINT, ts BIGINT) ORDER BY ts",
        "CREATE QUERY q AS SELECT k, COUNT(*) AS n FROM s [RANGE 5] GROUP BY k EMIT EARLY AT 80 %",
        "FEEDBACK q '~[k = 1]'",
        "SET strategy = 'dfs; q.windowaggregate: bfs'",
        "SET breaks = 'q.project'",
        "EXPLAIN q",
        "EXPLAIN PHYSICAL q",
        "ALTER QUERY q EMIT EARLY AT 60 %",
        "CREATE QUERY IF NOT EXISTS q AS SELECT k FROM s",
        "DROP QUERY q",
        "CREATE QUERY q AS SELECT ts FROM s",
        "SELECT k FROM s",
    ]
    file.write_text(";\n".join(statements))
    for stage in ("optimized", "physical"):
        status, lines = run("explain", str(file), "--stage", stage)
        assert status == 0, lines
        assert [line for line in lines if line.startswith("-- ")] == ["-- q", "-- q", "-- query_1"]
    for wrong, said in (
        ("EXPLAIN nope", "M2092: unknown query 'nope'"),
        ("EXPLAIN CONTRACT s", "M2092: 's' is a stream, not a query"),
        ("DROP QUERY nope", "M2092: unknown query 'nope'"),
        ("CREATE QUERY q AS SELECT k FROM s", "M2091: query 'q' exists already"),
    ):
        file.write_text(";\n".join([*statements, wrong]))
        result = CliRunner().invoke(cli.app, ["explain", str(file)])
        assert str(result.exception).startswith(said)


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


def _commands(command: Any, *names: str) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every command and command of a command, with the words that call it."""
    yield names, command
    for name in command.list_commands(None) if hasattr(command, "list_commands") else ():
        yield from _commands(command.get_command(None, name), *names, name)


def test_help_shows_its_texts_as_they_are_written() -> None:
    for names, command in _commands(get_command(cli.app)):
        shown = " ".join(" ".join(run(*names, "--help")[1]).split())
        for text in [command.help, *(getattr(parameter, "help", None) for parameter in command.params)]:
            assert " ".join((text or "").split()) in shown, names
    copied = "  Example: millstream feedback speeds '~[district < 9]' --checkpoint state"
    assert copied in run("feedback", "--help")[1]


FILE = """-- a comment
CREATE STREAM s (k BIGINT);

CREATE QUERY good AS
  SELECT k FROM s INTO none;

{}
"""


@pytest.mark.parametrize("command", [["run", "--local"], ["explain"]])
@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("CREATE QUERY q AS\n  SELECT kk FROM s INTO none;", "unknown column 'kk' (line 8, column 10)"),
        ("  SELECT kk FROM s;", "unknown column 'kk' (line 7, column 10)"),
        ("CREATE TABLE\n t (a BIGINT, a BIGINT);", "(line 8, column 15)"),
        ("  CREATE STREAM s (k BIGINT);", "'s' exists already (line 7, column 3)"),
        (" SELECT k FROM s INTO nowhere;", "(line 7, column 23)"),
    ],
)
def test_errors_have_the_line_of_the_file(command: list[str], statement: str, message: str, tmp_path: Path) -> None:
    file = tmp_path / "file.sql"
    file.write_text(FILE.format(statement))
    result = CliRunner().invoke(cli.app, [*command, str(file)])
    assert message in str(result.exception)


def test_errors_of_files_that_a_query_reads_have_the_line_of_the_query(tmp_path: Path) -> None:
    file = tmp_path / "file.sql"
    stream = f"CREATE STREAM f (k BIGINT) WITH (connector = 'csv', path = '{tmp_path}/none');"
    file.write_text(FILE.format(f"{stream}\nSELECT k FROM s INTO none; SELECT k FROM f"))
    result = CliRunner().invoke(cli.app, ["run", "--local", str(file)])
    assert "M5040" in str(result.exception) and "(line 8, column 28)" in str(result.exception)
    file.write_text(FILE.format(" CREATE QUERY good AS SELECT k FROM s"))
    result = CliRunner().invoke(cli.app, ["run", "--local", str(file)])
    assert "M2091" in str(result.exception) and "(line 7, column 2)" in str(result.exception)


CALLS = re.compile(r"query\.\w+\(|connect\(|mill\.\w+|=True|\bstart\(\)")


def test_hints_say_what_to_type_and_not_what_to_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in.csv").write_text("k\n5000\n")
    stream = "CREATE STREAM s (k BIGINT) WITH (connector = 'csv', path = 'in.csv', once = true);"
    files = {
        "fails": (f"{stream} CREATE QUERY q AS SELECT k * 9223372036854775 AS x FROM s INTO none;", ()),
        "shards": (f"{stream} CREATE QUERY q AS SELECT k FROM s INTO none;", ("--checkpoint", "c", "--shards", "3")),
        "calls": (f"{stream} CREATE QUERY q AS SELECT nosuch(k) AS x FROM s INTO none;", ()),
    }
    status, _ = run("run", "--local", str(_file(tmp_path, "first", files["shards"][0])), "--checkpoint", "c")
    assert status == 0
    said = {}
    for name, (text, options) in files.items():
        result = CliRunner().invoke(cli.app, ["run", "--local", str(_file(tmp_path, name, text)), *options])
        said[name] = str(result.exception)
        assert isinstance(result.exception, MillstreamError) and not CALLS.search(said[name]), said[name]
    assert "The same command, with the same --checkpoint, starts it again" in said["fails"]
    assert "--shards 1, or leave it out" in said["shards"]


def _file(folder: Path, name: str, text: str) -> Path:
    file = folder / f"{name}.sql"
    file.write_text(text)
    return file


def test_a_stream_that_nothing_feeds_is_named(tmp_path: Path) -> None:
    file = _file(tmp_path, "fed", "CREATE STREAM s (k BIGINT); SELECT k FROM s INTO none;")
    command = [sys.executable, "-m", "millstream", "run", str(file), "--local", "--seconds", "1"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0 and "warning: M5062: nothing feeds stream 's'\n  hint: WITH (" in result.stderr
    assert re.fullmatch(r"nothing feeds 's': ended after \S+ s: 0 rows in, 0 rows out\n", result.stdout)


def test_the_documentation_is_part_of_the_package() -> None:
    def printed(*page: str) -> str:
        return CliRunner().invoke(cli.app, ["docs", *page]).stdout

    folder = Path(cli.__file__).parent / "docs"
    wanted = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["package-data"]["millstream"]
    shipped = {path for pattern in wanted if pattern.startswith("docs/") for path in folder.parent.glob(pattern)}
    assert shipped == {*folder.rglob("*.md")} and len(shipped) > 40
    assert re.search(r"^operators/sequence +\w+", printed(), re.MULTILINE)
    assert printed("language").startswith("# The language") and printed("docs/language.md") == printed("language")
    assert printed("M2008") == "M2008: unknown function\n"
    assert "did you mean 'feedback'?" in str(CliRunner().invoke(cli.app, ["docs", "fedback"]).exception)
    for source in folder.parent.rglob("*.py"):  # what messages refer to
        for page in re.findall(r"millstream docs ([a-z/-]+[a-z])", source.read_text("utf-8")):
            assert (folder / f"{page}.md").exists(), (source, page)
