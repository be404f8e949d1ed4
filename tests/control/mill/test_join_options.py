"""Options of joins, set while queries run."""

from __future__ import annotations

import pytest

from millstream.algebra.punctuation.pattern import Pattern
from millstream.algebra.punctuation.restriction import equal
from millstream.config import Options
from millstream.control.mill import LocalMill
from millstream.errors import OptionError
from millstream.runtime.join.settings import JoinSettings
from millstream.runtime.join.window_join import WindowJoin

STATEMENTS = """
CREATE STREAM auctions (item BIGINT, seller VARCHAR) PUNCTUATED ON (item #);
CREATE STREAM bids (item BIGINT, price BIGINT) PUNCTUATED ON (item #);
CREATE QUERY q AS SELECT a.item, a.seller, b.price FROM auctions a JOIN bids b ON a.item = b.item
"""


def mill(**options: object) -> LocalMill:
    made = LocalMill(Options(**options))
    made.execute(STATEMENTS)
    return made


def joins(made: LocalMill) -> list[WindowJoin]:
    return [
        operator
        for host in made.hosts("q")
        for operator in host.compiler.operators("q")
        if isinstance(operator, WindowJoin)
    ]


def item(value: int) -> Pattern:
    return Pattern.of(item=equal(value))


def test_options_reach_the_joins_of_all_shards() -> None:
    made = mill(shards=2, purge_threshold=5, propagation="time:2 s", punctuation_index="EAGER", join_memory="1 MB")
    expected = JoinSettings(5, "eager", "time", propagation_period=2_000_000, memory_limit=1_000_000)
    assert [join.settings for join in joins(made)] == [expected] * 2
    made.execute("SET propagation = 'count:3'")
    made.execute("SET join_memory = 0")
    assert [join.settings for join in joins(made)] == [JoinSettings(5, "eager", "count", propagation_count=3)] * 2
    restored = made.restarted()
    assert [join.settings for join in joins(restored)] == [join.settings for join in joins(made)]


@pytest.mark.parametrize("shards", [1, 2])
def test_punctuation_on_request(shards: int) -> None:
    made = mill(shards=shards, propagation="request")
    made.insert("auctions", [(1, "ann")])
    made.punctuate("auctions", item(1), item(2))
    made.batch()
    assert made.take_punctuations("q") == []
    made.request_punctuation("q")
    assert made.take_punctuations("q") == [item(2)]
    made.punctuate("bids", item(1))
    made.batch()
    assert made.take_punctuations("q") == [] and made.state_rows("q") == 0
    restored = made.restarted()
    restored.request_punctuation("q")
    assert restored.take_punctuations("q") == [item(1)]


@pytest.mark.parametrize("shards", [1, 2])
def test_punctuation_by_time_of_streams_without_time(shards: int) -> None:
    made = mill(shards=shards, propagation="time:5 s")
    taken = []
    for value in range(3):
        made.punctuate("auctions", item(value))
        made.batch()
        taken.append(made.take_punctuations("q"))
        made.advance(6_000_000)
        taken.append(made.take_punctuations("q"))
    assert taken == [[], [item(0)], [], [item(1)], [], [item(2)]]


def test_results_from_disk_are_emitted_when_the_inputs_pause() -> None:
    made = mill(join_memory=1)
    made.insert("auctions", [(1, "ann"), (2, "bob")])
    made.batch()
    made.insert("bids", [(1, 10), (2, 20)])
    made.batch()
    assert sorted(made.take_rows("q").rows()) == [(1, "ann", 10), (2, "bob", 20)]
    restored = made.restarted()
    assert restored.state_rows("q") == made.state_rows("q") == 4
    restored.insert("bids", [(1, 11)])
    restored.punctuate("auctions", item(1))
    restored.punctuate("bids", item(1))
    restored.batch()
    assert restored.take_rows("q").rows() == [(1, "ann", 11)]
    assert restored.take_punctuations("q") == [item(1)]
    assert restored.state_rows("q") == 2


def test_few_tuples_that_missed_partners_wait_for_more() -> None:
    made = mill(join_memory=1, disk_join_threshold=3)
    made.insert("auctions", [(1, "ann"), (2, "bob")])
    made.batch()
    made.insert("bids", [(1, 10), (2, 20)])
    made.batch()
    assert made.take_rows("q").height == 0
    made.insert("bids", [(1, 11)])
    made.batch()
    assert made.take_rows("q").height == 3
    made.insert("bids", [(2, 21)])
    made.batch()
    assert made.take_rows("q").height == 0
    made.execute("SET disk_join_threshold = 1")
    made.batch()
    assert made.take_rows("q").rows() == [(2, "bob", 21)]


