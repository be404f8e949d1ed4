"""The sink that keeps results in memory."""

from __future__ import annotations

from threading import Thread

import polars as pl
import pytest

from millstream.algebra.punctuation.pattern import Pattern
from millstream.algebra.punctuation.punctuations import Punctuations
from millstream.algebra.punctuation.restriction import below, equal
from millstream.errors import OptionError
from millstream.runtime.sink import MANY, CollectedPunctuations
from millstream.sinks import MemorySink
from tests.sinks.sample import BEFORE_NOON, COUNTS, HOT, frame, hot


def test_rows_since_the_last_call() -> None:
    sink = MemorySink()
    sink.open("hot", HOT)
    assert sink.take_rows().equals(hot())
    sink.write(0, hot(1, 2), [BEFORE_NOON])
    sink.write(1, hot(), [])
    sink.write(2, hot(3), [BEFORE_NOON])
    assert sink.take_rows().equals(hot(1, 2, 3)) and sink.take_rows().equals(hot())
    sink.close()
    assert sink.take_punctuations() == [BEFORE_NOON, BEFORE_NOON] and sink.take_punctuations() == []


def test_a_batch_counts_once_even_when_resumed() -> None:
    sink = MemorySink()
    for _ in range(2):
        sink.open("hot", HOT)
        for batch in (0, 1, 1, 0):
            sink.write(batch, hot(batch), [BEFORE_NOON])
        sink.close()
    assert sink.take_rows().equals(hot(0, 1)) and len(sink.take_punctuations()) == 2
    sink.write(1, hot(1), [])
    assert sink.take_rows().is_empty()


def test_two_queries_cannot_share_it() -> None:
    sink = MemorySink()
    sink.open("hot", HOT)
    with pytest.raises(OptionError, match=r"M6043.*'hot', not of 'counts'"):
        sink.open("counts", COUNTS)


def test_nothing_is_lost_between_threads() -> None:
    sink = MemorySink()
    sink.open("counts", COUNTS)
    writer = Thread(target=lambda: [sink.write(n, frame(COUNTS, (n,)), []) for n in range(2000)])
    writer.start()
    taken: list[int] = []
    while writer.is_alive():
        taken += sink.take_rows()["n"].to_list()
    taken += sink.take_rows()["n"].to_list()
    assert taken == list(range(2000))


def test_punctuations_that_are_not_taken_do_not_pile_up() -> None:
    held = CollectedPunctuations()
    for at in range(5 * MANY):
        held.add([Pattern.of({"id": equal(at)}), Pattern.of({"ts": below(at, closed=True)})])
    taken = held.take()
    assert len(taken) <= MANY + 2
    told = Punctuations.of(taken)
    rows = pl.DataFrame({"id": [0, 4999, 5000, 5000], "ts": [9999, 9999, 4999, 5000]})
    assert told.match(rows).to_list() == [True, True, True, False]
    assert held.take() == []
