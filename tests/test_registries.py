"""Sources, sinks and strategies of other packages: those that the documentation shows, installed, and broken ones."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import polars as pl
import pytest

from millstream.algebra.schema import Schema, TimeKind
from millstream.algebra.types import Type
from millstream.algebra.values import decode, encode
from millstream.config import Options
from millstream.control.job.jobs import LocalJobs
from millstream.control.mill import LocalMill
from millstream.errors import InputError, OptionError
from millstream.ingest.paged import SOURCES, open_paged
from millstream.registry import Registry
from millstream.runtime.engine import Graph
from millstream.sinks import SINKS, Sink, make_sink
from millstream.strategies import STRATEGIES
from millstream.testing import Variant, run_text
from tests.paths import ROOT
from tests.runtime.engine.toys import Each, Rig

TRANSCRIPTS = sorted((ROOT / "tests" / "transcripts").glob("[eu]n*/*.transcript"))
SQUARES = Schema.of(("n", Type.BIGINT), ("square", Type.BIGINT), kind=TimeKind.EXTERNAL, time="n")


def install(folder: Path, package: str, points: dict[str, dict[str, str]], **modules: str) -> None:
    """Lay a distribution into a folder, as an installer does."""
    made = folder / f"{package}-1.0.dist-info"
    made.mkdir(parents=True)
    (made / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    lines = [
        line
        for group, entries in points.items()
        for line in (f"[{group}]", *(f"{name} = {value}" for name, value in entries.items()))
    ]
    (made / "entry_points.txt").write_text("\n".join(lines))
    for module, text in modules.items():
        (folder / f"{module}.py").write_text(text)


def shown(page: str) -> tuple[dict[str, dict[str, str]], dict[str, str]]:
    """The entry points and the module that a page shows in its section on other packages."""
    section = (ROOT / "docs" / page).read_text().split(" of other packages\n")[-1].split("\n## ")[0]
    ((points,), (code,)) = (re.findall(rf"```{kind}\n(.*?)```", section, re.DOTALL) for kind in ("toml", "python"))
    found = tomllib.loads(points)["project"]["entry-points"]
    ((value,),) = (entries.values() for entries in found.values())
    return found, {value.partition(":")[0]: code}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A place for packages; what registries learn of them is forgotten afterwards."""
    monkeypatch.syspath_prepend(tmp_path)
    for registry in (SOURCES, SINKS, STRATEGIES):
        monkeypatch.setattr(registry, "known", dict(registry.known))
    return tmp_path


@pytest.fixture
def installed(folder: Path) -> Path:
    for package, page in (("squares", "sources.md"), ("lines", "sinks.md"), ("quantum", "engine.md")):
        points, modules = shown(page)
        install(folder, package, points, **modules)
    return folder


def test_a_source(installed: Path) -> None:
    with pytest.raises(InputError, match="did you mean 'squares'"):
        open_paged("s", SQUARES, {"connector": "sqares"}, [])
    with pytest.raises(OptionError, match="option 'upto' cannot be '0'"):
        open_paged("s", SQUARES, {"connector": "squares", "upto": "0"}, [])
    source = open_paged("s", SQUARES, {"Connector": "Squares", "upto": "1002"}, [])
    offsets = [source.start()]
    while not source.ended(offsets[-1]):
        offsets.append(source.latest(offsets[-1], 0))
    splits = [p for at in range(2) for p in source.splits(offsets[at], offsets[at + 1], 2)]
    read = [decode(encode(split)).read() for split in splits]
    assert pl.concat(part.rows for part in read)["square"].to_list() == [n * n for n in range(1002)]
    assert splits[0].read([]).rows.height == splits[0].rows == 1000 and not read[0].bad.height


def test_a_split_is_known_where_it_arrives(installed: Path) -> None:
    (split,) = open_paged("s", SQUARES, {"connector": "squares"}, []).splits({"n": 0}, {"n": 3}, 1)
    (installed / "split").write_bytes(encode(split))
    read = "import pathlib, sys, millstream.physical.shard.durable as d; from millstream.algebra.values import decode; "
    read += "print(decode(pathlib.Path(sys.argv[1]).read_bytes()).read().rows['square'].to_list())"
    path = os.pathsep.join([str(installed), *sys.path])
    environment = os.environ | {"PYTHONPATH": path}
    made = [sys.executable, "-c", read, str(installed / "split")]
    assert subprocess.run(made, env=environment, capture_output=True, text=True, check=True).stdout == "[0, 1, 4]\n"


