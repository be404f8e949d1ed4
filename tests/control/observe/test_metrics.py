import json
import logging
import urllib.request
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families
from rich.console import Console

import millstream as ms
from millstream.control.job.jobs import LocalJobs
from millstream.control.job.local import LocalJob
from millstream.control.mill.base import Mill
from millstream.control.observe.metrics import MillCollector, serve
from millstream.control.observe.progress import Progress, progress_of
from millstream.control.observe.stream_progress import stream_progress
from millstream.control.runner import ProgressLine
from millstream.control.spark.listener import BatchListener
from millstream.errors import OptionError

ROWS, FILE = 600, 200
SCRIPT = """
    CREATE STREAM bids (auction BIGINT, price DOUBLE, ts TIMESTAMP) ORDER BY ts
        WITH (connector = 'csv', path = '{path}', max_files_per_trigger = 1, once = true);
    CREATE QUERY hot AS SELECT auction, price FROM bids WHERE price >= 50;
    CREATE QUERY seen AS SELECT DISTINCT auction FROM bids;
"""
Scraped = dict[str, dict[tuple[str, ...], float]]


def write_bids(folder: Path, newest: datetime) -> None:
    """Three files of bids a second apart, then one bid that is late and one that is bad."""
    times = [newest - timedelta(seconds=ROWS - 1 - at) for at in range(ROWS)]
    lines = [f"{at % 10},{at % 100}.0,{time:%Y-%m-%d %H:%M:%S}" for at, time in enumerate(times)]
    late = f"1,1.0,{times[0] - timedelta(seconds=1):%Y-%m-%d %H:%M:%S}"
    lines += [late, f"x,1.0,{times[-1]:%Y-%m-%d %H:%M:%S}"]
    folder.mkdir()
    for number, first in enumerate((0, FILE, 2 * FILE)):
        part = lines[first : first + FILE] if number < 2 else lines[first:]
        (folder / f"{number}.csv").write_text("\n".join(["auction,price,ts", *part]) + "\n")


@pytest.fixture
def mill(tmp_path: Path) -> Iterator[Mill]:
    jobs = LocalJobs(tmp_path / "checkpoint", shards=2)
    yield Mill(jobs, wall=True)
    jobs.close()


def job_of(mill: Mill) -> LocalJob:
    job = mill.jobs.job()
    assert isinstance(job, LocalJob)
    return job


def run_all(job: LocalJob) -> None:
    while job.step():
        pass


def report(job: LocalJob) -> dict[str, Any]:
    """Spark's report on the last batch."""
    phases = {"addBatch": 120, "queryPlanning": 30, "walCommit": 8, "triggerExecution": 170}
    return {"name": job.name, "batchId": job.last.batch, "durationMs": phases}


@pytest.fixture
def bids(tmp_path: Path) -> str:
    write_bids(tmp_path / "bids", datetime.now(UTC) - timedelta(seconds=60))
    return SCRIPT.format(path=tmp_path / "bids")


def connection_to(mill: Mill) -> Any:
    return SimpleNamespace(mill=mill, at_close=lambda _: None)


def scraped(text: str) -> Scraped:
    """Metric → values of its labels, in order of their names → value."""
    return {
        name: {tuple(s.labels[k] for k in sorted(s.labels)): s.value for s in family.samples if s.name == name}
        for family in text_string_to_metric_families(text)
        for name in {s.name for s in family.samples}
    }


def scrape(mill: Mill) -> Scraped:
    registry = CollectorRegistry()
    registry.register(MillCollector(mill))
    return scraped(generate_latest(registry).decode())


@pytest.mark.parametrize("cached", [True, False])
def test_operators_are_counted_for_their_query_and_shard(mill: Mill, bids: str, cached: bool) -> None:
    mill.execute(bids)
    run = job_of(mill)
    run.cached = cached
    while not mill.jobs.job().rows_in:
        run.step()
    found = scrape(mill)
    states, sizes = found["millstream_operator_state_rows"], found["millstream_operator_state_bytes"]
    assert {key for key, size in sizes.items() if size} == {key for key, rows in states.items() if rows}
    assert sum(states.values()) == 10
    run_all(run)
    found = scrape(mill)
    rows_in = found["millstream_operator_rows_in_total"]
    sinks = {key: value for key, value in rows_in.items() if key[0].startswith("sink:")}
    assert sum(value for (_, query, _), value in sinks.items() if query == "hot") == ROWS / 2
    assert sum(value for (_, query, _), value in sinks.items() if query == "seen") == 10
    assert {query for operator, query, _ in rows_in if operator.startswith("sink:hot")} == {"hot"}
    distinct = {key: value for key, value in rows_in.items() if key[0].startswith("Distinct")}
    assert {query for _, query, _ in distinct} == {"seen"} and sum(distinct.values()) == ROWS
    assert {shard for _, _, shard in distinct} == {"0", "1"}
    assert sum(found["millstream_operator_seconds_total"].values()) > 0
    assert sum(found["millstream_operator_steps_total"].values()) > 0


