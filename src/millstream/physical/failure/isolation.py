"""One query's failure is its own: a query that fails in a batch of a shard is taken out, and the others go on.

An operator takes its input from buffers, and its readers have buffers of their own. So when it raises, the operators of
other queries have what they need: the queries that share the operator are removed, and the graph runs on. The shard
reports them. Given the same input, a repeated batch fails in the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial

from millstream.errors import MillstreamError, OperatorError, ResultOutOfRange, reason_of
from millstream.physical.failure.description import FAULTS, HINT, queries_of, source_failure
from millstream.physical.failure.failing_row import Event, find_failing_row
from millstream.physical.failure.transport import as_text
from millstream.physical.shard.host import ShardHost
from millstream.physical.wire.records import StartQuery


class Isolation:
    """Runs the steps of a batch. `fresh`: the shard as it was before the batch; None: it is not known. `events`: the
    input of the batch."""

    def __init__(
        self, host: ShardHost, fresh: Callable[[], ShardHost] | None, events: Callable[[], Sequence[Event]]
    ) -> None:
        self._host, self._fresh, self._events = host, fresh, events
        self.failed: dict[str, str] = {}
        """The queries taken out, each with its error as text."""

    def run(
        self, step: Callable[[], object], *, starts: str | None = None, reads: str | None = None, again: bool = False
    ) -> None:
        """Run a step; take out the queries that fail in it. `starts`: the query that the step starts; `reads`: the
        stream that it reads; `again`: repeat the step without the failed queries, instead of running the graph on."""
        while True:
            try:
                step()
            except FAULTS as error:
                self._take_out(error, starts, reads)
                step, starts, reads = step if again else self._host.graph.run, None, None
                continue
            for stream, found in self._host.intake.take_faults().items():
                self._fail(self._host.readers(stream), found)
            return

    def _take_out(self, error: BaseException, starts: str | None, reads: str | None) -> None:
        """Take out the queries that an error belongs to; raise it if it belongs to none."""
        operator = error.operator if isinstance(error, MillstreamError) else ""
        if operator in self._host.graph.operators and (names := self._host.owners(operator)):
            self._fail(names, self._described(error, names))
        elif starts is not None and starts in self._host.setup.running:
            whole = self._host.setup.queries[starts].whole
            message = f"the operators of query {whole} could not be built: {reason_of(error)}"
            self._fail([starts], MillstreamError("M6053", message, hint=HINT))
        elif reads is not None and (names := self._host.readers(reads)):
            self._fail(names, source_failure(reads, error))
        else:
            raise error

    def _fail(self, names: Iterable[str], error: MillstreamError) -> None:
        held = [*names]
        self._host.fail(held)
        self.failed |= dict.fromkeys(held, as_text(error))

    def _described(self, error: BaseException, names: list[str]) -> MillstreamError:
        """The error of an operator, with its queries and, if it can be found, the row."""
        if not isinstance(error, OperatorError):
            assert isinstance(error, MillstreamError)
            return error
        of = queries_of(error.operator, self._host.nodes())
        plain = OperatorError(error.operator, error.reason, of=of, hint=HINT if self._fresh else "")
        if self._fresh is None or isinstance(error.__cause__, ResultOutOfRange):
            return plain
        given = [event for event in self._events() if not _starts_other(event, names)]
        found = find_failing_row(partial(self._before, self._fresh, names), given, error)
        return found if found.operator == error.operator else plain

    def _before(self, fresh: Callable[[], ShardHost], names: list[str]) -> ShardHost:
        """The shard before the batch, without other queries than these."""
        host = fresh()
        host.fail([name for name in host.setup.running if name not in names])
        return host


def _starts_other(event: Event, names: Iterable[str]) -> bool:
    return isinstance(event.input, StartQuery) and event.input.name not in names
