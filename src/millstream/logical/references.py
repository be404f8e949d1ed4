"""The Python code that a plan refers to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from millstream.algebra.python.reference import Reference
from millstream.algebra.values import fields_of


def references(held: Any) -> Iterator[Reference]:
    """Yield every reference to Python code inside a plan, an expression, or any other value made of dataclasses."""
    if isinstance(held, Reference):
        yield held
    elif isinstance(held, tuple):
        for item in held:
            yield from references(item)
    else:
        for name in fields_of(type(held)):  # type: ignore[arg-type]
            yield from references(getattr(held, name))