def test_streams_and_batches(mill: Mill, bids: str) -> None:
    mill.execute(bids)
    run, listener = job_of(mill), BatchListener(mill)
    while not mill.jobs.job().rows_in:
        run.step()
    listener.hear(report(run))
    early = scrape(mill)
    assert early["millstream_rows_behind"]["bids",] == pytest.approx(ROWS - FILE, rel=0.1)
    assert 60 + ROWS - FILE <= early["millstream_event_lag_seconds"]["bids",] < 60 + ROWS
    run_all(run)
    listener.hear(report(run))
    found = scrape(mill)
    assert found["millstream_stream_rows_total"] == {
        ("accepted", "bids"): ROWS,
        ("late", "bids"): 1,
        ("bad", "bids"): 1,
    }
    assert found["millstream_rows_behind"] == {("bids",): 0}
    assert "millstream_event_lag_seconds" not in found, "a stream that has ended is not late"
    assert (
        found["millstream_stream_newest_event_timestamp_seconds"]["bids",]
        > early["millstream_stream_newest_event_timestamp_seconds"]["bids",]
    )
    job = mill.jobs.job()
    assert found["millstream_job_up"] == {("job-1",): 1}
    assert found["millstream_batches_total"] == {("job-1",): job.batches} and job.batches >= 4
    assert found["millstream_batch_seconds"]["job-1",] == pytest.approx(job.last.seconds)
    assert found["millstream_busy_seconds_total"]["job-1",] >= job.last.seconds
    assert found["millstream_state_bytes_written"]["job-1",] > 0
    assert found["millstream_batch_phase_seconds"]["job-1", "walCommit"] == 0.008


def test_rows_are_counted_once_where_every_shard_reads_all_of_them(mill: Mill, bids: str) -> None:
    """A windowed aggregate gets partial groups, or all rows if there are bad ones among them."""
    created, _, _ = bids.split(";", 2)
    mill.execute(created)
    mill.add_query("counts", "SELECT auction, COUNT(*) AS n FROM bids [RANGE INTERVAL '60' SECOND] GROUP BY auction")
    mill.add_query("late", "SELECT auction FROM bids__late")
    run_all(job_of(mill))
    stream = stream_progress(mill)["bids"]
    assert (stream.accepted, stream.late, stream.bad) == (ROWS, 1, 1)


def test_streams_fed_from_the_driver_and_time_unrelated_to_the_clock(mill: Mill) -> None:
    mill.execute("""
        CREATE STREAM a (ts BIGINT, x BIGINT) ORDER BY ts;
        CREATE STREAM b (x BIGINT, ts TIMESTAMP) ORDER BY ts;
        CREATE QUERY q AS SELECT x FROM a WHERE x > 0;
    """)
    mill.insert("a", [(1, 1), (2, 2)])
    mill.insert("b", [(1, datetime.now(UTC).replace(tzinfo=None))])
    mill.batch()
    made = stream_progress(mill)
    assert (made["a"].accepted, made["a"].newest, made["a"].lag) == (2, None, None)
    assert made["b"].lag is not None and 0 <= made["b"].lag < 60


def test_progress_of_a_query(mill: Mill, bids: str) -> None:
    mill.execute(bids)
    run = job_of(mill)
    run_all(run)
    BatchListener(mill).hear(report(run))
    progress = progress_of(mill, "SEEN")
    assert (progress.rows_in, progress.rows_out, progress.state_rows) == (ROWS + 2, 10, 0)
    assert progress.behind == 0 and progress.lag is None and len(progress.shards) == 2
    assert progress.durations["triggerExecution"] == 0.17
    assert json.loads(json.dumps(progress.to_dict()))["operators"][0]["reading"]["kind"] == "source"
    lines = str(progress).splitlines()
    assert lines[0].startswith("seen: batch ") and lines[3].startswith("spark  triggerExecution 0.17 s, addBatch")
    assert lines[-1].startswith("sink:seen ") and len({len(line) for line in lines[5:]}) == 1


def test_progress_before_the_first_batch(mill: Mill, bids: str) -> None:
    mill.execute(bids)
    progress = progress_of(mill, "hot")
    assert (progress.rows_in, progress.behind, progress.rows_out) == (0, None, 0)
    assert str(progress) and "millstream_rows_behind" not in scrape(mill)


def test_before_its_first_batch_a_resumed_job_has_no_batch(tmp_path: Path) -> None:
    with ms.connect(local=True, checkpoint=tmp_path) as mill:
        mill.sql("CREATE STREAM s (k BIGINT); CREATE QUERY q AS SELECT k FROM s")
    with ms.connect(local=True, checkpoint=tmp_path, resume=False) as mill:
        assert str(mill.query("q").progress()).startswith("q: no batch yet, ")
        assert ProgressLine(mill, Console(quiet=True))._text().startswith("no batch yet   0 rows/s")


