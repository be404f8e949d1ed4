"""Nodes that stand on an aggregate which answers early, and remember something of its answers by window and group."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from millstream.algebra.window import WINDOW_END
from millstream.logical.contract.requirements import Punctuated, Requirement
from millstream.logical.contract.state_parts import StatePart
from millstream.logical.nodes.kinds.common import Passing
from millstream.logical.nodes.window_aggregate import WindowAggregate
from millstream.logical.plan import Key, Names, subsets


class Answering(Passing):
    """Remembers answers until the final ones. `keys`: the columns that name a window and group."""

    __slots__ = ()

    passes_answers = True
    answers = True
    stateless = False
    positional = False
    punctuates: Names = frozenset()

    keys: tuple[str, ...]

    @property
    def timed(self) -> bool:
        """True if the windows are over the time of the stream, so that its progress closes them."""
        aggregate = next((part for part in reversed([*self.input.walk()]) if isinstance(part, WindowAggregate)), None)
        return aggregate is not None and aggregate.windows is not None and aggregate.attribute is None

    @property
    def together(self) -> list[str]:
        """The columns whose equal values have to be on one shard: those of the aggregate, which is there, too."""
        return [name for name in self.keys if name != WINDOW_END]

    def hash_keys(self) -> Iterable[Key]:
        return subsets(self.together)

    def keys_below(self, key: Key) -> list[Key] | None:
        return [key] if {*key} <= {*self.together} else None

    def requirements(self, part: StatePart) -> Iterator[Requirement]:
        yield Punctuated(self.input, self.keys)
