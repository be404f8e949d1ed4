"""Registers Python functions and aggregates for the statements of a mill."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

from millstream.algebra.python.aggregate import define_aggregate
from millstream.algebra.python.definition import define_function
from millstream.algebra.python.library import registering
from millstream.control.mill.python_code import PythonCode
from millstream.logical.catalog import Catalog

if TYPE_CHECKING:
    from millstream.control.mill.base import Mill


class Registration:
    """The part of a mill that registers code."""

    catalog: Catalog

    @cached_property
    def python_code(self) -> PythonCode:
        """The code that queries refer to."""
        return PythonCode(cast("Mill", self))

    def function(self, code: Any = None, /, **options: Any) -> Any:
        """Register a scalar function; a decorator, with or without options. See `millstream.function`."""
        return registering(self.catalog.library, define_function, code, options)

    def aggregate(self, code: Any = None, /, **options: Any) -> Any:
        """Register an aggregate, a class; a decorator, with or without options. See `millstream.aggregate`."""
        return registering(self.catalog.library, define_aggregate, code, options)
