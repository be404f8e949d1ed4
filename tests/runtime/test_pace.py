"""PACE against its reference: arrivals of several inputs, cut anywhere, with restarts."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.algebra.feedback import Feedback, Intent
from millstream.algebra.punctuation.pattern import Pattern
from millstream.algebra.punctuation.restriction import below
from millstream.algebra.schema import FOREVER, NEVER, TS, Schema, TimeKind
from millstream.algebra.types import Type
from millstream.algebra.values import decode, encode
from millstream.logical.nodes import pace as node
from millstream.logical.nodes.scan import Scan
from millstream.runtime.operator.contract import Input, Output
from millstream.runtime.pace import Pace
from tests.reference import plan as reference
from tests.runtime.driving import frame
from tests.tries import tries

MEMBERS = tuple(
    Schema.of(("ts", Type.BIGINT), (name, Type.BIGINT), kind=TimeKind.EXTERNAL, time="ts") for name in ("x", "y")
)
PLAN = node.Pace(tuple(Scan(name, schema) for name, schema in zip("ab", MEMBERS, strict=True)), "ts", 5)
ends = st.sampled_from([NEVER, NEVER + 3, FOREVER])


def rows(port: int, times: list[int]) -> list[dict[str, Any]]:
    return [{"ts": ts, MEMBERS[port].names[1]: number, TS: ts} for number, ts in enumerate(times)]


def given_to(operator: Pace, port: int, times: list[int]) -> Output:
    inputs = [Input(), Input()]
    inputs[port] = Input(frame(MEMBERS[port], rows(port, times)))
    return operator.process(inputs)


@settings(max_examples=tries(80))
@given(st.lists(st.tuples(st.integers(0, 1), st.integers(0, 30) | ends), max_size=40), st.lists(st.booleans()))
def test_pace_equals_the_reference(arrivals: list[tuple[int, int]], cuts: list[bool]) -> None:
    """The arrivals of each input are one member after the other for the reference."""
    members: list[tuple[int, list[int]]] = []
    for number, (port, ts) in enumerate(arrivals):
        if members and members[-1][0] == port and not (cuts and cuts[number % len(cuts)]):
            members[-1][1].append(ts)
        else:
            members.append((port, [ts]))
    scans = tuple(Scan(f"s{number}", MEMBERS[port]) for number, (port, _) in enumerate(members))
    plan = node.Pace(scans or PLAN.members, "ts", 5)
    lists = [[({k: v for k, v in row.items() if k != TS}, row[TS]) for row in rows(*member)] for member in members]
    expected = [ts for _, ts in reference.pace(plan, *lists)]
    operator, got, sent = Pace(**PLAN.parameters()), list[int](), list[int]()
    for port, times in members:
        bound = operator.output_bound([NEVER, NEVER])
        output = given_to(operator, port, times)
        emitted = [] if output.rows is None else output.rows[TS].to_list()
        assert all(ts >= bound for ts in emitted)
        got += emitted
        messages = [message for _, message in output.upstream]
        assert [at for at, _ in output.upstream] == ([0, 1] if messages else [])
        sent += [m.pattern.get("ts").hi for m in messages[:1] if isinstance(m, Feedback)]
        restored = Pace(**PLAN.parameters())
        restored.restore_scalars(decode(encode(operator.scalars())))
        operator = restored
    assert got == expected
    assert operator.late == len(arrivals) - len(expected)
    assert sent == sorted(set(sent))


def test_t24() -> None:
    operator = Pace(**PLAN.parameters())
    assert not given_to(operator, 0, [0, 4, 9]).upstream
    output = given_to(operator, 1, [3])
    told = Feedback(Intent.ASSUMED, Pattern.of(ts=below(4)))
    assert output.rows is not None and not output.rows.height
    assert output.upstream == ((0, told), (1, told))
    output = given_to(operator, 1, [4, 2])
    assert output.rows is not None and output.rows["ts"].to_list() == [4]
    assert not output.upstream  # the bound has not risen
    assert operator.late == 2


def test_the_time_of_the_result() -> None:
    """Its bound is that of the inputs, or the highest value minus the lateness."""
    operator = Pace(**PLAN.parameters())
    given_to(operator, 0, [20])
    assert operator.output_bound([20, NEVER]) == 15
    assert operator.output_bound([20, 18]) == 18
    assert operator.output_bound([FOREVER, 19]) == 19
    assert operator.output_bound([FOREVER, FOREVER]) == FOREVER


def test_another_column_than_the_time() -> None:
    """It becomes the time of the result; a NULL is dropped, and messages have its type and its name in each input."""
    schema = Schema.of(("at", Type.TIMESTAMP), ("seen", Type.TIMESTAMP), kind=TimeKind.EXTERNAL, time="at")
    other = Schema.of(("at", Type.TIMESTAMP), ("noted", Type.TIMESTAMP), kind=TimeKind.EXTERNAL, time="at")
    plan = node.Pace((Scan("a", schema), Scan("b", other)), "seen", 60_000_000)
    assert plan.schema.time == "seen" and not plan.schema.ordered
    operator = Pace(**plan.parameters())
    times = [datetime(2026, 1, 1, 10, minute) for minute in (0, 5)]
    page = frame(schema, [{"at": times[0], "seen": seen, TS: 0} for seen in (times[1], times[0], None)])
    output = operator.process([Input(page), Input()])
    assert output.rows is not None and output.rows["seen"].to_list() == [times[1]]
    assert output.rows[TS].to_list() == output.rows["seen"].dt.epoch("us").to_list()
    limit = below(datetime(2026, 1, 1, 10, 4))
    assert [str(m) for _, m in output.upstream] == [
        str(Feedback(Intent.ASSUMED, Pattern.of({name: limit}))) for name in ("seen", "noted")
    ]
    assert operator.late == 2
