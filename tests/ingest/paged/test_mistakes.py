"""Mistakes that a file source refuses: wrong options and paths, files that do not fit or change."""

from __future__ import annotations

import pickle
from pathlib import Path

import polars as pl
import pytest

from millstream.errors import InputError, MillstreamError, OptionError
from millstream.ingest.paged.base import open_paged
from tests.ingest.paged.files.test_files import READINGS, batches, numbered, opened, write


def refused(tmp_path: Path, **options: str) -> MillstreamError:
    with pytest.raises(MillstreamError) as caught:
        open_paged("readings", READINGS, {"connector": "csv", "path": str(tmp_path)} | options, ["ts"])
    return pickle.loads(pickle.dumps(caught.value))


def test_mistakes_are_named(tmp_path: Path) -> None:
    for options, kind, words in (
        ({"connector": "parket"}, InputError, "M5002: unknown connector 'parket'.*\n.*did you mean 'parquet'?"),
        ({"path": ""}, InputError, "M5001: the connector 'csv' of stream 'readings' needs a path"),
        ({"path": str(tmp_path / "no")}, InputError, "M5040: there is no file or folder '.*no'"),
        ({"path": str(tmp_path / "no" / "*.csv")}, InputError, "M5040"),
        ({"spede": "2"}, OptionError, "M6001: unknown option 'spede'\n.*did you mean 'speed'?"),
        ({"speed": "fast"}, OptionError, "M6002: option 'speed' cannot be 'fast': max, or a number"),
        ({"speed": "0"}, OptionError, "M6002: .*above 0"),
        ({"max_rows_per_trigger": "0"}, OptionError, "M6002: option 'max_rows_per_trigger' cannot be '0'"),
        ({"once": "perhaps"}, OptionError, "M6002: option 'once'"),
        ({"delimiter": "||"}, OptionError, "M6002: option 'delimiter' cannot be '||': one ASCII character"),
        ({"connector": "json", "delimiter": ";"}, OptionError, "M6001"),
    ):
        error = refused(tmp_path, **options)
        assert isinstance(error, kind)
        with pytest.raises(kind, match=words.replace("|", r"\|").replace("?", r"\?")):
            raise error


@pytest.mark.parametrize("connector", ["parquet", "csv"])
def test_a_missing_column_is_named_with_its_file(tmp_path: Path, connector: str) -> None:
    path = tmp_path / f"a.{connector}"
    write(path, numbered(0, 2).rename({"note": "notes"}))
    with pytest.raises(InputError, match=rf"M5041: file '{path}' has no column 'note'\n.*did you mean 'notes'\?"):
        opened(tmp_path, connector)


def test_nested_columns_and_damaged_files_are_refused(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", numbered(0, 2).with_columns(note=pl.concat_list("k")))
    with pytest.raises(InputError, match=r"M5043: column 'note' of file '.*' is .*list.* cannot become VARCHAR"):
        opened(tmp_path)
    (tmp_path / "a.parquet").write_text("nonsense")
    with pytest.raises(InputError, match=r"M5046: file .* is not a parquet file"):
        opened(tmp_path)


def test_a_file_that_changes_or_disappears_is_noticed(tmp_path: Path) -> None:
    write(tmp_path / "a.csv", numbered(0, 2))
    source = opened(tmp_path, "csv")
    [(start, end)] = batches(source)
    with (tmp_path / "a.csv").open("a") as file:
        file.write("7,more,8\n")
    with pytest.raises(InputError, match=r"M5042: file .* has changed since it was listed"):
        source.splits(start, end, 1)[0].read()
    (tmp_path / "a.csv").unlink()
    with pytest.raises(InputError, match="M5003: cannot read file"):
        source.splits(start, end, 1)[0].read()


def test_a_batch_ends_at_the_offset_of_the_source(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", numbered(0, 5))
    source = opened(tmp_path, max_rows_per_trigger=2)
    made = list(batches(source))
    assert source.splits(made[0][1], made[0][1], 4) == []
    with pytest.raises(InputError, match="M5044"):
        source.splits(made[0][0], made[1][1], 1)
