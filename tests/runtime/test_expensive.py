"""Work with a budget against the queue that handles a tuple at a time, with feedback, restored after every step."""

from __future__ import annotations

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.algebra.early import query_prod, stream_prod
from millstream.algebra.expression import Binary, Column, Literal
from millstream.algebra.feedback import Feedback, Intent
from millstream.algebra.punctuation.pattern import Pattern
from millstream.algebra.punctuation.punctuations import Punctuations
from millstream.algebra.punctuation.restriction import below, between, equal
from millstream.algebra.schema import FOREVER, NEVER, TS, Schema, TimeKind
from millstream.algebra.types import Type
from millstream.algebra.values import decode, encode
from millstream.logical.nodes import expensive as node
from millstream.logical.nodes.scan import Scan
from millstream.runtime.expensive import Expensive
from millstream.runtime.operator.contract import Input, Output
from millstream.runtime.passed import passed_by
from tests.reference.expensive import Expensive as Queue
from tests.runtime.driving import Element, Row, Trace, cuts, elements, frame, steps
from tests.tries import tries

SCHEMA = Schema.of(
    ("ts", Type.BIGINT), ("g", Type.BIGINT), ("v", Type.BIGINT), ("w", Type.BIGINT), kind=TimeKind.EXTERNAL, time="ts"
)
DOUBLED = Binary(Type.BIGINT, "*", Column(Type.BIGINT, "v"), Literal(Type.BIGINT, 2))
GROUPS = [Pattern.of(g=equal(1)), Pattern.of(g=equal(2))]
PATTERNS = [*GROUPS, Pattern.of(ts=below(0)), Pattern.of(g=equal(3), ts=below(9))]


def operator(budget: int, name: str = "w", aside: int | None = None, shed: bool = False) -> Expensive:
    return Expensive(**node.Expensive(Scan("s", SCHEMA), name, DOUBLED, budget, aside=aside, shed=shed).parameters())


def restored(one: Expensive, budget: int, aside: int | None = None, shed: bool = False) -> Expensive:
    made = operator(budget, aside=aside, shed=shed)
    for name, table in one.tables().items():
        made.tables()[name].append(table.frame())
    made.restore_scalars(decode(encode(one.scalars())))
    return made


def row(ts: int, g: int = 0, v: int | None = 1) -> Row:
    return {"ts": ts, "g": g, "v": v, "w": None, TS: ts}


def done(one: Expensive) -> Output:
    """The output of one batch's work."""
    outputs: list[Output] = []
    one.work(allowed=True)
    while one.unfinished():
        outputs.append(one.process([Input()]))
    one.work(allowed=False)
    rows = [output.rows for output in outputs if output.rows is not None]
    punctuations = [output.punctuations for output in outputs if output.punctuations is not None]
    return Output(pl.concat(rows) if rows else None, Punctuations.concat(punctuations) if punctuations else None)


@settings(max_examples=tries(60))
@given(
    items=elements(),
    cut=cuts,
    budget=st.integers(1, 5),
    said=st.lists(st.tuples(st.booleans(), st.sampled_from([None, None, *PATTERNS])), min_size=1, max_size=6),
)
def test_equals_the_queue(
    items: list[Element], cut: list[bool], budget: int, said: list[tuple[bool, Pattern | None]]
) -> None:
    one, queue, trace = operator(budget), Queue(budget), Trace()
    for number, step in enumerate(steps(items, cut, SCHEMA, "ts")):
        trace.take(one.process([step]))
        for each in [] if step.rows is None else step.rows.to_dicts():
            queue.receive(each)
        assumed, pattern = said[number % len(said)]
        if pattern is not None and assumed:
            one.disclaim(pattern, (None,))
            queue.disclaim(pattern)
        elif pattern is not None and not any(p.covers(pattern) for p in trace.punctuations):
            one.answer(Feedback(Intent.DESIRED, pattern))
            queue.desire(pattern)
        output = done(one)
        queue.desired = [each for each in queue.desired if each in one._desired]  # punctuation ends them
        expected = sorted(each["ts"] for each in queue.work())
        assert ([] if output.rows is None else sorted(output.rows["ts"].to_list())) == expected
        trace.take(output)
        assert one.pending() == one.state_rows() == len(queue.waiting)
        lowest = min((each[TS] for each in queue.waiting), default=FOREVER)
        assert one.output_bound([FOREVER]) == lowest
        one = restored(one, budget)
    while queue.waiting:
        trace.take(done(one))
        queue.work()
    assert not one.state_rows() and one.output_bound([7]) == 7
    assert all(made["w"] == (None if made["v"] is None else made["v"] * 2) for made in trace.rows)


def test_a_punctuation_waits_for_the_tuples_that_it_covers() -> None:
    one = operator(1)
    page = frame(SCHEMA, [row(9), row(12)])
    output = one.process([Input(page, Punctuations.of([Pattern.of(ts=below(10))], 10), 12)])
    assert output.rows is None and output.punctuations is not None and not len(output.punctuations)
    assert output.punctuations.progress == one.output_bound([12]) == 9
    output = done(one)
    assert output.rows is not None and output.rows["ts"].to_list() == [9]
    assert output.punctuations is not None and output.punctuations.patterns() == [Pattern.of(ts=below(10))]
    assert output.punctuations.progress == 10 and one.output_bound([12]) == 12


