"""Everything stored has one format: plans and records are read back, and all other data is refused."""

from __future__ import annotations

import json
import pickle
import re
import struct
import subprocess
import sys
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import millstream
from millstream.algebra import values
from millstream.algebra.expression import Expression
from millstream.algebra.values import FORMAT, decode, encode
from millstream.control.job.local import LocalJob
from millstream.control.job.local_state import OUTPUTS
from millstream.control.mill.base import Mill
from millstream.errors import InputError
from millstream.logical.plan import Plan
from millstream.optimizer import optimize
from millstream.physical.plan.compile import operator_name
from millstream.physical.plan.preparation import prepare
from millstream.physical.shard import durable
from millstream.physical.shard.setup import Setup
from millstream.physical.wire import control_log
from millstream.physical.wire.control_log import ControlLog
from millstream.physical.wire.records import OpenGroup, Remember, Settings, StartQuery
from millstream.physical.wire.shard_split import ShardSplit
from millstream.testing.runner import run_text
from tests.logical.sample import bind, sample_catalog
from tests.optimizer.test_meaning import CATALOG, Queries
from tests.paths import TRANSCRIPTS
from tests.physical.shard.test_durable import DictStore
from tests.tries import chosen, tries

FILES = sorted(TRANSCRIPTS.rglob("*.transcript"))
SOURCE = Path(millstream.__file__).parent


# --- plans and records ------------------------------------------------------------------------------------------------


def records(plan: Plan, mill: Mill | None = None) -> Iterator[OpenGroup | StartQuery]:
    """The records of a query on three shards in a control log."""
    streams = {} if mill is None else {stream.name: stream for stream in mill.catalog.streams}
    tables = {} if mill is None else mill.tables
    groups: dict[str, OpenGroup] = {}
    for number, made in enumerate(prepare("q", plan, streams, 3)):
        groups[made.part.name] = group = OpenGroup(number, "m", (1, 2, 3), made.keys, Settings("dfs", "demand", 100))
        yield group
        if mill is not None:
            yield made.start("q", groups, streams, tables, punctuated=True)


def comes_back(plan: Plan, mill: Mill | None = None) -> None:
    assert decode(encode(plan)) == plan
    names = [operator_name(part) for part in plan.walk()]
    assert [operator_name(part) for part in decode(encode(plan)).walk()] == names
    for record in records(plan, mill):
        again = decode(encode(record))
        if isinstance(record, StartQuery):
            assert again.plan == record.plan and again.partials == record.partials and again.streams == record.streams
            assert all(again.tables[name].equals(table) for name, table in record.tables.items())
        else:
            assert again == record


def test_the_plans_of_transcripts_come_back(monkeypatch: pytest.MonkeyPatch) -> None:
    planned: list[tuple[Mill, Plan]] = []

    def plan(mill: Mill, select: object, made: Callable[..., Plan] = Mill.plan) -> Plan:
        planned.append((mill, made(mill, select)))
        return planned[-1][1]

    monkeypatch.setattr(Mill, "plan", plan)
    for path in chosen(FILES, 4):
        assert run_text(path.read_text(), name=str(path)).passed
        for mill, made in planned:
            comes_back(made, mill)
        planned.clear()


@given(st.integers(0, 1 << 32))
@settings(max_examples=tries(200))
def test_random_plans_come_back(seed: int) -> None:
    plan = bind(Queries(seed).query(), CATALOG)
    comes_back(plan)
    comes_back(optimize(plan, CATALOG))


def subclasses(type_: type) -> Iterator[type]:
    for below in type_.__subclasses__():
        yield below
        yield from subclasses(below)


def test_every_node_is_known_wherever_a_log_is_read() -> None:
    """A process that reads a control log, or the state of a shard, imports all that may be in it."""
    found = {
        values.kind_of(type_).name
        for base in (Plan, Expression)
        for type_ in subclasses(base)
        if type_.__module__.startswith("millstream.") and not type_.__name__.startswith("_")
        if type_ in values._by_type  # not the class that a dataclass with slots was made from
    }
    for module, needed in (
        ("physical.wire.control_log", found),
        ("physical.shard.durable", found | {"setup", "counters", "stored_segment", "file_piece", "generated_piece"}),
    ):
        script = f"import millstream.{module}; from millstream.algebra import values; print(*values._by_name)"
        known = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
        assert needed <= set(known.stdout.split())


# --- names ------------------------------------------------------------------------------------------------------------

NAMED = {
    "SELECT auction, price * 2 AS double FROM bids WHERE price > 1.5 AND bidder IN (1, 2)": [
        "bids-ac8041fd8d",
        "Select-c3903356c2",
        "Project-aff1660c38",
    ],
    "SELECT window_end, sensor, SUM(volume) AS v FROM s [RANGE 10 SLIDE 5] GROUP BY sensor": [
        "s-0a4ea4e7fc",
        "WindowAggregate-2099e726c2",
        "Project-07f3468234",
    ],
    "SELECT x.v, y.note FROM a [RANGE 3] x, b y WHERE x.k = y.k AND x.v > y.v": [
        "a-ea24d14297",
        "b-19836d52bd",
        "WindowJoin-a1456596a6",
        "Project-354e35910d",
    ],
    "SELECT DISTINCT k FROM a UNION ALL SELECT k FROM b": [
        "a-ea24d14297",
        "Project-90724b4a1f",
        "Distinct-93b2e8c13a",
        "b-19836d52bd",
        "Project-7b18bf3c5d",
        "Union-22103ddb71",
    ],
    "SELECT x.v, city FROM a x LEFT JOIN sites ON x.k = sites.k": [
        "a-ea24d14297",
        "TableJoin-724b328ee9",
        "Project-603a530347",
    ],
}


