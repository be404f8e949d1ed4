"""The runner of transcripts, with variants that must not change results: page cuts, batch cuts, shards, restarts."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import repeat
from pathlib import Path
from typing import Any, Protocol

from millstream import scratch
from millstream.algebra.punctuation.pattern import parse_pattern
from millstream.algebra.schema import Schema
from millstream.config import Options
from millstream.control.job.jobs import LocalJobs
from millstream.control.mill import LocalMill
from millstream.control.mill.base import Mill
from millstream.control.observe.counted import paced
from millstream.errors import MillstreamError, OptionError
from millstream.ingest.lines import parse_line
from millstream.lang import ast, parse
from millstream.testing.compare import Row, difference, same_row, show
from millstream.testing.files import Files
from millstream.testing.transcript import (
    Advance,
    Count,
    Expect,
    Feed,
    File,
    Prod,
    Restart,
    Rows,
    Statement,
    Step,
    Tell,
    TranscriptError,
    parse_transcript,
)


@dataclass(frozen=True, slots=True)
class Variant:
    """A variant of a run. `cut`: elements per batch: "" (all), a number, or "random:SEED"; `restart`: restart from the
    checkpoint after every batch."""

    shards: int = 1
    cut: str = ""
    restart: bool = False
    options: tuple[tuple[str, Any], ...] = ()

    def sizes(self) -> Iterator[int]:
        """Return the numbers of elements per batch, an endless sequence."""
        kind, _, seed = self.cut.partition(":")
        if kind == "random":
            draw = random.Random(seed)
            return (draw.randint(1, 6) for _ in repeat(None))
        return repeat(int(kind) if kind else 1 << 60)


def check_cut(cut: str) -> str:
    """Return the cut; raise OptionError if it is malformed."""
    if not re.fullmatch(r"|[1-9]\d*|random:\d+", cut):
        raise OptionError("M6010", f"--cut cannot be '{cut}'", hint="a number of elements, or random:SEED")
    return cut


@dataclass(slots=True)
class Outcome:
    name: str
    failures: list[str] = field(default_factory=list)

    @property
    def passed(self) -> bool:
        return not self.failures


class Failure(Exception):
    """An expectation that does not hold."""


class Host(Protocol):
    """A host of mills. `restart` stops a mill and resumes it from its checkpoint."""

    def open(self, options: Options) -> Mill: ...
    def restart(self, mill: Mill) -> Mill: ...
    def close(self, mill: Mill) -> None: ...


class LocalHost:
    """A host in this process. Without `cached` every batch reads its state back."""

    def __init__(self, *, cached: bool = True) -> None:
        self._cached = cached

    def open(self, options: Options) -> LocalMill:
        return LocalMill(options, jobs=LocalJobs(shards=options.shards, cached=self._cached))

    def restart(self, mill: Mill) -> LocalMill:
        assert isinstance(mill, LocalMill)
        return mill.restarted()

    def close(self, mill: Mill) -> None:
        mill.close()


LOCAL = LocalHost()


def run_paths(
    paths: Iterable[Path], variant: Variant, report: Callable[[Outcome], None] = lambda _: None
) -> list[Outcome]:
    """Run the files among the paths and every `*.transcript` file below them, in the order of their names."""
    outcomes = []
    for path in transcripts(paths):
        outcomes.append(run_path(path, variant))
        report(outcomes[-1])
    return outcomes


def run_path(path: Path, variant: Variant, host: Host = LOCAL) -> Outcome:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        return Outcome(str(path), [f"cannot be read as UTF-8 text: {error}"])
    return run_text(text, variant, str(path), host)


def transcripts(paths: Iterable[Path]) -> list[Path]:
    found: list[Path] = []
    for path in paths:
        if not path.exists():
            raise OptionError("M6021", f"no such file or folder: {path}")
        below = sorted(path.rglob("*.transcript")) if path.is_dir() else [path]
        if not below:
            raise OptionError("M6021", f"no file of {path} ends in .transcript")
        found += below
    return found


def run_text(text: str, variant: Variant | None = None, name: str = "transcript", host: Host = LOCAL) -> Outcome:
    """Run one transcript to its end or its first failure."""
    outcome = Outcome(name)
    try:
        steps = parse_transcript(text)
        with scratch.temporary() as folder:
            run = Run(variant or Variant(), host, steps, folder)
            try:
                run.run(steps)
            finally:
                host.close(run.mill)
    except (Failure, MillstreamError) as error:
        outcome.failures.append(str(error))
    except Exception as error:
        outcome.failures.append(f"crashed: {type(error).__name__}: {error}")
    return outcome


class Run:
    def __init__(self, variant: Variant, host: Host, steps: list[Step], folder: Path) -> None:
        self.variant, self.host = variant, host
        texts = [step.text for step in steps if isinstance(step, Statement)]
        self.files = Files(folder, texts, (lambda: next(self.sizes)) if variant.cut else None)
        self.mill = host.open(Options.read(**{"shards": variant.shards, "contracts": "off", **dict(variant.options)}))
        self.sizes = variant.sizes()
        self.room = next(self.sizes)
        self.untaken: dict[str, tuple[list[Row], list[str]]] = {}
        self.looks = 0
        """Steps in a row that only look. The first one lets waiting work be done; behind the second nothing changes."""

    def run(self, steps: list[Step]) -> None:
        for step in steps:
            try:
                self._step(step)
            except TranscriptError:
                raise
            except MillstreamError as error:
                raise Failure(f"line {step.line}: {error}") from error
        self._batch()
        self.mill.drain()
        for name in {*self.mill.queries, *self.untaken}:
            rows, _ = self._output(name)
            if rows:
                listed = "\n".join(f"    {show(row)}" for row in rows[:10])
                raise Failure(f"query '{name}' emitted {len(rows)} rows that no expect took:\n{listed}")

    def _step(self, step: Step) -> None:
        self.looks = self.looks + 1 if isinstance(step, Expect | Count | Rows) else 0
        if not isinstance(step, Feed | File):
            self._batch()
        if not isinstance(step, File | Statement):
            self.mill.drain()
        match step:
            case File():
                self.files.write(step.name, step.lines)
            case Feed():
                self._feed(step)
            case Statement():
                self._statement(step)
            case Expect():
                self._expect(step)
            case Rows():
                self._rows(step)
            case Count():
                self._count(step)
            case Restart():
                self._restart()
            case Advance():
                self.mill.advance(step.micros)
            case Tell():
                self.mill.feedback(step.query, step.text)
            case Prod():
                self.mill.prod(step.query, step.text)

    def _batch(self) -> None:
        self.mill.batch()
        self.room = next(self.sizes)
        if self.variant.restart and self.looks <= 2:
            self._restart()

    def _restart(self) -> None:
        for name in self.mill.queries:
            self._keep(name)
        before, self.mill = self.mill, self.host.restart(self.mill)
        for name, query in before.queries.items():  # a batch may have come after they were asked
            self.untaken[name][0].extend(query.output.take_rows().rows())
            schema = query.plan.schema
            self.untaken[name][1].extend(pattern.format(schema) for pattern in query.output.take_punctuations())

    def _statement(self, step: Statement) -> None:
        try:
            if step.name is None:
                for name in list(self.mill.queries):
                    self._keep(name)
                self.mill.execute(self.files.resolved(step.text))
            else:
                self.mill.add_query(step.name, self.files.resolved(step.text))
        except MillstreamError as error:
            if step.error is None:
                raise
            if not re.search(step.error, str(error), re.IGNORECASE):
                raise Failure(f"line {step.line}: expected an error matching '{step.error}', got: {error}") from error
            return
        if step.error is not None:
            raise Failure(f"line {step.line}: expected an error matching '{step.error}', but it succeeded")

    def _feed(self, step: Feed) -> None:
        for _, line in step.elements:
            self.mill.feed_line(step.stream, line)
            self.room -= 1
            if self.room <= 0:
                self._batch()
        if not step.elements:
            self.mill.counts(step.stream)

    def _keep(self, name: str) -> None:
        """Collect the results of a query, to keep them over a restart."""
        rows, patterns = self.untaken.setdefault(name, ([], []))
        rows += self.mill.take_rows(name).rows()
        schema = self.mill.schema(name)
        patterns += [pattern.format(schema) for pattern in self.mill.take_punctuations(name)]

    def _output(self, name: str) -> tuple[list[Row], list[str]]:
        if name in self.mill.queries or name not in self.untaken:
            self.mill.query(name)
            self._keep(name)
        return self.untaken[name]

    def _expect(self, step: Expect) -> None:
        rows, patterns = self._output(step.query)
        schema = self.mill.schema(step.query)
        if step.punctuation:
            expected: list[Row] = [(parse_pattern(text, schema).format(schema),) for _, text in step.rows]
            _compare(step, f"expect {step.query}", expected, [(text,) for text in patterns], ordered=False)
            patterns.clear()
        else:
            expected = [_expected_row(at, text, schema) for at, text in step.rows]
            _compare(step, f"expect {step.query}", expected, rows, ordered=step.ordered and self.variant.shards == 1)
            rows.clear()

    def _rows(self, step: Rows) -> None:
        (statement,) = parse(step.text)
        assert isinstance(statement, ast.SelectStatement)
        schema, found = self.mill.written.once(statement.select)
        expected = [_expected_row(at, text, schema) for at, text in step.rows]
        _compare(step, "rows", expected, found.rows(), ordered="order by" in step.text.lower())

    def _count(self, step: Count) -> None:
        if step.what == "state":
            found = self.mill.state_rows(step.name)
        elif step.what == "dropped":
            found = paced(self.mill, step.name)
        else:
            found = self.mill.counts(step.name)[step.what]
        if found != step.number:
            raise Failure(f"line {step.line}: {step.what} of '{step.name}' is {found}, expected {step.number}")


def _expected_row(line: int, text: str, schema: Schema) -> Row:
    try:
        return tuple(parse_line(text, schema))
    except ValueError as error:
        raise Failure(f"line {line}: '{text}' is not a row of {schema}: {error}") from error


def _compare(step: Step, what: str, expected: list[Row], found: list[Row], *, ordered: bool) -> None:
    """Raise Failure if they differ. `ordered`: in the order of the rows too, which only the rows of one shard have."""
    if ordered:
        if len(expected) == len(found) and all(map(same_row, expected, found)):
            return
        listed = [f"  expected: {show(row)}" for row in expected] + [f"  found:    {show(row)}" for row in found]
        if not difference(expected, found)[0] and len(expected) == len(found):
            listed.insert(0, "  the rows are right, their order is not")
    else:
        missing, extra = difference(expected, found)
        if not missing and not extra:
            return
        listed = [f"  missing: {show(row)}" for row in missing] + [f"  extra:   {show(row)}" for row in extra]
    raise Failure(f"line {step.line}: {what}\n" + "\n".join(listed))
