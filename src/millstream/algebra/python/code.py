"""The Python code that this process has, by reference.

On the driver it is what the program has registered. In Spark's workers it is what the driver has sent with the job
(`physical/spark/shipped.py`). A running operator looks its code up for every page, so code that replaces another one
takes effect at once.
"""

from __future__ import annotations

from collections.abc import Mapping

from millstream.algebra.python.definition import Definition
from millstream.algebra.python.reference import Reference
from millstream.errors import PlanError, advice

_CODE: dict[Reference, Definition] = {}


def provide(code: Mapping[Reference, Definition]) -> None:
    """Make code available under these references."""
    _CODE.update(code)


def find_code(reference: Reference) -> Definition | None:
    return _CODE.get(reference)


def code_of(reference: Reference) -> Definition:
    """Return the code of a reference; raise PlanError if this process does not have it."""
    found = _CODE.get(reference)
    if found is None:
        hint = advice(
            f"register {reference.place} again, before its queries run",
            f"--functions MODULE, with the module that registers {reference.place}",
        )
        raise PlanError("M3070", f"the Python code of '{reference.name}' is not registered", hint=hint)
    return found