def names() -> dict[str, list[str]]:
    catalog = sample_catalog()
    return {query: [operator_name(part) for part in bind(query, catalog).walk()] for query in NAMED}


def test_names_have_not_changed() -> None:
    """They are in the checkpoints of users: a change of them makes state unreadable. Raise
    `values.FORMAT` if it has to be."""
    assert names() == NAMED


@pytest.mark.parametrize("seed", ["1", "2"])
def test_names_are_the_same_in_every_process(seed: str) -> None:
    script = "import json; from tests.physical.wire.test_formats import names; print(json.dumps(names()))"
    environment = {"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path), "POLARS_MAX_THREADS": "1"}
    made = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
    assert json.loads(made.stdout) == names()


# --- what is refused --------------------------------------------------------------------------------------------------


class Bomb:
    """Leaves a trace when it is unpickled."""

    def __init__(self, trace: Path) -> None:
        self.trace = trace

    def __reduce__(self) -> tuple[object, ...]:
        return Path.touch, (self.trace,)


def log_of(folder: Path) -> Path:
    log = ControlLog(folder / "control.log", writable=True)
    log.append(Remember("m", "n", 1))
    log.close()
    return log.path


def read_log(folder: Path, data: bytes) -> None:
    """Append a record of these bytes, and read the log."""
    path = log_of(folder)
    frame = control_log.framed(1 << 20, data)
    path.write_bytes(path.read_bytes() + frame)
    for writable in (False, True):
        log = ControlLog(path, writable=writable)
        list(log.read(0, log.end()))


def open_log(folder: Path, data: bytes) -> None:
    """Write these bytes as the file, and open it."""
    (folder / "control.log").write_bytes(data)
    try:
        ControlLog(folder / "control.log", writable=True)
    finally:
        assert (folder / "control.log").read_bytes() == data  # nothing is cut off
    ControlLog(folder / "control.log").end()


def job_of(folder: Path) -> LocalJob:
    return LocalJob(folder)


def read_job(folder: Path, data: bytes) -> None:
    (folder / "job.json").write_bytes(data)
    job_of(folder)


def read_outputs(folder: Path, data: bytes) -> None:
    job = job_of(folder)
    job._state.store(OUTPUTS).put("outputs", data)
    job.outputs_state("main")


def store(setup: bytes, head: bytes) -> DictStore:
    made = DictStore()
    made.put("setup", setup)
    made.put("head", head)
    made.put(durable.TOKEN, b"t")
    return made


def read_setup(folder: Path, data: bytes) -> None:
    durable.load(store(data, encode(({}, {}))), None)


def read_head(folder: Path, data: bytes) -> None:
    durable.load(store(encode(Setup()), data), None)


def read_shared_memory(folder: Path, data: bytes) -> None:
    files = durable.SegmentFiles("tests")
    files.folder = folder
    files.put_bytes(durable.head_file("t"), data)
    durable.load(store(encode(Setup()), encode(({}, {}))), files)


def read_part(folder: Path, data: bytes) -> None:
    ShardSplit.from_bytes("s", data, b"")


PLACES = [read_log, open_log, read_job, read_outputs, read_setup, read_head, read_shared_memory, read_part]


@pytest.mark.parametrize("read", PLACES)
def test_pickles_are_refused_and_not_executed(tmp_path: Path, read: Callable[[Path, bytes], None]) -> None:
    bomb = pickle.dumps(Bomb(tmp_path / "trace"))
    with pytest.raises(InputError, match=r"M5022: .* has an unknown format") as caught:
        read(tmp_path, bomb)
    assert caught.value.detail and caught.value.hint and not (tmp_path / "trace").exists()
    pickle.loads(bomb)
    assert (tmp_path / "trace").exists()


@pytest.mark.parametrize("read", PLACES)
@pytest.mark.parametrize("other", [FORMAT - 1, FORMAT + 1])
def test_other_formats_are_refused(tmp_path: Path, read: Callable[[Path, bytes], None], other: int) -> None:
    data = encode({})
    data = data[:4] + struct.pack("<H", other) + data[6:]
    if read is open_log:
        data = control_log._START.pack(control_log._MAGIC, other, 0, b"")
    if read is read_job:
        data = json.dumps({"format": other, "id": "a", "shards": 1, "stages": 1}).encode()
    with pytest.raises(InputError, match=f"M5020: .* has format {other}"):
        read(tmp_path, data)


@pytest.mark.parametrize("data", [b'{"id": "a", "shards": 1, "stages": 1}', b"[]", b"{", b"\xff"])
def test_a_job_without_a_format_is_refused(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(InputError, match=r"M5022: .*job\.json"):
        read_job(tmp_path, data)


def test_a_log_of_pickles_is_refused(tmp_path: Path) -> None:
    data = pickle.dumps(Remember("m", "n", 1))
    old = struct.pack("<Q", 0) + struct.pack("<QII", len(data), len(data), zlib.crc32(data)) + data
    with pytest.raises(InputError, match=r"M5022: the control log .*control\.log has an unknown format"):
        open_log(tmp_path, old)


# --- no pickle --------------------------------------------------------------------------------------------------------


def test_nothing_unpickles() -> None:
    """Spark pickles what it sends to workers by itself: the data source, its partitions (`Work`) and the functions of
    `mapInArrow`. User-defined functions travel in the same way (`shipped`), never by a log or a checkpoint. Nothing
    else of ours reads or writes a pickle."""
    for path in SOURCE.rglob("*.py"):
        name = path.relative_to(SOURCE)
        if "bench" not in name.parts and name != Path("physical/spark/shipped.py"):
            assert not re.search(r"^\s*(import|from) \w*pickle|pickle\.", path.read_text(), re.MULTILINE), path
