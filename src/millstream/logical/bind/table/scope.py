"""Names inside a statement that writes a table: columns of the row, and columns of the tuple that drives it."""

from __future__ import annotations

from dataclasses import dataclass

from millstream.algebra.expression import Expression
from millstream.algebra.program.expression import Argument
from millstream.errors import BindError
from millstream.logical.bind.aggregate.scope import LocalScope


@dataclass(slots=True)
class StreamScope(LocalScope):
    """`stream` is the alias of the tuple. `strict`: a name that both have is ambiguous; otherwise it is the row's."""

    stream: str = ""
    strict: bool = True

    def _find(self, name: str, qualifier: str | None = None) -> Expression | None:
        own = LocalScope._find(self, name, qualifier) if qualifier != self.stream or self._names(qualifier) else None
        given = next((each for each in self.arguments if each.name == name), None)
        if qualifier not in (None, self.stream) or given is None:
            return own
        if own is None or isinstance(own, Argument) or qualifier == self.stream:
            return Argument(given.type, given.name)
        if self.strict:
            written = " or ".join(f"{each}.{name}" for each in (self.entries[0].name, self.stream))
            raise BindError("M2012", f"column '{name}' is ambiguous", hint=f"write {written}")
        return own

    def _names(self, qualifier: str | None) -> bool:
        return any(entry.name == qualifier for entry in self.entries)
