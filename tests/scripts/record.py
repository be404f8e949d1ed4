"""A script run once in process: its transcript, with what was found in its `expect`, `late` and `state` blocks."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from millstream.ingest.lines import write_line
from millstream.testing.runner import LOCAL, Run, Variant
from millstream.testing.transcript import Count, Expect, Feed, File, Statement, Step, Tell, parse_transcript
from tests.scripts.answers import Answers


class Recorder(Run):
    def __init__(self, steps: list[Step], folder: Path) -> None:
        super().__init__(Variant(), LOCAL, steps, folder)
        self.found: list[str] = []
        self.answers = Answers()

    def _step(self, step: Step) -> None:
        if not isinstance(step, File | Statement):
            self.answers.drain()
        if isinstance(step, Statement):
            self._batch()
            for name in self.mill.queries:
                self._keep(name)
        emitted = {name: list(rows) for name, (rows, _) in self.untaken.items()}
        super()._step(step)
        if isinstance(step, Statement) and step.name is None:
            self.answers.statement(step.text, self.mill, emitted)
        elif isinstance(step, Statement):
            self.answers.query(step.name, step.text, self.mill)
        elif isinstance(step, Feed):
            self.answers.feed(step.stream, [line for _, line in step.elements], self.mill)
        elif isinstance(step, Tell):
            self.answers.feedback(step.query, step.text, self.mill.schema(step.query))
        elif isinstance(step, File):
            self.answers.file(step.name, step.lines)

    def _expect(self, step: Expect) -> None:
        rows, _ = self._output(step.query)
        self.answers.emitted(step.query, rows, self.mill.schema(step.query))
        self.found.append("\n".join([f"expect {step.query}", *map(write_line, rows)]))
        rows.clear()

    def _count(self, step: Count) -> None:
        number = self.mill.state_rows(step.name) if step.what == "state" else self.mill.counts(step.name)[step.what]
        if step.what in ("late", "bad"):
            self.answers.counted(step.name, step.what, number)
        self.found.append(f"{step.what} {step.name} {number}")


def recorded(blocks: list[str]) -> tuple[str, Answers]:
    """The transcript of a script, and the answers of the reference to compare with."""
    steps = parse_transcript("\n\n".join(blocks))
    with TemporaryDirectory() as folder:
        run = Recorder(steps, Path(folder))
        run.run(steps)
        LOCAL.close(run.mill)
    found = iter(run.found)
    filled = [next(found) if block.split()[0] in ("expect", "state", "late", "bad") else block for block in blocks]
    return "\n\n".join(filled) + "\n", run.answers
