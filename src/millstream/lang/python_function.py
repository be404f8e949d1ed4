"""A function of a query that the binder has found to be written in Python."""

from __future__ import annotations

from dataclasses import field

from millstream.lang import ast


class PythonFunction(ast.Function):
    """`declared` is its declaration in the catalog."""

    declared: object = field(default=None, compare=False, repr=False, kw_only=True)
