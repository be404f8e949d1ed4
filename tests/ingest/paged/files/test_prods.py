"""Prods among the lines of text files: their places, however the files are cut."""

import json
from pathlib import Path

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from millstream.algebra.early import Prod
from millstream.algebra.schema import Schema, TimeKind
from millstream.algebra.types import Type
from millstream.ingest.paged import open_paged
from millstream.ingest.paged.files.cuts import cut
from millstream.ingest.paged.files.formats import File, FileSplit, Part
from millstream.ingest.paged.files.json import JsonFormat
from millstream.ingest.paged.files.prods import stretches
from millstream.ingest.paged.stretch import Stretch
from tests.tries import tries

SCHEMA = Schema.of(("ts", Type.BIGINT), ("k", Type.BIGINT), kind=TimeKind.EXTERNAL, time="ts")
LINES = st.one_of(st.integers(0, 99), st.sampled_from(["{}", "{k = 1}", "{ts <= 20}", "bad", "{ts <}"]))


def read(splits: list[FileSplit]) -> tuple[list[int | str], list[str], list[str]]:
    """Rows and prods in order, the numbers of the prods, and the bad rows."""
    order: list[int | str] = []
    numbers, bad = [], []
    for split in splits:
        for stretch, prods in stretches(split):
            order += map(str, prods)
            numbers += [prod.number for prod in prods]
            made = stretch.read(["ts"])
            assert isinstance(made.rows, pl.DataFrame)
            order += made.rows.get_column("ts").to_list()
            bad += made.bad.get_column("input").to_list()
    return order, numbers, bad


@settings(max_examples=tries(40), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(LINES, max_size=12), st.integers(1, 4))
def test_prods_keep_their_places_at_any_cut(tmp_path: Path, lines: list[int | str], number: int) -> None:
    path = tmp_path / "s.json"
    path.write_text(
        "".join(f"{json.dumps(each if isinstance(each, str) else {'ts': each, 'k': 1})}\n" for each in lines)
    )
    file = File(str(path), path.stat().st_size)
    format_ = JsonFormat(SCHEMA, ("ts",), prods=True)
    parts = cut([Part(file, 0, file.size)], number, format_.borders) if file.size else []
    order, numbers, bad = read([FileSplit(format_, part) for part in parts])
    assert order == [each for each in lines if each not in ("bad", "{ts <}")]
    assert len({*numbers}) == len(numbers) and bad == [json.dumps(each) for each in lines if each in ("bad", "{ts <}")]


def test_csv_lines(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("k,ts\n{ts = 3}\n1,1\nx,2\n {k = 1} \n2,3\n{z = 1}\n")
    (tmp_path / "b.csv").write_text("k,ts\n3,4\n{}\n")
    for on, expected in ((True, ["{ts = 3}", 1, "{k = 1}", 3, 4, "{}"]), (False, [1, 3, 4])):
        options = {"connector": "csv", "path": str(tmp_path), "prods": str(on).lower(), "once": "true"}
        source = open_paged("s", SCHEMA, options, ("ts",))
        splits = source.splits(source.start(), source.latest(source.start(), 0), 1)
        order, numbers, bad = read(splits)  # type: ignore[arg-type]
        assert order == expected and len({*numbers}) == len(numbers)
        assert bad == (["x,2", "{z = 1}"] if on else ["{ts = 3}", "x,2", " {k = 1} ", "{z = 1}", "{}"])
        again = read(splits)  # type: ignore[arg-type]
        assert again == (order, numbers, bad)


def test_a_stretch_is_a_value(tmp_path: Path) -> None:
    from millstream.algebra import values

    (tmp_path / "a.json").write_text('{"ts": 1, "k": 1}\n"{}"\n{"ts": 2, "k": 1}\n')
    file = File(str(tmp_path / "a.json"), (tmp_path / "a.json").stat().st_size)
    found = stretches(FileSplit(JsonFormat(SCHEMA, (), prods=True), (Part(file, 0, file.size),)))
    (first, none), (second, (prod,)) = found
    assert not none and isinstance(prod, Prod) and isinstance(second, Stretch)
    assert values.decode(values.encode(second)) == second
    assert [each.read(["ts"]).rows.rows() for each in (first, second)] == [[(1,)], [(2,)]]  # type: ignore[union-attr]


def test_parquet_has_none(tmp_path: Path) -> None:
    from millstream.errors import OptionError

    with pytest.raises(OptionError, match="prods"):
        open_paged("s", SCHEMA, {"connector": "parquet", "path": str(tmp_path), "prods": "true"}, ())
