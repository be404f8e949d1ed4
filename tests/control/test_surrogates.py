"""Text with half a surrogate pair, which no encoding has: a bad row or an error, and the connection goes on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pandas as pd
import pytest

import millstream as ms
from millstream.errors import MillstreamError

REASON = "column 'v': text is not valid Unicode: \\ud800 is half of a surrogate pair"


@pytest.fixture
def mill() -> Iterator[ms.Connection]:
    with ms.connect(local=True, contracts="off") as connection:
        connection.sql("CREATE STREAM s (k BIGINT, v VARCHAR); CREATE STREAM other (k BIGINT)")
        connection.sql("CREATE TABLE t (k BIGINT PRIMARY KEY, v VARCHAR)")
        connection.sql("CREATE QUERY q AS SELECT v, COUNT(*) AS n FROM s GROUP BY v EMIT EARLY")
        yield connection


INSERTED: list[tuple[Any, tuple[str, str]]] = [
    ([[2, "\ud800"]], ("2 | \\ud800", REASON)),
    ([{"k": 2, "v": "a\ud800"}], ("k = 2, v = a\\ud800", REASON)),
    (["2 | \ud800"], ("2 | \\ud800", REASON)),
    ([["\ud800", "a"]], ("\\ud800 | a", "column 'k': '\\ud800' is not a value of type BIGINT")),
    ([{"\ud800": 1}], ("\\ud800 = 1", "unknown column '\\ud800' (known: k, v)")),
    (pd.DataFrame({"k": [2, None], "v": ["\ud800", None]}), ("k = 2.0, v = \\ud800", REASON)),
]


@pytest.mark.parametrize(("rows", "bad"), INSERTED, ids=map(str, range(len(INSERTED))))
def test_a_bad_row(mill: ms.Connection, rows: Any, bad: tuple[str, str]) -> None:
    found, good = mill.sql("SELECT input, reason FROM s__bad").start(), mill.sql("SELECT k FROM other").start()
    mill.insert("s", rows)
    mill.insert("other", [[1]])
    assert found.take().select("input", "reason").rows() == [bad]
    assert good.take().get_column("k").to_list() == [1]


def test_values_of_several_types_in_a_column_of_pandas(mill: ms.Connection) -> None:
    query = mill.sql("SELECT k, v FROM s").start()
    mill.insert("s", pd.DataFrame({"k": [1, 2], "v": ["a", 5]}))
    assert query.take().select("k", "v").rows() == [(1, "a"), (2, "5")]


CALLS: list[tuple[Callable[[ms.Connection], Any], str]] = [
    (lambda mill: mill.insert("t", [[1, "\ud800"]]), "M2095: row 1 does not fit table 't'"),
    (lambda mill: mill.insert("\ud800", []), "M2002: unknown stream '\\ud800'"),
    (lambda mill: mill.sql("SELECT '\ud800' FROM s"), "M1002: the text is not valid Unicode: \\ud800 is half of"),
    (lambda mill: mill.punctuate("s", "[*, '\ud800']"), "M4007: column 'v': text is not valid Unicode: \\ud800"),
    (lambda mill: mill.query("q").feedback("~[v = '\ud800']"), "M4007: column 'v': text is not valid Unicode: \\ud800"),
    (lambda mill: mill.query("q").prod("{v = '\ud800'}"), "M4007: column 'v': text is not valid Unicode: \\ud800"),
    (lambda mill: mill.query("\ud800"), "M2092: unknown query '\\ud800'"),
]


@pytest.mark.parametrize(("call", "said"), CALLS, ids=map(str, range(len(CALLS))))
def test_an_error(mill: ms.Connection, call: Callable[[ms.Connection], Any], said: str) -> None:
    with pytest.raises(MillstreamError) as caught:
        call(mill)
    assert str(caught.value).startswith(said)
    mill.insert("s", [[1, "a"]])
