"""References to Python code: what plans, logs and checkpoints hold of it. They never hold the code itself."""

from __future__ import annotations

from millstream.algebra.values import record


@record("python_reference")
class Reference:
    """A function or aggregate written in Python: its name in SQL, the module and qualified name of the code, and a
    digest of its source and its types.

    >>> print(Reference("inverse", "my_functions", "inverse", "4be0"))
    inverse (my_functions.inverse)
    """

    name: str
    module: str
    qualified: str
    digest: str

    @property
    def place(self) -> str:
        return f"{self.module}.{self.qualified}"

    def __str__(self) -> str:
        return f"{self.name} ({self.place})"
