"""One user-defined aggregate of a query, under the names of its result columns."""

from __future__ import annotations

from millstream.algebra.aggregate.row_call import RowCall
from millstream.algebra.frame import Frame
from millstream.algebra.program.program import Program
from millstream.algebra.schema import Attribute
from millstream.algebra.values import record


@record("program_call")
class ProgramCall(RowCall):
    """The versions of an aggregate, over input columns. At least one version is there."""

    name: str
    arguments: tuple[str, ...]
    base: Program | None = None
    window: Program | None = None

    @property
    def program(self) -> Program:
        """The version that declares arguments and results, which both versions share."""
        found = self.window or self.base
        assert found is not None
        return found

    @property
    def function(self) -> str:
        return self.program.name

    @property
    def collects(self) -> bool:
        return self.base is None and self.program.reads_window

    def remembers(self, frame: Frame) -> bool:
        """A base version that is computed for the whole frame keeps nothing; nor does one for each of its panes."""
        panes = self.window is not None and self.window.algebraic and frame.slots is not None
        anew = self.base is not None and (self.window is None or frame.tumbles or panes)
        return not anew or self.program.ignore_nulls

    @property
    def outputs(self) -> tuple[Attribute, ...]:
        results = self.program.results
        if len(results) == 1:
            return (Attribute(self.name, results[0].type),)
        return tuple(Attribute(f"{self.name}_{result.name}", result.type) for result in results)

    def __str__(self) -> str:
        return f"{self.program.name}({', '.join(self.arguments)}) AS {self.name}, compiled"
