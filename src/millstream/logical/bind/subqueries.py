"""Subqueries inside the expressions of a continuous query, which has none: only queries over tables do."""

from __future__ import annotations

from millstream.errors import PlanError
from millstream.lang import ast
from millstream.lang.aggregate import ast as body


def refuse_subqueries(node: ast.Node) -> None:
    """Raise PlanError at the first subquery of an expression; those of FROM are queries of their own."""
    if isinstance(node, ast.Source):
        return
    if isinstance(node, body.Subquery | body.InQuery | body.Exists):
        exists = isinstance(node, body.Exists)
        what, it = ("EXISTS", "the subquery") if exists else ("a subquery inside an expression", "it")
        place = node.place if exists else node.query.place
        message = f"{what}: not available in a continuous query"
        raise PlanError("M1090", message, hint=f"put {it} in FROM and join with it", **place)
    for child in node.children():
        refuse_subqueries(child)