@pytest.mark.parametrize("cached", [True, False])
def test_a_source_in_a_query(installed: Path, cached: bool) -> None:
    mill = LocalMill(Options(shards=2), jobs=LocalJobs(shards=2, cached=cached))
    mill.execute("CREATE STREAM s (n BIGINT, square BIGINT) ORDER BY n WITH (connector = 'squares', upto = 2500)")
    mill.add_query("q", "SELECT window_end, SUM(square) AS total FROM s [RANGE 1000]")
    mill.drain()
    sums = [(end, sum(n * n for n in range(end - 1000, min(end, 2500)))) for end in (1000, 2000, 3000)]
    assert sorted(mill.take_rows("q").rows()) == sums


def test_a_sink(installed: Path) -> None:
    with pytest.raises(OptionError, match="did you mean 'lines'"):
        make_sink("linse")
    with pytest.raises(OptionError, match="sink 'lines' needs option 'path'"):
        make_sink("lines", {"run": "7"})
    sink = make_sink("lines", {"path": str(installed / "out"), "run": "7"})
    assert isinstance(sink, Sink)
    sink.open("q", SQUARES)
    for batch in (0, 1, 1):
        sink.write(batch, pl.DataFrame({"n": [batch]}), [])
    assert [file.read_text() for file in sorted((installed / "out").iterdir())] == ['{"n":0}\n', '{"n":1}\n']


def test_a_strategy(installed: Path) -> None:
    for text in ("quantum", "quantum:0", "quantm:2"):
        with pytest.raises(OptionError, match=r"one of dfs, bfs, rr, batch:K, quantum"):
            Options.read(strategy=text)
    options = Options.read(strategy="Quantum:2")
    rig = Rig(strategy=options.strategy)
    source = rig.source("s")
    out = rig.sink(rig.add("b", Each(), rig.add("a", Each(), source)))
    rig.push(source, *((v, v) for v in range(5)))
    assert rig.run() == "X(a) X(a) X(b) X(b) exit X(a) X(a) X(b) X(b) exit X(a) X(b) exit"
    assert out.values == [*range(5)] and rig.graph.table()[0].transition == "Q-Source"


@pytest.mark.parametrize("path", TRANSCRIPTS, ids=lambda path: path.stem)
def test_answers_do_not_notice_a_strategy(installed: Path, path: Path) -> None:
    variant = Variant(options=(("strategy", "quantum:2"), ("page_rows", 1)), shards=2)
    outcome = run_text(path.read_text(), variant)
    assert outcome.passed, "\n".join(outcome.failures)


def test_a_name_for_this_process(folder: Path) -> None:
    SINKS.register("Kept", lambda options: make_sink("memory"))
    assert isinstance(make_sink("kept"), Sink) and "kept" in SINKS.names()
    with pytest.raises(OptionError, match="M6006: 'CSV' takes a built-in name"):
        SOURCES.register("CSV", lambda name, schema, options, required: None)
    with pytest.raises(OptionError, match=r"M6007: 'mine' does not fit into millstream.strategies"):
        STRATEGIES.register("mine", lambda forward, more, count, k: None)


def test_packages_that_clash_or_are_broken(folder: Path) -> None:
    names = Registry[str]("millstream.tests", {"own": "built in"}, fits=lambda thing: isinstance(thing, str))
    points = {"twice": "first_names:ONE", "one": "first_names:ONE", "number": "first_names:NUMBER"}
    install(folder, "first", {"millstream.tests": points}, first_names="ONE = 'one'\nNUMBER = 1\n")
    install(folder, "second", {"millstream.tests": {"TWICE": "no_names:TWO", "none": "no_names:TWO"}})
    assert names.get("ONE") == "one" and names.get("unheard") is None
    assert names.names() == ["own", "one", "none", "number", "twice"]
    for name, code, words in (
        (
            "twice",
            "M6006",
            r"several packages provide 'twice'\n.*'TWICE = .* of package 'second'.*'twice = .* of package 'first'",
        ),
        ("none", "M6007", r"'none = no_names:TWO' .* of package 'second' cannot be loaded\n .*No module named"),
        ("number", "M6007", r"'number = first_names:NUMBER' .* of package 'first' does not fit into .*\n .*It is 1"),
    ):
        with pytest.raises(OptionError, match=f"{code}: .*{words}"):
            names.get(name)
    install(folder, "third", {"millstream.tests": {"own": "first_names:ONE"}})
    assert names.get("own") == "built in"
    with pytest.raises(OptionError, match=r"M6006: .*'own = .* of package 'third' takes a built-in name"):
        names.get("unheard")


def test_a_broken_strategy_is_no_wrong_value(folder: Path) -> None:
    install(folder, "broken", {"millstream.strategies": {"broken": "no_strategies:NONE"}})
    with pytest.raises(OptionError, match=r"M6007: .*of package 'broken' cannot be loaded"):
        Options.read(strategy="broken")
    with pytest.raises(OptionError, match="M6007"):
        Graph().set_strategy("broken:3")
