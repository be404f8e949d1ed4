"""Files as they come: each oddity is a row, a bad row with its reason and line, or an error that names the file; for
streams and tables alike."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from millstream.control.mill.local import LocalMill
from millstream.errors import MillstreamError

CSV = b"k,note\n1,a\n"
Files = dict[str, bytes | pl.DataFrame]


def frame(**columns: Any) -> pl.DataFrame:
    return pl.DataFrame(columns)


def declared(folder: Path, files: Files, connector: str, path: str, kind: str) -> str:
    for name, data in files.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data) if isinstance(data, bytes) else data.write_parquet(file)
    once = ", once = true" if kind == "STREAM" else ""
    place = f"connector = '{connector}', path = '{folder / path}'{once}"
    return f"CREATE {kind} s (k BIGINT, note VARCHAR) WITH ({place})"


ROWS: list[tuple[str, str, Files, list[tuple[Any, ...]], list[str]]] = [
    ("empty", "csv", {"a": b""}, [], []),
    ("blank lines", "csv", {"a": b"\n\r\n\n"}, [], []),
    ("header only", "csv", {"a": b"k,note"}, [], []),
    ("byte order mark", "csv", {"a": b"\xef\xbb\xbf" + CSV}, [(1, "a")], []),
    ("CRLF", "csv", {"a": b'k,note\r\n1,"a\r\nb"\r\n'}, [(1, "a\r\nb")], []),
    ("other columns", "csv", {"a": b"z,k,note,z\n,1,a,\n"}, [(1, "a")], []),
    ("a name in two spellings", "csv", {"a": b"K,k,note\n0,1,a\n"}, [(1, "a")], []),
    (
        "line numbers",
        "csv",
        {"a": b'k,note\n\n1,"a\nb"\nx,c\n'},
        [(1, "a\nb")],
        ["'x' is not a value .* (line 5 of a)"],
    ),
    ("too few", "csv", {"a": CSV + b"2\n"}, [(1, "a")], ["expected 2 values, found 1 (line 3 of a)"]),
    ("too many", "csv", {"a": CSV + b"2,b,c\n"}, [(1, "a")], ["expected 2 values, found 3 (line 3 of a)"]),
    ("NUL", "csv", {"a": CSV + b"2,\x00\n3\x00,c\n"}, [(1, "a"), (2, "\x00")], ["'3\\x00' is not a value"]),
    ("no UTF-8", "csv", {"a": CSV + b"2,\xff\n"}, [(1, "a")], ["the line is not UTF-8 (line 3 of a)"]),
    ("no UTF-8 beside", "csv", {"a": b"k,note,z\n1,a,\xff\n"}, [], ["the line is not UTF-8 (line 2 of a)"]),
    (
        "long",
        "csv",
        {"a": CSV + b"2," + b"x" * 10**6 + b"\n" + b"9" * 10**5 + b",c\n"},
        [(1, "a"), (2, "x" * 10**6)],
        ["is out of range for BIGINT (line 4 of a)"],
    ),
    ("hidden", "csv", {"a": CSV, ".b": b"x", "_c": b"x", "d.tmp": b"x", ".e/f": b"x", "g/h": CSV}, [(1, "a")] * 2, []),
    (
        "twice",
        "json",
        {"a": b'{"k": 1, "k": 2}\n{"k": 3, "K": 4}'},
        [(3, None)],
        ["'k' is given 2 times (line 1 of a)"],
    ),
    ("array", "json", {"a": b'[{"k": 1},\n{"k": 2}]'}, [], ["malformed JSON: ", "malformed JSON: "]),
    ("deep", "json", {"a": b'{"k": 1}\n' + b'{"k":' * 9000}, [(1, None)], ["malformed JSON: "]),
    (
        "long integer",
        "json",
        {"a": b'{"k": 1}\n{"k": ' + b"9" * 9000 + b"}"},
        [(1, None)],
        ["is out of range for BIGINT"],
    ),
    ("beside", "json", {"a": b'{"k": 1, "z": 1e400}\n{"k": 2, "z": {"k": 3}}'}, [(1, None), (2, None)], []),
    (
        "control",
        "json",
        {"a": b'{"note": "\\u0000"}\n{"note": "\x00"}'},
        [(None, "\x00")],
        ["malformed JSON: .* (line 2 of a)"],
    ),
    ("byte order mark", "json", {"a": b'\xef\xbb\xbf{"k": 1}\r\n\r\n{"k": 2}'}, [(1, None), (2, None)], []),
    (
        "texts",
        "parquet",
        {"a": frame(k=["1", "two"], note=["a", "b"])},
        [(1, "a")],
        ["'two' is not a value .* (row 2 of a)"],
    ),
    ("no rows", "parquet", {"a": frame(k=[1], note=["a"]).clear()}, [], []),
    ("gzip", "csv", {"a.gz": gzip.compress(CSV), "b": CSV}, [(1, "a"), (1, "a")], []),
    (
        "gzip",
        "json",
        {"a": gzip.compress(b'{"k": 1}\n') + gzip.compress(b'\n{"k": "x"}\n{"k": 2}')},
        [(1, None), (2, None)],
        ["column 'k': 'x' .* (line 3 of a)"],
    ),
    ("spellings", "parquet", {"a": frame(K=[0], k=[1], Note=["a"])}, [(1, "a")], []),
]


@pytest.mark.parametrize("kind", ["STREAM", "TABLE"])
@pytest.mark.parametrize(
    ("connector", "files", "rows", "reasons"), [row[1:] for row in ROWS], ids=[f"{row[1]} {row[0]}" for row in ROWS]
)
def test_rows_and_bad_rows(
    tmp_path: Path, connector: str, files: Files, rows: list[tuple[Any, ...]], reasons: list[str], kind: str
) -> None:
    mill = LocalMill()
    mill.execute(declared(tmp_path, files, connector, "", kind))
    if kind == "STREAM":
        mill.execute("CREATE QUERY q AS SELECT k, note FROM s; CREATE QUERY b AS SELECT reason FROM s__bad")
        mill.drain()
        found = [reason for (reason,) in mill.take_rows("b").rows()]
        assert len(found) == len(reasons)
        for reason, part in zip(found, reasons, strict=True):
            head, _, tail = part.partition(" .* ")
            assert head in reason and tail in reason
    assert (mill.take_rows("q") if kind == "STREAM" else mill.tables["s"]).rows() == rows
    assert mill.counts("s") == {"accepted": len(rows), "late": 0, "bad": len(reasons)}


ERRORS: list[tuple[str, str, Files, str, str]] = [
    ("gzip cut", "csv", {"a": gzip.compress(CSV * 9)[:-9]}, "", r"M5003: cannot read file (.|\n)* must appear whole"),
    ("gzip and more", "csv", {"a": gzip.compress(CSV) + b"more"}, "", r"M5003: (.|\n)* other bytes behind its end"),
    ("gzip broken", "json", {"a": b"\x1f\x8b\x08" + bytes(40)}, "", "M5003: cannot read file '.*'"),
    ("parquet in gzip", "csv", {"a": gzip.compress(b"PAR1....")}, "", "M5046: file '.*' is a parquet file"),
    ("gzip", "parquet", {"a": gzip.compress(CSV)}, "", "M5046: file '.*' is compressed .gzip., not a parquet file"),
    ("zstd later", "csv", {"a": CSV, "b": b"\x28\xb5\x2f\xfd...."}, "", "M5046: file '.*/b' is compressed .zstd."),
    ("zip", "csv", {"a": b"PK\x03\x04..."}, "", "M5046: file '.*' is compressed .zip."),
    ("UTF-16", "csv", {"a": CSV.decode().encode("utf-16")}, "", "M5046: file '.*' is UTF-16"),
    ("parquet", "csv", {"a": frame(k=[1], note=["a"])}, "", "M5046: file '.*' is a parquet file"),
    ("csv", "parquet", {"a": CSV}, "", "M5046: file .* is not a parquet file"),
    ("no bytes", "parquet", {"a": b""}, "", "M5003: cannot read file"),
    ("twice", "csv", {"a": b"k,note,k\n"}, "", "M5045: file '.*' has the column 'k' 2 times"),
    (
        "twice",
        "parquet",
        {"a": frame(k=[1], NOTE=["a"], Note=["a"])},
        "",
        "M5045: file '.*' has the column 'note' 2 times",
    ),
    ("missing", "csv", {"a": b"k,notes\n"}, "", "M5041: file '.*' has no column 'note'"),
    ("no header", "csv", {"a": b"1,x\n2,y\n"}, "", r"M5041: file '.*' has no column 'k'(.|\n)*header = 'false'"),
    (
        "semicolons",
        "csv",
        {"a": b"K;NOTE;TS\n1;x;2\n"},
        "",
        r"M5041: file '.*' has no column 'k'(.|\n)*delimiter = ';'",
    ),
    (
        "tabs",
        "csv",
        {"a": b"k\tnote\tts\n1\tx\t2\n"},
        "",
        r"M5041: file '.*' has no column 'k'(.|\n)*delimiter = 'tab'",
    ),
    ("missing", "parquet", {"a": frame(k=[1])}, "", "M5041: file '.*' has no column 'note'"),
    ("no table", "csv", {"a": CSV, "README": b"# Read me\n"}, "", "M5041: file '.*README' has no column 'k'"),
    ("quote", "csv", {"a": b'k,"note\n'}, "", "M5003: cannot read file"),
    ("type", "parquet", {"a": frame(k=[True], note=["a"])}, "", "M5043: column 'k' of file '.*' is bool"),
]


@pytest.mark.parametrize("kind", ["STREAM", "TABLE"])
@pytest.mark.parametrize(
    ("connector", "files", "path", "said"), [row[1:] for row in ERRORS], ids=[f"{row[1]} {row[0]}" for row in ERRORS]
)
def test_errors_name_the_file(tmp_path: Path, connector: str, files: Files, path: str, said: str, kind: str) -> None:
    mill = LocalMill()
    with pytest.raises(MillstreamError, match=said):
        mill.execute(declared(tmp_path, files, connector, path, kind))
        mill.execute("CREATE QUERY q AS SELECT k, note FROM s")
        mill.drain()


@pytest.mark.parametrize("ending", ["BZ2", "bz2", "zst", "xz", "zip", "lz4"])
def test_a_path_of_compressed_files_is_refused_by_create(tmp_path: Path, ending: str) -> None:
    with pytest.raises(MillstreamError, match=r"M5046: path '.*' is compressed"):
        LocalMill().execute(declared(tmp_path, {}, "csv", f"*.csv.{ending}", "STREAM"))
