"""SQL text to statements.

>>> parse_one("DROP QUERY hot")
Drop(kind='QUERY', name='hot', if_exists=False)
"""

from __future__ import annotations

from typing import Any

from millstream.errors import SqlSyntaxError
from millstream.lang import ast
from millstream.lang.cursor import Cursor
from millstream.lang.statements import script

__all__ = ["ast", "parse", "parse_one"]


def parse(text: str) -> list[ast.Statement]:
    """Parse the statements of a script, separated by semicolons; raise SqlSyntaxError with a position on a mistake."""
    given: Any = text
    if not isinstance(given, str):
        hint = "sql('SELECT …'), or sql(Path('queries.sql').read_text())"
        raise SqlSyntaxError("M1010", f"expected statements as text, found {type(text).__name__}", hint=hint)
    return script(Cursor(text))


def parse_one(text: str) -> ast.Statement:
    """Parse a text that is one statement."""
    found = parse(text)
    if len(found) != 1:
        line, column = (found[1].line, found[1].column) if found else (1, 1)
        raise SqlSyntaxError("M1010", f"expected one statement, found {len(found) or 'none'}", line=line, column=column)
    return found[0]
