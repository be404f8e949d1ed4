"""Punctuation that shards emit at different times, because each of them waits for its own tuples alone.

    WindowAggregate BY a.k, b.ts       closes groups by punctuation on b.ts
    └─ WindowJoin a.k = b.k            holds it back while it stores tuples of b that match

On one shard the join emits `[b.ts < 9]` when it stores no older tuple of any key; on several, each of them when it
stores none of its own keys. An operator that reads such punctuation is in a later stage, where it holds once all shards
have emitted it. That is not necessary for punctuation on single values of the hash key: tuples that match it are on one
shard alone.

Only declared punctuation counts, and bounds on a stream's time. Other punctuation (M5063), and the end of one of the
joined streams, waits in the same stage until all shards have received it (`consensus`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from millstream.algebra.punctuation.template import SINGLE, UP_TO, Template
from millstream.logical.contract.offers import Offer, Offers, Time, distinct
from millstream.logical.nodes.scan import Scan
from millstream.logical.plan import Key, Plan

_HELD, _MET = "held", "met"
"""Origins of offers: emitted by each shard at a time of its own; emitted by all at the same time."""


def reads_held(plan: Plan, keys: Iterable[Key]) -> list[bool]:
    """Return for each input, hashed on its key, whether the node reads punctuation that its shards hold back."""
    return [
        holds(part) and any(plan.reads_punctuation(place, columns) for columns in _held(part, key))
        for place, (part, key) in enumerate(zip(plan.inputs, keys, strict=True))
    ]


def holds(plan: Plan) -> bool:
    """Return whether a plan holds punctuation back."""
    return plan.holds_punctuation or any(map(holds, plan.inputs))


def reads_any(plan: Plan, place: int) -> bool:
    """Return whether some punctuation of an input, or its end, makes a node emit or purge."""
    columns = (frozenset({name}) for name in plan.inputs[place].schema.names)
    return any(plan.reads_punctuation(place, each) for each in (frozenset[str](), *columns))


def expected(plan: Plan, key: Key) -> set[frozenset[str]]:
    """Return the sets of columns that punctuation restricts which a plan, hashed on `key`, is known to emit, other than
    on single values of the key."""
    return {offer.attributes for offer in _offers(plan, key).templates if not _pinned(plan, key, offer)}


def _held(plan: Plan, key: Key) -> set[frozenset[str]]:
    """Return the sets of columns that punctuation restricts which the shards of a plan hold back."""
    return {offer.attributes for offer in _offers(plan, key).templates if _HELD in offer.origin}


def _offers(plan: Plan, key: Key | None) -> Offers:
    """Return all punctuation that a plan may emit, hashed on `key`; None: it is in an earlier stage."""
    if isinstance(plan, Scan):
        return _offered(plan.templates)
    below = None if key is None else plan.keys_below(key)
    inputs = tuple(_offers(part, None if below is None else below[n]) for n, part in enumerate(plan.inputs))
    parts = tuple(replace(part, bounds=("time",), purged=True) for part in plan.state_parts(inputs))
    passed = plan.passes_on(inputs, parts).templates
    made = _offered(Template(((name, UP_TO),)) for name in plan.punctuates).templates
    templates = distinct((*passed, *made))
    if below is not None and plan.holds_punctuation:
        apart = (offer for offer in templates if not _pinned(plan, key or (), offer))
        held = {offer: replace(offer, origin=_HELD) for offer in apart}
        templates = tuple(held.get(offer, offer) for offer in templates)
    return Offers(Time.MOVES, ("time",), templates)


def _offered(templates: Iterable[Template]) -> Offers:
    return Offers(Time.MOVES, ("time",), tuple(Offer(template, _MET) for template in templates))


def _pinned(plan: Plan, key: Key, offer: Offer) -> bool:
    """Return whether all tuples that match a punctuation are on one shard: it names a single value of each column of
    the key, or of a column that equals it."""
    singles = {name for name, class_ in offer.template.classes if class_ == SINGLE}
    singles |= {name for group in plan.equal_columns for name in group if not singles.isdisjoint(group)}
    return singles >= {*key}
