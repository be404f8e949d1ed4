"""The Python code that a mill's queries refer to, across restarts.

A checkpoint holds declarations only. Statements of the checkpoint are bound again by them, whatever is registered now;
before the queries resume, the program has to have registered the same code again, also if it is the same process.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from millstream.algebra.python.code import find_code, provide
from millstream.algebra.python.definition import Declaration, Definition
from millstream.algebra.python.library import Library
from millstream.algebra.python.reference import Reference
from millstream.errors import PlanError, advice
from millstream.logical.references import references

if TYPE_CHECKING:
    from millstream.control.mill.base import Mill
    from millstream.logical.plan import Plan

MISSING = (
    "register it before connect(), or connect(resume=False), register it, then mill.resume()",
    "--functions MODULE, with the module that registers it",
)
CHANGED = (
    "register it as it was; or mill.resume(changed=True) goes on with the new code; or DROP the query",
    "--keep goes on with the new code, --replace starts the query anew",
)


class PythonCode:
    def __init__(self, mill: Mill) -> None:
        self._mill = mill
        self._noted: dict[str, Declaration] = {}
        """The last declaration of each name in the journal."""
        self._accepted: dict[Reference, str] = {}
        """Digests of code that was accepted in place of the code of a reference."""
        self._held: dict[Reference, Definition] = {}
        """The code that statements of this mill refer to, since it was opened. It stays theirs, whatever is registered
        later."""
        self._replaying = False

    # --- the journal ------------------------------------------------------------------------------------------------

    def note(self, plan: Plan) -> None:
        """Note the declarations that a statement refers to, before the statement itself."""
        for reference in dict.fromkeys(references(plan)):
            if not self._replaying and (code := find_code(reference)) is not None:
                self._held[reference] = code
            declared = self._mill.catalog.library.find(reference.name)
            if declared is not None and declared.reference == reference and self._noted.get(declared.name) != declared:
                self._noted[declared.name] = declared
                self._mill.journal.note("python", declared)

    def replay(self, declared: Declaration) -> None:
        """Declare what the statements after this note refer to."""
        self._noted[declared.name] = declared
        self._mill.catalog.library.declare(declared)

    def replay_accepted(self, reference: Reference, digest: str) -> None:
        self._accepted[reference] = digest

    # --- resuming ---------------------------------------------------------------------------------------------------

    def check(self, *, changed: bool = False) -> None:
        """Find the code of all running queries; raise PlanError if some is missing, or has changed and `changed` is
        false."""
        missing, different = list[str](), list[str]()
        for query, reference in self._needed():
            registered = self._registered(reference)
            if registered is not None and (changed or registered.reference.digest == self._wanted(reference)):
                self._use(reference, registered)
            elif not self._is_held(reference):
                (missing if registered is None else different).append(self._described(reference, query))
        if missing:
            raise PlanError("M3070", f"{missing[0]} is not registered", detail=_others(missing), hint=advice(*MISSING))
        if different:
            message = f"{different[0]} has changed since the checkpoint was made"
            raise PlanError("M3071", message, detail=_others(different), hint=advice(*CHANGED))

    def changed(self) -> dict[str, str]:
        """The running queries whose code has changed, each with the code."""
        return {
            query: str(reference)
            for query, reference in self._needed()
            if not self._is_held(reference)
            and (registered := self._registered(reference)) is not None
            and registered.reference.digest != self._wanted(reference)
        }

    def _wanted(self, reference: Reference) -> str:
        """The digest of the code that is to run for a reference."""
        return self._accepted.get(reference, reference.digest)

    def _is_held(self, reference: Reference) -> bool:
        """Return whether this mill has the code that is to run, whatever is registered now."""
        held = self._held.get(reference)
        return held is not None and held.reference.digest == self._wanted(reference)

    def _needed(self) -> Iterator[tuple[str, Reference]]:
        for query in self._mill.queries.values():
            for reference in dict.fromkeys(references(query.plan)):
                yield query.name, reference

    def _registered(self, reference: Reference) -> Definition | None:
        declared = self._mill.catalog.library.find(reference.name)
        return None if declared is None else find_code(declared.reference)

    def _use(self, reference: Reference, registered: Definition) -> None:
        provide({reference: registered})
        self._held[reference] = registered
        if registered.reference.digest != self._wanted(reference):
            self._accepted[reference] = registered.reference.digest
            self._mill.journal.note("python", (reference, registered.reference.digest))

    def _described(self, reference: Reference, query: str) -> str:
        declared = self._noted.get(reference.name)
        return f"{'function' if declared is None else declared.kind} {reference} of query '{query}'"

    @contextmanager
    def replaying(self) -> Iterator[None]:
        """While the journal is replayed, names refer to what it declares, and to nothing else."""
        catalog = self._mill.catalog
        own, catalog.library = catalog.library, Library()
        self._replaying = True
        try:
            yield
        finally:
            catalog.library, self._replaying = own, False

    def share(self, other: PythonCode) -> None:
        """Take the code of another mill: what is registered there, and what its queries refer to."""
        self._mill.catalog.library, self._held = other._mill.catalog.library, {**other._held}


def _others(found: Iterable[str]) -> str:
    _, *others = found
    return f"The same holds for {', '.join(others)}." if others else ""
