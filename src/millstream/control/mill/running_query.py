"""A query that runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from millstream.algebra.feedback import Feedback, Intent
from millstream.control.mill.failures import Failure
from millstream.control.mill.outputs import QueryOutput
from millstream.logical.nodes.prodder import Prodder
from millstream.logical.plan import Plan


@dataclass(slots=True)
class RunningQuery:
    """A continuous query. `sink`: the destination of its results; None: they are kept until taken."""

    name: str
    text: str
    plan: Plan
    output: QueryOutput
    sink: Any = None
    sink_options: Mapping[str, str] = field(default_factory=dict)
    start: str = "now"
    failure: Failure | None = None
    """None while it runs."""
    finished: int | None = None
    """The batch that completed its output, of a query with LIMIT; None before."""
    told: list[Feedback] = field(default_factory=list)
    """The feedback that it has received."""
    guards: int = 0
    """The patterns of its guard, when they were counted."""
    uncounted: list[int] = field(default_factory=list)
    """Where in the log of its job the feedback is that was sent since then."""
    prodder: Prodder | None = None
    """When it prods itself, as last altered; None: never."""
    rows_in: int = 0
    """Rows of its streams since it was started, or since the job was opened; late and bad ones too."""
    delivered: int = 0
    """Rows that its sink has taken."""

    def __post_init__(self) -> None:
        self.prodder = next((part for part in self.plan.walk() if isinstance(part, Prodder)), None)

    @property
    def rows_out(self) -> int:
        """Rows that its sink has taken, or that were kept for the program, since the job was opened. Rows that wait for
        the sink are not out."""
        return self.output.rows_made if self.sink is None else self.delivered

    def hear(self, message: Feedback, end: int = 0) -> None:
        """Note feedback that it has received. `end`: the position behind it in the log of its job."""
        self.told.append(message)
        if message.intent is Intent.ASSUMED:
            self.uncounted.append(end)
        self.prefer()

    def prefer(self) -> None:
        """Let the output have the desired rows of a batch first."""
        self.output.first = [message.pattern for message in self.told if message.intent is Intent.DESIRED]

    def count_delivered(self, rows: int) -> None:
        self.delivered += rows


def reads_punctuation(sink: Any) -> bool:
    """Return whether a sink takes the punctuation of a result."""
    return sink in (None, "console") or hasattr(sink, "write")
