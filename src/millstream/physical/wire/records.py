"""The records of the control log, which shards apply in the order of the log.

Records are the decisions of a mill: groups of shards, the queries they run, elements fed from the driver, the time that
idle streams promise. The source of the Spark job sends each record to the shards that it concerns; a shard that applies
the same records to the same state reaches the same state.

A *mill* is a name space with a clock of its own; a job may host several. A *group* is the set of shards that run
queries which hash their streams alike. A *label* is a shard's number in the Spark job, its grouping key.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from millstream.algebra import qualities, steering  # noqa: F401 - of queries that answer early
from millstream.algebra.aggregate import fold  # noqa: F401 - its values may be in a log, as those of the next two
from millstream.algebra.early import Prod  # noqa: F401 - among the elements of a feed
from millstream.algebra.element import Element
from millstream.algebra.feedback import Feedback
from millstream.algebra.program import call  # noqa: F401
from millstream.algebra.program.program import Program
from millstream.algebra.punctuation.pattern import Pattern
from millstream.algebra.punctuation.punctuations import Punctuations
from millstream.algebra.python import aggregate_call, definition  # noqa: F401
from millstream.algebra.schedule import Schedule
from millstream.algebra.upstream import PunctuationRequest, TimeRequest, Upstream
from millstream.algebra.values import value
from millstream.ingest.paged.wanted import Skipped
from millstream.logical import nodes
from millstream.logical.catalog import StreamDefinition
from millstream.logical.plan import Plan
from millstream.physical.plan import consensus, exchange  # noqa: F401 - their nodes may be in a log
from millstream.physical.plan.partial import Partial
from millstream.physical.plan.partitioning import Keys
from millstream.runtime.join.settings import JoinSettings

nodes.load()  # any of them may be in a log


@value("settings")
@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of a mill's graphs."""

    strategy: str
    ets: str
    page_rows: int
    joins: JoinSettings = field(default_factory=JoinSettings)
    wall: bool = True
    """True: shards have the time of the batch, from the machine's clock; False: only that of the mill's records."""
    breaks: str = ""
    exploit: str = "on"
    propagate: str = "on"


@value("open_group")
@dataclass(frozen=True, slots=True)
class OpenGroup:
    """A new group of shards, one label each. `keys`: the columns that each stream is hashed on; None: one shard reads
    everything. `stage`: their stage in the job. `number`: the receiving shard's position among the labels."""

    group: int
    mill: str
    labels: tuple[int, ...]
    keys: Keys | None
    settings: Settings
    stage: int = 0
    number: int = 0
    table: str = ""
    """The partitioned table that it holds; empty: none."""


@value("rekey")
@dataclass(frozen=True, slots=True)
class Rekey:
    """The group of a partitioned table reads more streams: the columns that all of them are hashed on."""

    group: int
    keys: Keys


@value("sending")
@dataclass(frozen=True, slots=True)
class Sending:
    """The destination of a query part's output: the shards with these labels in a later stage, by the hash of `key`
    (None: there is one shard). They read it as `stream` with the number of the sending shard."""

    stream: str
    labels: tuple[int, ...]
    key: tuple[str, ...] | None
    stage: int


@value("stream_reading")
@dataclass(frozen=True, slots=True)
class Reading:
    """The reading of a stream by a job, from its first reader there to its last. `number`: differs from those of the
    stream's other readings in the job; `place`: where it starts (None: at the start of the stream); `state`: the state
    of the stream's source, for shards that have no source of the stream (None: a new one)."""

    number: int = 0
    place: Mapping[str, Any] | None = None
    state: Mapping[str, Any] | None = None


@value("start_query")
@dataclass(frozen=True, slots=True)
class StartQuery:
    """Run a plan from now on. `streams` are the streams with a connector that it reads, by name; `partials` are the
    partial streams that it reads in place of streams."""

    group: int
    name: str
    plan: Plan
    tables: Mapping[str, pl.DataFrame] = field(default_factory=dict)
    streams: Mapping[str, StreamDefinition] = field(default_factory=dict)
    partials: tuple[tuple[str, str, Partial], ...] = ()
    """Stream, name of the partial stream, partial aggregation."""
    punctuated: bool = True
    """True if the punctuation of the result is needed."""
    query: str | None = None
    """The query that this is a part of; None: it is a query, or the topmost part of one."""
    sending: Sending | None = None
    since: int = 0
    """The point from which it reads, as the shard that runs it counts its input: operators of equal plans are shared if
    they read from the same point. The shard sets it when it starts the query."""
    shared: str | None = None
    """The running query with the same plan whose operators it shares, whatever they hold; None: it starts afresh."""
    below: tuple[str, ...] = ()
    """The parts of that query that send to this one."""
    readings: Mapping[str, Reading] = field(default_factory=dict)
    """The readings of `streams`, by name."""
    reached: Mapping[str, int] = field(default_factory=dict)
    """The time that streams fed from the driver have reached; FOREVER if they have ended."""
    closed: Mapping[str, Punctuations] = field(default_factory=dict)
    """The punctuation that these streams have sent. A shard does not keep it once the query has started."""
    parking: int | None = None
    """The number of the `Unpark` records with what its operators hold at the start; None: nothing."""

    @property
    def whole(self) -> str:
        """The name of the query that this is, or is a part of."""
        return self.query or self.name


