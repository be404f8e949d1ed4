"""What notebooks show of connections, queries, progress and printed answers."""

from __future__ import annotations

from typing import Any, get_type_hints

import millstream as ms
from millstream.control.observe.notebook import Text


class Printer:
    """Stands for IPython's, which hands over the text to print."""

    printed = ""

    def text(self, text: str) -> None:
        self.printed += text


def test_explain_and_show_are_shown_as_text() -> None:
    with ms.connect(local=True) as mill:
        assert mill.sql("CREATE STREAM s (k BIGINT) PUNCTUATED ON (k #)") is None
        for text in map(mill.sql, ("EXPLAIN SELECT k FROM s WHERE k < 3", "SHOW STREAMS")):
            assert isinstance(text, Text) and text == str(text)
            printer = Printer()
            text._repr_pretty_(printer, False)
            assert printer.printed == text
        assert mill.sql("EXPLAIN SELECT k FROM s WHERE k < 3")._repr_html_().count("&lt; 3") == 1
    assert get_type_hints(ms.Connection.sql)["return"] is ms.Query


def test_a_query_shows_its_statement_and_its_progress() -> None:
    with ms.connect(local=True) as mill:
        mill.sql('CREATE STREAM "a<b" (k BIGINT)')
        query: Any = mill.sql('SELECT k FROM "a<b"')
        assert not query.running and "not started" in query._repr_html_() and "<pre" not in query._repr_html_()
        query.start(name="mine")
        mill.insert("a<b", [(1,), (2,)])
        shown = query._repr_html_()
        assert query.running and "mine" in shown and "a&lt;b" in shown and "a<b" not in shown
        assert "<pre" in shown and query.progress()._repr_html_().startswith("<pre")
        shown = mill._repr_html_()
        assert "in this process" in shown and "<th" in shown and "mine" in shown and "a&lt;b" in shown
        assert query.take()._repr_html_()  # a Polars frame, which has its own
    assert not query.running and "(closed)" in mill._repr_html_() and "mine" in query._repr_html_()