@pytest.mark.parametrize("shards", [1, 2])
@pytest.mark.parametrize("restart", [False, True])
def test_listeners_are_changed_while_a_query_runs(shards: int, restart: bool) -> None:
    made = mill(shards=shards)
    made.execute("SET join_listeners = 'propagate_request: state purge, Index Build, propagation'")
    assert made.options.join_listeners == "PropagateRequest: State Purge, Index Build, Propagation"
    made.insert("auctions", [(1, "ann"), (2, "bob")])
    made.insert("bids", [(1, 10)])
    made.punctuate("auctions", item(1))
    made.punctuate("bids", item(1))
    made.batch()
    assert made.take_rows("q").rows() == [(1, "ann", 10)]
    assert made.take_punctuations("q") == [] and made.state_rows("q") == 3  # no component listens
    one = made.restarted() if restart else made
    one.request_punctuation("q")
    one.batch()
    assert one.take_punctuations("q") == [item(1)] and one.state_rows("q") == 1
    one.execute("SET join_listeners = 'default'")
    one.punctuate("bids", item(2))
    one.batch()
    assert one.state_rows("q") == 0 and one.take_punctuations("q") == [item(2)]


@pytest.mark.parametrize("shards", [1, 2])
def test_a_lowered_threshold_purges_what_was_deferred(shards: int) -> None:
    made = mill(shards=shards, purge_threshold=10)
    made.insert("auctions", [(1, "ann"), (2, "bob")])
    made.punctuate("bids", item(1))
    made.batch()
    assert made.state_rows("q") == 2
    made.execute("SET purge_threshold = 1")
    made.batch()
    assert made.state_rows("q") == 1


@pytest.mark.parametrize("option", ["join_memory = 1000", "propagation = 'request'", "multi_join = 'never'"])
def test_a_query_is_restored_as_it_was_planned(option: str) -> None:
    made = mill()
    made.execute("CREATE STREAM parcels (item BIGINT, weight DOUBLE) PUNCTUATED ON (item #)")
    three = "SELECT a.item, b.price, c.weight FROM auctions a, bids b, parcels c"
    made.add_query("three", f"{three} WHERE a.item = b.item AND b.item = c.item")
    made.insert("auctions", [(1, "ann")])
    made.insert("bids", [(1, 10)])
    made.execute(f"SET {option}")
    restored = made.restarted().restarted()
    assert restored.options == made.options
    restored.insert("parcels", [(1, 0.5)])
    restored.batch()
    assert restored.take_rows("three").rows() == [(1, 10, 0.5)]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("purge_threshold", 0),
        ("propagation", "sometimes"),
        ("propagation", "count"),
        ("propagation", "count:0"),
        ("propagation", "time:0"),
        ("propagation", "time:3 parsecs"),
        ("propagation", "request:4"),
        ("punctuation_index", "both"),
        ("join_memory", "much"),
        ("join_memory", -1),
        ("join_listeners", "StreamFull: Disk Join"),
        ("join_listeners", "StreamEmpty: Disk Joint"),
        ("join_listeners", "StreamEmpty if bored: Disk Join"),
        ("join_listeners", "StreamEmpty"),
        ("disk_join_threshold", 0),
    ],
)
def test_invalid_values_of_options(name: str, value: object) -> None:
    with pytest.raises(OptionError) as caught:
        LocalMill().set_option(name, value)
    assert caught.value.code == "M6002" and caught.value.hint


def test_explain_says_why_streams_are_joined_pairwise() -> None:
    made = mill()
    made.execute("CREATE STREAM parcels (item BIGINT, weight DOUBLE) PUNCTUATED ON (item #)")
    three = (
        "EXPLAIN SELECT a.item, b.price FROM auctions a, bids b, parcels c WHERE a.item = b.item AND b.item = c.item"
    )
    assert "MultiJoin" in made.execute(three) and "pairwise" not in made.execute(three)
    made.execute("SET join_memory = '1 MB'")
    assert made.execute(three).endswith("\n\njoined pairwise because join_memory is set")
    made.execute("SET propagation = 'request'")
    assert made.execute(three).endswith("because join_memory and propagation are set")
    made.execute("SET multi_join = 'always'")
    assert "MultiJoin" in made.execute(three) and "pairwise" not in made.execute(three)