@value("stop_query")
@dataclass(frozen=True, slots=True)
class StopQuery:
    group: int
    name: str


@value("park")
@dataclass(frozen=True, slots=True)
class Park:
    """Report what the operators of a part of a failed query hold, for the time when the query starts again. `before`:
    what they held before the last batch, otherwise after it."""

    group: int
    name: str
    query: str
    before: bool


@value("unpark")
@dataclass(frozen=True, slots=True)
class Unpark:
    """What the operators of a part held in a shard, for the part of that name that a later record starts with the same
    `parking`. `number`: the position of the shard in its group."""

    group: int
    name: str
    number: int
    parking: int
    parcel: bytes


@value("close_group")
@dataclass(frozen=True, slots=True)
class CloseGroup:
    """Close a group; its shards drop all state."""

    group: int


@value("configure")
@dataclass(frozen=True, slots=True)
class Configure:
    mill: str
    settings: Settings


@value("feed")
@dataclass(frozen=True, slots=True)
class Feed:
    """Elements that have passed their stream's source on the driver, to be processed together; `now` is the mill's
    clock."""

    mill: str
    now: int
    elements: tuple[tuple[str, Element], ...]
    skipped: Mapping[str, Skipped] = field(default_factory=dict)
    """Rows that were dropped on the way to the shards because no reader wants them; the first shard has it."""
    epoch: int = -1
    """The number of prods before it in the batch, of elements that another stage sends; -1: the shard counts them."""


@value("promise")
@dataclass(frozen=True, slots=True)
class Promise:
    """Time that idle streams promise: no later tuple is older. With `beat` it is sent in band to all operators."""

    mill: str
    now: int
    times: Mapping[str, int]
    beat: bool = False


MESSAGES = (TimeRequest, PunctuationRequest, Feedback)
"""The kinds of messages that a log may have."""


@value("send")
@dataclass(frozen=True, slots=True)
class Send:
    """An upstream message to a query, or to streams that the job reads itself, for every shard alike."""

    mill: str
    message: Upstream
    query: str | None = None
    streams: tuple[str, ...] = ()


@value("reschedule")
@dataclass(frozen=True, slots=True)
class Reschedule:
    """From now on a query prods itself at other times; None: never."""

    mill: str
    query: str
    schedule: Schedule | None


@value("skip")
@dataclass(frozen=True, slots=True)
class Skip:
    """From now on no reader of a stream wants rows that match one of these patterns, in place of those of an earlier
    record. The source leaves them out. It holds until a query starts that reads the stream."""

    mill: str
    stream: str
    patterns: tuple[Pattern, ...]


@value("received")
@dataclass(frozen=True, slots=True)
class Received:
    """Some shards of a group have received punctuation that an operator of their graphs holds back until all have; with
    `by_all` all have."""

    group: int
    operator: str
    patterns: tuple[Pattern, ...]
    by_all: bool


@value("hold")
@dataclass(frozen=True, slots=True)
class Hold:
    """While a mill is held, the job does not read its streams on. The shards report the sources of `streams`."""

    mill: str
    on: bool
    streams: tuple[str, ...] = ()


@value("fetch_tables")
@dataclass(frozen=True, slots=True)
class Fetch:
    """Report the rows of tables that streams write, under a number, as they are at this point."""

    group: int
    number: int
    tables: tuple[str, ...]


@value("write_once")
@dataclass(frozen=True, slots=True)
class WriteOnce:
    """Run a statement without a stream on a table that streams write: once, or for each of these rows. `number` and
    `text`: of the statement, for a driver that ended before it noted that the statement has run."""

    group: int
    table: str
    program: Program
    rows: pl.DataFrame | None = None
    number: int = 0
    text: str = ""


@value("forget_stream")
@dataclass(frozen=True, slots=True)
class ForgetStream:
    """A stream was dropped: its promises do not hold for a new stream of that name."""

    mill: str
    name: str


@value("remember")
@dataclass(frozen=True, slots=True)
class Remember:
    """A note that the driver needs to recover a mill; it concerns no shard. `jobs`: by the folder of each job, the end
    of its control log when the note was written, and the number of its last batch."""

    mill: str
    kind: str
    value: object
    jobs: Mapping[str, tuple[int, int]] = field(default_factory=dict)


Files = tuple[str | tuple[int, int], ...]


@value("reached")
@dataclass(frozen=True, slots=True)
class Reached:
    """A batch of a job was begun. `offset`: its end; `log`, `driver`: the ends of the job's control log and of the
    driver's log; `copies`: of the write-ahead file of `state.db`; `outputs`: the state of the outputs after it, by mill
    and query, where they are kept here; `files`: by folder, the query that files there are of, and their names (a pair:
    all numbers from the first to the second)."""

    number: int
    offset: str
    log: int
    driver: int
    copies: int = 0
    outputs: Mapping[str, Any] | None = None
    files: Mapping[str, tuple[str, Files]] = field(default_factory=dict)


Record = (
    OpenGroup
    | Rekey
    | CloseGroup
    | StartQuery
    | StopQuery
    | Park
    | Unpark
    | Configure
    | Feed
    | Promise
    | Send
    | Skip
    | Reschedule
    | Received
    | Hold
    | Fetch
    | WriteOnce
    | ForgetStream
    | Remember
    | Reached
)
