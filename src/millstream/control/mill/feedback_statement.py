"""The statement `FEEDBACK q ~[…]`. It runs once: a file that is resumed does not send it again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.algebra.feedback import parse_feedback
from millstream.control.mill.feedback import send_feedback
from millstream.lang import ast

if TYPE_CHECKING:
    from millstream.control.mill.base import Mill


def run_feedback(mill: Mill, statement: ast.FeedbackStatement) -> None:
    """Send the feedback of a statement."""
    name = mill.query(statement.query).name
    with statement.where.placing():
        send_feedback(mill, name, statement.feedback)
    mill.journal.ran(statement.text)


def check_feedback(mill: Mill, statement: ast.FeedbackStatement) -> None:
    """Raise the error that the statement would raise."""
    schema = mill.schema(statement.query)
    with statement.where.placing():
        parse_feedback(statement.feedback, schema)
