"""What is written to the control log and applied by shards, in the order of the log.

Records are values: what a mill decides (which groups of shards there are, which queries they run, what streams are fed
from the driver, what time idle streams promise). The source of the Spark job sends each record to the shards that it
concerns; a shard that applies the same records to the same state ends up in the same state.

A *mill* is a name space with a clock of its own; a job may host several. A *group* is the set of shards that run
queries which hash their streams alike. A *label* is a shard's number in the Spark job, its grouping key.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import polars as pl

from millstream.algebra.element import Element
from millstream.algebra.upstream import Upstream
from millstream.algebra.values import value
from millstream.logical import nodes
from millstream.logical.catalog import StreamDefinition
from millstream.logical.plan import Plan
from millstream.physical.plan import exchange  # noqa: F401 - its nodes may be in a log
from millstream.physical.plan.partial import Partial
from millstream.physical.plan.partitioning import Keys
from millstream.runtime.join.settings import JoinSettings

nodes.load()  # any of them may be in a log


@value("settings")
@dataclass(frozen=True, slots=True)
class Settings:
    """How the graphs of a mill run."""

    strategy: str
    ets: str
    page_rows: int
    joins: JoinSettings = field(default_factory=JoinSettings)


@value("open_group")
@dataclass(frozen=True, slots=True)
class OpenGroup:
    """A new group of shards: one label each. `keys`: what each stream is hashed on; None: one shard has it all.
    `stage`: in which of the job's stages they are. `number`: which of them the shard is that hears of it."""

    group: int
    mill: str
    labels: tuple[int, ...]
    keys: Keys | None
    settings: Settings
    stage: int = 0
    number: int = 0


@value("sending")
@dataclass(frozen=True, slots=True)
class Sending:
    """Where a part of a query sends what it puts out: to the shards with these labels in a later stage, by the hash of
    `key` (None: there is one), as the stream that is called `stream`, a dot and the number of the sending shard."""

    stream: str
    labels: tuple[int, ...]
    key: tuple[str, ...] | None
    stage: int


@value("start_query")
@dataclass(frozen=True, slots=True)
class StartQuery:
    """Run a plan from now on. `streams` are the streams with a connector that it reads, by name; `partials` those that
    are aggregated where they are read: the stream that the plan reads instead, and how it is made."""

    group: int
    name: str
    plan: Plan
    tables: Mapping[str, pl.DataFrame] = field(default_factory=dict)
    streams: Mapping[str, StreamDefinition] = field(default_factory=dict)
    partials: tuple[tuple[str, str, Partial], ...] = ()
    """Stream, name of the partial stream, how it is made."""
    punctuated: bool = True
    """Whether somebody wants the punctuation of the result."""
    query: str | None = None
    """The query that this is a part of; None: it is a query, or the topmost part of one."""
    sending: Sending | None = None
    since: int = 0
    """From which point it reads. 0: it takes over what equal operators, which run already, hold."""

    @property
    def whole(self) -> str:
        """The query that this is, or is a part of."""
        return self.query or self.name


@value("stop_query")
@dataclass(frozen=True, slots=True)
class StopQuery:
    group: int
    name: str


@value("close_group")
@dataclass(frozen=True, slots=True)
class CloseGroup:
    """A group is no longer needed; its shards forget everything."""

    group: int


@value("configure")
@dataclass(frozen=True, slots=True)
class Configure:
    mill: str
    settings: Settings


@value("feed")
@dataclass(frozen=True, slots=True)
class Feed:
    """Elements that have been through their stream's source on the driver, to be processed together; `now` is the
    mill's clock."""

    mill: str
    now: int
    elements: tuple[tuple[str, Element], ...]


@value("promise")
@dataclass(frozen=True, slots=True)
class Promise:
    """What idle streams promise: no later tuple is older. With `beat` the time is sent in band to all operators."""

    mill: str
    now: int
    times: Mapping[str, int]
    beat: bool = False


@value("send")
@dataclass(frozen=True, slots=True)
class Send:
    """A message against the data: to a query, or to streams that the job reads itself, in every shard alike."""

    mill: str
    message: Upstream
    query: str | None = None
    streams: tuple[str, ...] = ()


@value("remember")
@dataclass(frozen=True, slots=True)
class Remember:
    """What the driver needs to recover a mill; no shard hears of it."""

    mill: str
    kind: str
    value: object


Record = OpenGroup | CloseGroup | StartQuery | StopQuery | Configure | Feed | Promise | Send | Remember