def test_an_idle_batch_does_not_end_the_rate(mill: Mill, bids: str) -> None:
    mill.execute(bids)
    run_all(job_of(mill))
    assert progress_of(mill, "hot").rows_per_second > 0
    mill.request_reports()
    job_of(mill).step()
    assert mill.jobs.job().last.rows == 0 and progress_of(mill, "hot").rows_per_second > 0


def test_callbacks_get_each_batch_once(mill: Mill, bids: str, caplog: pytest.LogCaptureFixture) -> None:
    mill.execute(bids)
    run, listener = job_of(mill), BatchListener(mill)
    heard: list[Progress] = []

    def fails(_: Progress) -> None:
        raise ValueError("no")

    listener.add(fails)
    remove = listener.add(heard.append)
    run.step()
    with caplog.at_level(logging.ERROR, "millstream"):
        listener.hear(report(run))
    assert len(caplog.records) == 2
    listener.hear(report(run))
    listener.hear({"name": "another query of the session"})
    assert [(p.query, p.batch) for p in heard] == [("hot", run.last.batch), ("seen", run.last.batch)]
    remove()
    run.step()
    listener.hear(report(run))
    assert len(heard) == 2


def test_what_spark_calls_never_raises(mill: Mill, bids: str, caplog: pytest.LogCaptureFixture) -> None:
    mill.execute(bids)
    listener, job = BatchListener(mill), mill.jobs.job()
    event = SimpleNamespace(progress=lambda: SimpleNamespace(name=lambda: job.name, json=lambda: "no JSON"))
    with caplog.at_level(logging.ERROR, "millstream"):
        listener.onQueryProgress(event)
    assert len(caplog.records) == 1 and job.report is None
    listener.detach()


def test_the_endpoint_is_for_this_machine_and_closes(mill: Mill, bids: str) -> None:
    mill.execute(bids)
    closing: list[Any] = []
    connection: Any = SimpleNamespace(mill=mill, at_close=closing.append)
    server = serve(connection, 0)
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{server.port}/metrics", timeout=10) as answer:
            assert scraped(answer.read().decode())["millstream_job_up"] == {("job-1",): 1}
        with pytest.raises(OptionError, match="M6060"):
            serve(connection, server.port)
    finally:
        closing[0]()
    server.close()
    with pytest.raises(OSError):
        urllib.request.urlopen(f"http://127.0.0.1:{server.port}/metrics", timeout=10)


def test_a_scrape_does_not_wait_for_the_batch_that_runs() -> None:
    """A sink that waits for a scrape gets the numbers from before its batch."""
    with ms.connect(local=True, contracts="off") as connection:
        server, seen = serve(connection, 0), list[Any]()

        def write(*_: object) -> None:
            with urllib.request.urlopen(f"http://127.0.0.1:{server.port}/metrics", timeout=10) as answer:
                found = scraped(answer.read().decode())
            seen.append([found[name] for name in ("millstream_stream_rows_total", "millstream_batches_total")])

        connection.sql("CREATE STREAM s (k BIGINT)")
        connection.sql("SELECT k FROM s").start(write)
        for _ in range(2):
            connection.insert("s", [(1,)])
        assert len(seen) == 2 and sum(seen[1][1].values()) == sum(seen[0][1].values()) + 1


def test_a_stopped_query_has_no_metrics(mill: Mill, bids: str) -> None:
    mill.execute(bids)
    run = job_of(mill)
    run_all(run)
    mill.execute("DROP QUERY hot")
    run_all(run)
    assert {query for _, query, _ in scrape(mill)["millstream_operator_rows_in_total"]} == {"seen"}


@pytest.mark.parametrize("shards", [1, 3])
def test_tuples_that_wait_for_time_are_told(shards: int) -> None:
    with ms.connect(local=True, shards=shards, contracts="off") as connection:
        for name in "st":
            connection.sql(f"CREATE STREAM {name} (ts BIGINT, k BIGINT) ORDER BY ts")
        union = "(SELECT ts, k FROM s UNION ALL SELECT ts, k FROM t)"
        queries = [
            connection.sql(f"SELECT k FROM {union}").start(),
            connection.sql(f"SELECT window_end, COUNT(*) AS n FROM {union} [RANGE 10]").start(),
        ]
        connection.insert("s", [(at, at) for at in range(9)])
        for query in queries:
            assert query.take().is_empty()
            found = query.progress()
            assert (found.state_rows, found.waiting, found.awaited) == (0, 9, ("t",))
            assert "state  9 rows wait for the time of t, 0 B" in str(found)
        connection.insert("t", [(3, 3)])
        assert "state  5 rows wait for the time of t, 0 B" in str(queries[0].progress())
        assert "state  1 row, 5 more wait for the time of t, " in str(queries[1].progress())
        connection.insert("t", [(20, 3)])
        assert "state  1 row waits for the time of s, " in str(queries[0].progress())
