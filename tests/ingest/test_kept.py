"""Punctuation of a running stream against its templates."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.algebra.clock import VirtualClock
from millstream.algebra.punctuation.pattern import Pattern, parse_pattern
from millstream.algebra.punctuation.restriction import below, equal
from millstream.algebra.punctuation.template import Template
from millstream.algebra.schema import Schema
from millstream.algebra.types import Type
from millstream.ingest.kept import Kept
from millstream.ingest.losses import Losses
from millstream.ingest.source import StreamSource
from millstream.logical.catalog import StreamDefinition
from tests.tries import tries

BIDS = Schema.of(("k", Type.BIGINT), ("v", Type.BIGINT))
BY_KEY, RISING = Template.of(k="#"), Template.of(v="+")


def source(clock: VirtualClock, *templates: Template) -> StreamSource:
    return StreamSource(StreamDefinition("bids", BIDS, templates=templates), clock)


def pattern(text: str) -> Pattern:
    return parse_pattern(text, BIDS)


def test_punctuation_of_no_template_is_counted() -> None:
    made = source(VirtualClock(), BY_KEY)
    made.take([(1, 2), pattern("[1, *]"), pattern("[*, < 5]"), pattern("[*, {1, 2}]"), pattern("[*, *]")])
    kept = made.take_losses().kept
    assert (kept.strange, kept.example) == (2, "[v < 5]")
    assert made.take_losses().kept.strange == 0


def test_a_stream_without_templates_may_send_anything() -> None:
    made = source(VirtualClock())
    made.take([(1, 2), pattern("[1, *]")])
    assert not made.take_losses().kept.known


def test_how_long_tuples_wait_for_punctuation() -> None:
    clock = VirtualClock()
    made = source(clock, BY_KEY, RISING)
    told = Losses()

    def take(*elements: Any) -> Kept:
        nonlocal told
        made.take(list(elements))
        told = told + made.take_losses()
        return told.kept

    assert take((1, 2)).since == {"(k #)": (0, 0), "(v +)": (0, 0)}
    clock.advance(5)
    assert take((2, 3), pattern("[1, *]")).since == {"(v +)": (0, 0)}
    assert told.kept.told == {"(k #)": (1, 5)}
    clock.advance(5)
    assert take(pattern("[*, < 4]"), (3, 9)).since == {"(k #)": (1, 10), "(v +)": (1, 10)}
    assert take(pattern("[3, *]"), pattern("[*, < 10]")).since == {}  # at the same time of the clock


@settings(max_examples=tries(60))
@given(
    st.lists(st.one_of(st.integers(0, 5), st.sampled_from("kv")), max_size=25),
    st.lists(st.integers(1, 4), min_size=25, max_size=25),
)
def test_shards_and_cuts_know_the_same(items: list[int | str], cuts: list[int]) -> None:
    """Two shards, each with some of the tuples and all punctuation, know together what one source knows."""
    clock = VirtualClock()
    whole, shards = source(clock, BY_KEY, RISING), [source(clock, BY_KEY, RISING) for _ in range(2)]
    one, both = Losses(), Losses()
    while items:
        part, items = items[: cuts[0]], items[cuts[0] :]
        cuts = cuts[1:]
        elements = [
            (10 + i, 10) if isinstance(i, int) else Pattern.of(k=equal(1)) if i == "k" else Pattern.of(v=below(1))
            for i in part
        ]
        whole.take(elements)
        for number, shard in enumerate(shards):
            shard.take([e for e in elements if isinstance(e, Pattern) or e[0] % 2 == number])
        one += whole.take_losses()
        both = both + shards[0].take_losses() + shards[1].take_losses()
        clock.advance(3)
        assert both.kept.since == one.kept.since and both.kept.told == one.kept.told
