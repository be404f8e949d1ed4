"""`FEEDBACK q ~[k = 5]`: feedback to a running query; the pattern may also be written in quotes."""

from __future__ import annotations

from millstream.lang import ast
from millstream.lang.cursor import Cursor
from millstream.lang.tokens import Kind

SIGNS = ("~", "?", "!")


def feedback(cursor: Cursor) -> ast.FeedbackStatement:
    """Parse the statement behind its first word."""
    with cursor.like("FEEDBACK q ~[k = 5]"):
        query, token = cursor.name("the name of a query"), cursor.token
        if token.kind is Kind.STRING:
            return ast.FeedbackStatement(query, cursor.advance().text, ast.Constant(None, **token.place))
        if not cursor.at_symbol(*SIGNS) and not token.text.startswith(SIGNS):
            cursor.fail("feedback: ~[…], ?[…] or ![…]")
        while not cursor.ended and not cursor.at_symbol(";"):
            cursor.advance()
        text = cursor.text[token.start : cursor.previous.end]
    return ast.FeedbackStatement(query, text, ast.Constant(None, **token.place))
