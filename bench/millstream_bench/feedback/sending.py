"""What it costs to send feedback: chains of selections that pass everything, with feedback that matches nothing.

In process, a message goes up the whole chain after every tuple, or after every page, and is not sent at all for
comparison. On Spark the client sends one after every batch.
"""

from __future__ import annotations

import gc
import time
from pathlib import Path
from statistics import median

import polars as pl

from millstream.algebra.element import Page
from millstream.algebra.expression import Binary, Column, Literal
from millstream.algebra.feedback import Feedback, Intent
from millstream.algebra.punctuation.pattern import Pattern
from millstream.algebra.punctuation.restriction import equal
from millstream.algebra.response import Response
from millstream.algebra.schema import TS, Schema, TimeKind
from millstream.algebra.types import Type
from millstream.logical.nodes import select as plan
from millstream.runtime.engine import Graph
from millstream.runtime.pipeline.select import Select
from millstream_bench.feedback import data
from millstream_bench.feedback.queries import task
from millstream_bench.feedback.sizes import Sizes
from millstream_bench.feedback.subject import Subject, folder_of
from millstream_bench.suite.report import Finding
from millstream_bench.suite.run import Tell

SCHEMA = Schema.of(
    ("sensor_id", Type.BIGINT), ("volume", Type.BIGINT), ("ts", Type.BIGINT), kind=TimeKind.EXTERNAL, time="ts"
)
PASSES = Binary(Type.BOOLEAN, ">", Column(Type.BIGINT, "volume"), Literal(Type.BIGINT, -1))
SAID = Feedback(Intent.ASSUMED, Pattern.of(sensor_id=equal(-1)))
EVERY = {"a tuple": 1, "a page of 1,000": 1000}


def sending(sizes: Sizes) -> Finding:
    columns = ("message after", "selections", "off, CPU s", "on, CPU s", "µs a message", "µs a message and selection")
    found = Finding("sending", "cost of sending feedback, in process", "Table 7.5", columns)
    for every, page in EVERY.items():
        for length in sizes.chains:
            tuples = sizes.messages * (1 if page == 1 else 50)
            rounds = [(_spent(length, page, tuples, sends=False), _spent(length, page, tuples, sends=True))
                      for _ in range(sizes.chain_rounds)]  # fmt: skip
            off, on = median(a for a, _ in rounds), median(b for _, b in rounds)
            each = median(b - a for a, b in rounds) * 1e6 / (tuples // page)
            found.rows.append((every, length, off, on, each, each / length))
            found.numbers[f"{every}, {length}"] = {"off": off, "on": on, "us": each}
            found.curves.setdefault(every, {"length": [], "us": []})
            found.curves[every]["length"].append(length)
            found.curves[every]["us"].append(each)
    found.notes.append(
        f"medians of {sizes.chain_rounds} rounds; the feedback matches no tuple, and is the same each time"
    )
    return found


def _passed_on(pattern: Pattern) -> Response:
    return Response(plan.Select.rules[0], (pattern,))


def _spent(length: int, page: int, tuples: int, *, sends: bool) -> float:
    """CPU seconds of a chain of `length` selections over the tuples, in pages."""
    graph = Graph()
    source = graph.source("sensor", SCHEMA)
    node = source
    for _ in range(length):
        node = graph.add(Select(SCHEMA, PASSES), [node], respond=_passed_on)  # type: ignore[assignment]
    taken = [0]

    def take(element: object) -> None:
        taken[0] += element.tuples if isinstance(element, Page) else 0

    sink = graph.sink(node, take)
    stamps = pl.int_range(tuples, eager=True)
    rows = pl.DataFrame({"sensor_id": stamps % 150, "volume": stamps % 30, "ts": stamps, TS: stamps})
    pages = [Page(rows.slice(at, page)) for at in range(0, tuples, page)]
    gc.collect()
    began = time.process_time()
    for each in pages:
        graph.push(source, each)
        graph.run()
        if sends:
            graph.send(sink, SAID)
    spent = time.process_time() - began
    assert taken[0] == tuples
    return spent


def sending_on_spark(sizes: Sizes, tell: Tell) -> Finding:
    columns = ("", "wall s", "CPU s", "messages", "CPU ms a message")
    found = Finding("sending_on_spark", "a message of the client after every batch, on Spark", "", columns)
    text = "SELECT sensor_id, volume, ts FROM sensor WHERE volume > -1"
    with folder_of("sending") as made:
        folder = Path(made)
        data.write(data.sensors(sizes.hours), folder / "sensor", 60)
        with Subject(spark=True, cores=sizes.cores) as subject:
            subject.run(task(folder, text))
            spent: dict[str, list[float]] = {"off": [], "on": []}
            for number in range(sizes.rounds):
                for way in ("off", "on") if number % 2 else ("on", "off"):
                    tell(f"sending, {way}, round {number + 1} of {sizes.rounds}")
                    more = {"each_batch": {"q": "~[sensor_id = -{}]"}} if way == "on" else {}
                    run = subject.run(task(folder, text, **more))
                    spent[way].append(run.cpu_s)
                    found.numbers.setdefault(way, []).append(
                        {"wall_s": run.wall_s, "cpu_s": run.cpu_s, "sent": run.sent}
                    )
    base = median(spent["off"])
    for way in ("off", "on"):
        runs = found.numbers[way]
        messages = median(run["sent"] for run in runs)
        each = (median(spent[way]) - base) * 1000 / messages if messages else None
        found.rows.append((way, median(run["wall_s"] for run in runs), median(spent[way]), int(messages), each))
    return found
