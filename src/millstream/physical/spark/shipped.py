"""Python code on its way to Spark's workers, as part of the job, in the way that PySpark sends functions: code of
`__main__` and of notebooks by value, code of modules by import."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pyspark import cloudpickle

from millstream.algebra.identity import digest
from millstream.algebra.python.code import provide
from millstream.algebra.python.definition import Definition
from millstream.algebra.python.reference import Reference
from millstream.algebra.python.source import source_of
from millstream.errors import BindError, PlanError, reason_of

_loaded: set[str] = set()
"""The digests of what this process has loaded."""


def pack(code: Mapping[Reference, Definition]) -> bytes:
    """Pickle code; raise BindError if a worker could not have it."""
    if not code:
        return b""
    packed = [(reference, *_packed(definition)) for reference, definition in code.items()]
    held: bytes = cloudpickle.dumps((packed, [entry for entry in sys.path if entry]))
    return held


def _packed(definition: Definition) -> tuple[bytes, str]:
    """A definition, pickled, and the digest of its source."""
    try:
        held: bytes = cloudpickle.dumps(definition)
    except Exception as error:
        reference = definition.reference
        hint = "it and all that it uses must be picklable; open files and connections inside the function"
        message = f"{definition.declaration.kind} '{reference.name}' cannot be sent to Spark's workers"
        raise BindError("M2112", message, detail=f"{reason_of(error)}.", hint=hint) from error
    return held, digest(source_of(definition.code))


def can_pack(definition: Definition) -> bool:
    try:
        _packed(definition)
    except BindError:
        return False
    return True


def load(held: bytes) -> None:
    """Make packed code available in this process, unless it is already."""
    key = digest(held)
    if not held or key in _loaded:
        return
    packed, paths = pickle.loads(held)
    sys.path += [entry for entry in paths if entry not in sys.path and Path(entry).exists()]
    provide({reference: _unpacked(reference, *parts) for reference, *parts in packed})
    _loaded.add(key)


def _unpacked(reference: Reference, held: bytes, source: str) -> Definition:
    try:
        definition: Definition = pickle.loads(held)
    except Exception as error:
        hint = f"module {reference.module} must be installed where Spark's workers run"
        message = f"the workers cannot import {reference.place}"
        raise PlanError("M3070", message, detail=f"{reason_of(error)}.", hint=hint) from error
    if _is_imported(definition.code) and digest(source_of(definition.code)) != source:
        hint = "restart the Spark session, or install the same version for all workers"
        raise PlanError("M3071", f"the workers have another version of {reference.place} than the driver", hint=hint)
    return definition


def _is_imported(code: Any) -> bool:
    """Return whether the code is that of a module of this process, not a copy."""
    found: Any = sys.modules.get(code.__module__)
    for part in code.__qualname__.split("."):
        found = getattr(found, part, None)
    return found is code