def test_pruning_frees_punctuation_without_work() -> None:
    one = operator(5)
    one.process([Input(frame(SCHEMA, [row(9)]), Punctuations.of([Pattern.of(ts=below(10))]), NEVER)])
    assert not one.unfinished()
    one.disclaim(Pattern.of(ts=below(20)), (None,))
    assert one.unfinished() and one.pruned == 1
    freed = one.process([Input()]).punctuations
    assert freed is not None and freed.patterns() == [Pattern.of(ts=below(10))]
    assert not one.unfinished()


def test_the_pending_tuples_of_the_worked_example() -> None:
    """T24: pending 1, 3, 5, 7 when PACE says that it ignores what is older than 4."""
    one = operator(2)
    one.process([Input(frame(SCHEMA, [row(ts) for ts in (1, 3, 5, 7)]))])
    one.disclaim(Pattern.of(ts=below(4)), (None,))
    rows = done(one).rows
    assert rows is not None and rows["ts"].to_list() == [5, 7]


def test_feedback_on_the_computed_column_prunes_nothing() -> None:
    one = operator(1)
    one.process([Input(frame(SCHEMA, [row(1)]))])
    one.disclaim(Pattern.of(w=equal(2)), (None,))
    one.answer(Feedback(Intent.DESIRED, Pattern.of(w=equal(2))))
    assert one.pending() == 1 and not one.scalars()["desired"]


def test_punctuation_on_a_replaced_column_ends_there() -> None:
    one = operator(1, "g")
    output = one.process([Input(None, Punctuations.of([Pattern.of(g=equal(1)), Pattern.of(v=equal(1))]))])
    assert output.punctuations is not None and output.punctuations.patterns() == [Pattern.of(v=equal(1))]


def test_no_work_beyond_the_budget_in_a_chain() -> None:
    first, second = operator(3), operator(2)
    first.process([Input(frame(SCHEMA, [row(ts) for ts in range(9)]))])
    for one in (first, second):
        one.work(allowed=True)
    found = 0
    while first.unfinished() or second.unfinished():
        output = first.process([Input()]) if first.unfinished() else Output()
        worked = second.process([Input(output.rows)]).rows
        found += 0 if worked is None else worked.height
    assert found == 2 and first.pending() == 6 and second.pending() == 1


def test_work_is_done_in_pieces_that_feedback_can_follow() -> None:
    one = operator(20)
    one.process([Input(frame(SCHEMA, [row(ts) for ts in range(40)]))])
    one.work(allowed=True)
    rows = one.process([Input()]).rows
    assert rows is not None and rows["ts"].to_list() == [0, 1]
    one.disclaim(Pattern.of(ts=below(30)), (None,))
    assert one.unfinished()
    rows = one.process([Input()]).rows
    assert rows is not None and rows["ts"].to_list() == [30, 31] and one.pending() == 8


PRODS = [Pattern(), Pattern.of(ts=below(0)), Pattern.of(ts=below(20)), Pattern.of(ts=below(9), g=equal(1))]


def say(word: str, one: Expensive, queue: Queue, trace: Trace, pattern: Pattern, number: int) -> None:
    """Tell the operator and the queue the same; `number`: the time of a prod."""
    match word:
        case "prod":
            one.early([None], stream_prod(pattern, SCHEMA).at(number))
            end = pattern.get("ts").hi if "ts" in pattern.attributes else number
            queue.prod(Pattern.of({TS: below(end)} | {name: r for name, r in pattern.items if name != "ts"}))
        case "desire" if not any(p.covers(GROUPS[0]) for p in trace.punctuations):
            one.answer(Feedback(Intent.DESIRED, GROUPS[0]))
            queue.desire(GROUPS[0])
        case "disclaim":
            one.disclaim(GROUPS[1], (None,))
            queue.disclaim(GROUPS[1])
    queue.desired = [each for each in queue.desired if each in one._desired]  # punctuation ends them


