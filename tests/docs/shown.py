"""Tables for the tests of the documentation: what pages assume, how their texts come about, what is not compared."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
from rich.console import Console

from millstream.algebra.punctuation.pattern import Pattern
from millstream.algebra.punctuation.restriction import below
from millstream.algebra.schema import Schema
from millstream.algebra.types import Type
from millstream.control.mill import LocalMill
from millstream.control.mill.contracts import unbounded
from millstream.control.mill.outlet import SinkTrouble
from millstream.control.observe.loss_reports import late_report
from millstream.control.observe.losses import losses
from millstream.errors import MillstreamError
from millstream.runtime.engine import format_table
from millstream.sinks import make_sink
from millstream.sinks.terminal.console import ConsoleSink
from millstream.sinks.terminal.live_table import LiveTable
from millstream.sinks.terminal.screen import screen_on
from tests.docs.blocks import Block, blocks

AUCTIONS = """
    CREATE STREAM auctions (id BIGINT, seller VARCHAR, ts TIMESTAMP) ORDER BY ts;
    CREATE STREAM bids (auction BIGINT, price DOUBLE, ts TIMESTAMP) ORDER BY ts;
"""
ASSUMED = {
    "docs/operators/pane_aggregate.md": """
        CREATE STREAM s (ts BIGINT, sensor BIGINT, volume BIGINT) ORDER BY ts PUNCTUATED ON (ts +);
    """,
    "docs/operators/pipeline.md": """
        CREATE STREAM bids (auction BIGINT, price DOUBLE, ts BIGINT) ORDER BY ts PUNCTUATED ON (auction #);
    """,
    "docs/operators/placeholders.md": f"SET shards = 4; {AUCTIONS}",
    "docs/sinks.md": AUCTIONS,
    "docs/spark.md": f"SET shards = 2; {AUCTIONS}",
}
"""Statements that have been run before those of a page."""


@dataclass(frozen=True)
class Entry:
    """The blocks of a page that contain a text."""

    page: str
    has: str

    def finds(self, block: Block) -> bool:
        return block.page == self.page and self.has in block.text

    def __str__(self) -> str:
        return f"{self.page} {self.has}"


@dataclass(frozen=True)
class Produced(Entry):
    """Blocks that show what a function returns, given a folder of its own."""

    produce: Callable[[Path], str]


@dataclass(frozen=True)
class Unchecked(Entry):
    """Blocks that `test_blocks` neither runs nor compares."""

    reason: str


# --- what pages show --------------------------------------------------------------------------------------------------


def error_of(statements: str, *rows: tuple[int, ...]) -> Callable[[Path], str]:
    """The error that the last of some statements raises, or the first batch with some rows of stream s."""

    def produce(folder: Path) -> str:
        mill = LocalMill(checkpoint=folder)
        first, _, last = statements.rpartition(";")
        mill.execute(first)
        try:
            mill.execute(last)
            mill.insert("s", rows)
            mill.batch()
        except MillstreamError as error:
            return str(error)
        return ""

    return produce


def failing_function(folder: Path) -> str:
    space: dict[str, Any] = {"__name__": "my_functions"}
    exec(compile("\n" * 9 + "def inverse(x: float) -> float:\n    return 1 / x", "my_functions.py", "exec"), space)
    mill = LocalMill(checkpoint=folder)
    mill.function(space["inverse"], version="1")
    mill.execute("CREATE STREAM s (k BIGINT, v DOUBLE, ts BIGINT) ORDER BY ts")
    mill.add_query("q", "SELECT k, inverse(v) AS x FROM s")
    mill.insert("s", [(1, 0.0, 5)])
    try:
        mill.batch()
    except MillstreamError as error:
        return str(error)
    return ""


def engine_mill() -> LocalMill:
    """The mill of the page on the engine: two queries that read one stream."""
    mill = LocalMill()
    mill.execute("""
        CREATE STREAM fast (x BIGINT, ts BIGINT) ORDER BY ts;
        CREATE STREAM slow (x BIGINT, ts BIGINT) ORDER BY ts MAX SKEW 1;
        CREATE QUERY merged AS SELECT * FROM fast WHERE x > 0 UNION ALL SELECT * FROM slow WHERE x > 0;
        CREATE QUERY big AS SELECT * FROM fast WHERE x > 100;
    """)
    return mill


def forks(_: Path) -> str:
    table = format_table(engine_mill().hosts("merged")[0].graph.table())
    return "\n".join(table.splitlines()[:3])


def breaks(_: Path) -> str:
    mill = engine_mill()
    mill.execute("SET strategy = 'rr'")
    return format_table(mill.hosts("merged")[0].graph.table())


def multi_join(_: Path) -> str:
    mill = LocalMill()
    mill.execute("".join(f"CREATE STREAM {name} (k BIGINT, ts BIGINT) ORDER BY ts;" for name in "abc"))
    query = "SELECT a.k FROM a [RANGE 5], b [RANGE 6], c [RANGE 7] WHERE a.k = b.k AND b.k = c.k"
    lines = mill.execute(f"EXPLAIN {query}").splitlines()[1:3]
    return "\n".join([lines[0].removeprefix("└─ ").partition("  (")[0], lines[1].removeprefix("   ")])


HOT = Schema.of(("auction", Type.BIGINT), ("bids", Type.BIGINT), ("window_end", Type.TIMESTAMP))
NOON = datetime(2024, 1, 2, 12)


def hot(*rows: tuple[int, int | None]) -> pl.DataFrame:
    types = {name: HOT.polars[name] for name in HOT.names}
    return pl.DataFrame([(*row, NOON) for row in rows], schema=types, orient="row")


def result_folder(folder: Path) -> str:
    """The listing of a folder of results; what its files are is the page's own text."""
    sink = make_sink("parquet", {"path": str(folder / "hot"), "run": "1"})
    sink.open("hot", HOT)
    for batch, rows in enumerate([hot((1, 2)), hot(), hot(), hot((1, 2))]):
        sink.write(batch, rows, [])
    sink.close()
    names = sorted(path.name for path in (folder / "hot").iterdir())
    (listing,) = (block.text for block in blocks() if "_millstream.json  " in block.text)
    first, *lines = listing.splitlines()
    meant = [line.strip().partition("  ")[2] for line in lines]
    return "\n".join([first, *(f"  {name:<29}{text.strip()}" for name, text in zip(names, meant, strict=True))])


def plain_lines(_: Path) -> str:
    file = io.StringIO()
    sink = ConsoleSink(screen=screen_on(Console(file=file)))
    sink.open("hot", HOT)
    sink.write(0, hot((180, 12)), [])
    sink.close()
    return file.getvalue()


def live_table(_: Path) -> str:
    seconds = iter([0.0, 0.0, 10.0])
    table = LiveTable("hot", HOT, 2, lambda: next(seconds, 10.0))
    table.write(16, hot(*[(n, 1) for n in range(244)]), [])
    rows = hot(*[(n, 1) for n in range(958)], (180, 12), (181, None))
    table.write(17, rows, [Pattern.of(window_end=below(NOON, closed=True))])
    screen = Console(file=io.StringIO(), width=100, record=True)
    screen.print(table.draw(100, 40))
    return screen.export_text()


def failing_sink(_: Path) -> str:
    since = datetime(2024, 1, 2, 12).timestamp()
    return f"hot: 1,204 rows out, {SinkTrouble(since, 'OSError: no space left on device', rows=96, batches=3)}"


OVERFLOW = """
    CREATE STREAM s (k BIGINT, v BIGINT, ts BIGINT) ORDER BY ts;
    CREATE QUERY times AS SELECT k, v * 2000000 AS product FROM s;
"""
UNBOUNDED = """
    CREATE STREAM auctions (id BIGINT, seller VARCHAR) PRIMARY KEY (id);
    CREATE STREAM bids (auction BIGINT, price DOUBLE) PUNCTUATED ON (auction #);
    CREATE QUERY joined AS SELECT b.auction, b.price, a.seller FROM bids b JOIN auctions a ON b.auction = a.id
"""


def unbounded_state(_: Path) -> str:
    mill = LocalMill()
    mill.execute(UNBOUNDED)
    return str(unbounded(mill, "joined", mill.query("joined").plan))


def late_rows(folder: Path) -> str:
    times = [NOON.replace(month=1, day=1, hour=0) + timedelta(seconds=second) for second in range(5001)]
    pl.DataFrame({"ts": times[-1:]}).write_parquet(folder / "1.parquet")
    pl.DataFrame({"ts": times[:-1]}).write_parquet(folder / "2.parquet")
    mill = LocalMill()
    mill.execute(f"CREATE STREAM bids (ts TIMESTAMP) ORDER BY ts WITH (connector = 'parquet', path = '{folder}')")
    mill.execute("CREATE QUERY q AS SELECT ts FROM bids")
    mill.drain()
    return str(late_report(mill.catalog.stream("bids"), losses(mill)["bids"]))


UNKNOWN = error_of("CREATE STREAM bids (price DOUBLE);SELECT pric FROM bids")
PRODUCED = [
    Produced("docs/engine.md", "KB-Fork\n", forks),
    Produced("docs/engine.md", "RR-Source-Sink\n", breaks),
    Produced("docs/contracts.md", "M3030: ", unbounded_state),
    Produced("docs/errors.md", "M2001: unknown column", UNKNOWN),
    Produced("docs/functions.md", "M6053: ", failing_function),
    Produced("docs/language.md", "M2001: unknown column", UNKNOWN),
    Produced("docs/operators/multi_join.md", "#4 MultiJoin", multi_join),
    Produced("docs/sinks.md", "_millstream.json", result_folder),
    Produced("docs/sinks.md", "-+-", plain_lines),
    Produced("docs/sinks.md", "rows/s", live_table),
    Produced("docs/sources.md", "M5060: ", late_rows),
    Produced("docs/sinks.md", "rows spooled", failing_sink),
    Produced("docs/spark.md", "M6053: ", error_of(OVERFLOW, (776, 5, 776), (777, 9_000_000_000_000, 777))),
]
DRAWING = "a drawing"
ENTRY_POINT = "tests/test_registries.py installs the package that the page shows"
UNCHECKED = [
    Unchecked("README.md", "open auctions  in state", "figures of one run; test_demo compares the words"),
    Unchecked("docs/aggregates.md", "[ALGEBRAIC] [WINDOW]", "the form of statements, not statements"),
    Unchecked(
        "docs/aggregates-compared.md", "extends AggregateFunction", "Java, for Flink, which the tests do not have"
    ),
    Unchecked("docs/architecture.md", "─▶", DRAWING),
    Unchecked("docs/architecture.md", "millstream_bench\n", "test_docs compares it with pyproject.toml"),
    Unchecked("docs/engine.md", "[project.entry-points", ENTRY_POINT),
    Unchecked("docs/life-of-a-query.md", "", "test_life_of_a_query compares every block"),
    Unchecked("docs/adding-an-operator.md", "", "test_adding_an_operator runs the whole page"),
    Unchecked("docs/metrics.md", "scrape_configs:", "settings of Prometheus"),
    Unchecked("docs/metrics.md", "rate(", "expressions of Prometheus; test_docs looks up the metrics"),
    Unchecked("docs/sinks.md", "[project.entry-points", ENTRY_POINT),
    Unchecked("docs/sources.md", "[project.entry-points", ENTRY_POINT),
    Unchecked("docs/spark.md", "─▶", DRAWING),
]
