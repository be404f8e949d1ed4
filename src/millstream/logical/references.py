"""The Python code that a plan refers to."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any

from millstream.algebra.python.reference import Reference


def references(held: Any) -> Iterator[Reference]:
    """Yield every reference to Python code inside a plan, an expression, or any other value made of dataclasses."""
    if isinstance(held, Reference):
        yield held
    elif isinstance(held, tuple):
        for item in held:
            yield from references(item)
    elif is_dataclass(held):
        for part in fields(held):
            yield from references(getattr(held, part.name))