@settings(max_examples=tries(80))
@given(
    items=elements(),
    cut=cuts,
    budget=st.integers(1, 12),
    aside=st.integers(0, 3),
    said=st.lists(st.sampled_from(["", "", "prod", "desire", "disclaim"]), min_size=1, max_size=6),
    patterns=st.lists(st.sampled_from(PRODS), min_size=1, max_size=3),
)
def test_tuples_aside_equal_the_queue(
    items: list[Element], cut: list[bool], budget: int, aside: int, said: list[str], patterns: list[Pattern]
) -> None:
    """Prods put tuples aside; no punctuation, and no range, overtakes a tuple."""
    one, queue, trace = operator(budget, aside=aside), Queue(budget, aside), Trace()
    for number, step in enumerate(steps(items, cut, SCHEMA, "ts")):
        trace.take(one.process([step]))
        for each in [] if step.rows is None else step.rows.to_dicts():
            queue.receive(each)
        pattern = patterns[number % len(patterns)]
        say(said[number % len(said)], one, queue, trace, pattern, number)
        output = done(one)
        expected = sorted(each["ts"] for each in queue.work())
        assert ([] if output.rows is None else sorted(output.rows["ts"].to_list())) == expected
        trace.take(output)
        assert (one.pending(), one.aside) == (len(queue.waiting) + len(queue.aside), len(queue.aside))
        lowest = min((each[TS] for each in (*queue.waiting, *queue.aside)), default=FOREVER)
        assert one.output_bound([FOREVER]) == lowest
        one = restored(one, budget, aside)
    while one.pending():
        trace.take(done(one))
        queue.work()
    assert not queue.waiting and not queue.aside and not one.state_rows()


@settings(max_examples=tries(80))
@given(
    items=elements(),
    cut=cuts,
    budget=st.integers(1, 12),
    said=st.lists(st.sampled_from(["", "prod", "prod", "desire", "disclaim"]), min_size=1, max_size=6),
    patterns=st.lists(st.sampled_from(PRODS), min_size=1, max_size=3),
)
def test_shed_tuples_equal_the_queue(
    items: list[Element], cut: list[bool], budget: int, said: list[str], patterns: list[Pattern]
) -> None:
    """A notice names every tuple that is shed, and no punctuation, and no time, that it held back is before it."""
    one, queue, trace = operator(budget, shed=True), Queue(budget, sheds=True), Trace()
    reached = NEVER
    for number, step in enumerate(steps(items, cut, SCHEMA, "ts")):
        lost = len(queue.lost)
        outputs = [one.process([step])]
        for each in [] if step.rows is None else step.rows.to_dicts():
            queue.receive(each)
        pattern = patterns[number % len(patterns)]
        say(said[number % len(said)], one, queue, trace, pattern, number)
        outputs.append(Output(shed=one.take_shed()))
        outputs.append(done(one))
        expected = sorted(each["ts"] for each in queue.work())
        worked = outputs[-1].rows
        assert ([] if worked is None else sorted(worked["ts"].to_list())) == expected
        told: set[tuple[int, int]] = set()
        for output in outputs:
            if output.shed is not None:
                told |= set(output.shed.rows.select("__first", "g").rows())
                assert output.shed.names == ["ts", "g", "v"] and all(at >= reached for at, _ in told)
                assert not any(p.matches(each) for each in output.shed.rows.to_dicts() for p in trace.punctuations)
            trace.take(output)
            reached = max(reached, NEVER if output.punctuations is None else output.punctuations.progress)
        assert told == {(each[TS], each["g"]) for each in queue.lost[lost:]} and one.shed == len(queue.lost)
        assert one.pending() == len(queue.waiting) and one.aside == 0
        reached = max(reached, one.output_bound([NEVER if step.bound == NEVER else step.bound]))
        one = restored(one, budget, shed=True)
    while one.pending():
        trace.take(done(one))
        queue.work()
    assert not queue.waiting and not one.state_rows()


def test_a_range_is_told_behind_the_tuples_aside() -> None:
    one = operator(2, aside=0)
    one.process(
        [Input(frame(SCHEMA, [row(ts) for ts in (7, 8, 9, 9)]), Punctuations.of([Pattern.of(ts=below(10))], 10))]
    )
    one.early([None], stream_prod(Pattern.of(ts=below(10)), SCHEMA))
    assert one.aside == 4
    told = one.process([Input(frame(SCHEMA, [row(12)]), Punctuations.of([Pattern.of(ts=below(20))], 20))]).punctuations
    assert told is not None and told.patterns() == [Pattern.of(ts=between(9, 12, False, False))]
    worked = done(one)
    assert worked.rows is not None and worked.rows["ts"].to_list() == [12, 7]
    assert worked.punctuations is not None
    assert worked.punctuations.patterns() == [Pattern.of(ts=between(9, 20, False, False))]
    done(one)
    worked = done(one)
    assert worked.punctuations is not None and worked.punctuations.progress == 20
    assert worked.punctuations.patterns() == [
        Pattern.of(ts=below(10)),
        Pattern.of(ts=below(20)),
        Pattern.of(ts=below(20)),
    ]


def test_prods_of_queries_and_of_other_columns() -> None:
    names = SCHEMA.names
    assert passed_by(query_prod(Pattern.of(window_end=equal(20)), "q"), names) == Pattern.of({TS: below(20)})
    assert passed_by(query_prod(Pattern.of(k=equal(20)), "q"), names) is None
    assert passed_by(query_prod(Pattern(), "q"), names) is None
    assert passed_by(query_prod(Pattern(), "q").at(7), names) == Pattern.of({TS: below(7)})
    assert passed_by(stream_prod(Pattern.of(g=equal(1)), SCHEMA).renamed({}), names) is None
