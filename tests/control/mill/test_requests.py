"""Punctuation on request: in one process and in jobs, over shards, stages and restarts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.config import Options
from millstream.control.mill import LocalMill
from millstream.control.mill.base import Mill
from millstream.errors import BindError
from millstream.testing.runner import LocalHost
from tests.tries import tries

STREAMS = """
CREATE STREAM a (id BIGINT, seller BIGINT) PUNCTUATED ON (id #) PUNCTUATED ON (seller #);
CREATE STREAM b (auction BIGINT, bidder BIGINT) PUNCTUATED ON (auction #) PUNCTUATED ON (bidder #);
CREATE STREAM p (id BIGINT, city BIGINT) PUNCTUATED ON (id #)
"""
ONE_KEY = "SELECT a.id, a.seller, b.bidder FROM a JOIN b ON a.id = b.auction"
TWO_JOINS = "SELECT a.id, b.bidder, p.city FROM a JOIN b ON a.id = b.auction JOIN p ON a.id = p.id"
TWO_STAGES = "SELECT a.id, b.bidder, p.city FROM a JOIN b ON a.id = b.auction JOIN p ON b.bidder = p.id"


@pytest.fixture
def host() -> Iterator[LocalHost]:
    yield LocalHost()


def begin(mill: Mill, query: str) -> None:
    mill.execute(STREAMS)
    mill.execute("SET propagation = 'request'")
    mill.add_query("q", query)


def opened(host: LocalHost, query: str) -> LocalMill:
    mill = host.open(Options(shards=2))
    begin(mill, query)
    return mill


def emitted(mill: Mill) -> list[str]:
    return sorted(map(str, mill.take_punctuations("q")))


def requested(mill: Mill) -> list[str]:
    mill.request_punctuation("q")
    return emitted(mill)


def close_a(mill: Mill) -> None:
    mill.insert("a", [(1, 10)])
    mill.punctuate("a", "[id = 1]", "[id = 2]")
    mill.batch()


@pytest.mark.parametrize("query", [ONE_KEY, TWO_JOINS])
def test_nothing_is_emitted_before_a_request(host: LocalHost, query: str) -> None:
    for mill in (LocalHost(cached=False).open(Options()), opened(host, query)):
        if not mill.queries:
            begin(mill, query)
        close_a(mill)
        assert emitted(mill) == []
        assert requested(mill) == ["[id = 2]"]
        mill.punctuate("b", "[auction = 1]")
        mill.punctuate("p", "[id = 1]")
        mill.batch()
        assert emitted(mill) == []
        assert len(requested(mill)) == 1
        assert requested(mill) == []


def test_a_request_goes_through_the_stages(host: LocalHost) -> None:
    mill = opened(host, TWO_STAGES)
    assert mill.job("q").stages == 2
    mill.insert("b", [(1, 5)])
    mill.punctuate("b", "[bidder = 6]")
    mill.punctuate("p", "[id = 6]")
    mill.batch()
    assert emitted(mill) == []
    assert requested(mill) == ["[bidder = 6]"]
    assert requested(mill) == []


def test_only_the_named_query_answers(host: LocalHost) -> None:
    mill = opened(host, ONE_KEY)
    mill.add_query("other", "SELECT b.bidder FROM a JOIN b ON a.id = b.auction WHERE a.seller > 3")
    close_a(mill)
    mill.request_punctuation("OTHER")
    assert emitted(mill) == [] and len(mill.take_punctuations("other")) == 0
    with pytest.raises(BindError, match="unknown query 'third'"):
        mill.request_punctuation("third")


@pytest.mark.parametrize("query", [ONE_KEY, TWO_STAGES])
def test_a_request_is_answered_once_over_a_restart(host: LocalHost, query: str) -> None:
    mill = opened(host, query)
    mill.punctuate("b", "[bidder = 6]")
    mill.punctuate("p", "[id = 6]")
    mill.request_punctuation("q")
    again = LocalMill(mill.options, jobs=mill.jobs)  # before the job has processed it
    assert len(emitted(again)) == 1
    third = host.restart(again)
    assert emitted(third) == []
    third.punctuate("b", "[bidder = 7]")
    third.punctuate("p", "[id = 7]")
    third.batch()
    assert emitted(third) == []
    assert len(requested(third)) == 1


def test_a_dropped_query_gets_no_request(host: LocalHost) -> None:
    mill = opened(host, TWO_STAGES)
    close_a(mill)
    mill.request_punctuation("q")
    mill.execute("DROP QUERY q")
    mill.sync()
    with pytest.raises(BindError, match="unknown query"):
        mill.request_punctuation("q")


COLUMNS = {"a": ("id", "seller"), "b": ("auction", "bidder"), "p": ("id", "city")}
keys = st.integers(1, 4)
rows = st.tuples(st.just("row"), st.sampled_from("abp"), keys, keys)
punctuations = st.tuples(st.just("punctuation"), st.sampled_from("aabbp"), st.integers(0, 1), keys)
requests = st.tuples(st.just("request"))


@given(
    st.sampled_from([ONE_KEY, TWO_JOINS, TWO_STAGES]),
    st.lists(rows | punctuations | punctuations | requests, max_size=40),
    st.integers(1, 3),
    st.booleans(),
)
@settings(max_examples=tries(50))
def test_jobs_answer_as_one_process_does(
    query: str, steps: list[tuple[str, str, int, int]], shards: int, cached: bool
) -> None:
    host = LocalHost(cached=cached)
    whole, mill = LocalMill(), host.open(Options(shards=shards))
    begin(whole, query)
    begin(mill, query)
    found: tuple[Counter[object], Counter[object]] = (Counter(), Counter())
    for step in [*steps, ("request",)]:
        for number, made in enumerate((whole, mill)):
            match step:
                case "row", stream, first, second:
                    made.insert(stream, [(first, second)])
                case "punctuation", stream, column, value:
                    made.punctuate(stream, f"[{COLUMNS[stream][column]} = {value}]")
                case _:
                    made.request_punctuation("q")
                    found[number].update(made.take_rows("q").rows())
        if step[0] == "request":
            assert emitted(mill) == emitted(whole)
            assert found[0] == found[1]
            mill = host.restart(mill)
