"""Nodes that stand on an aggregate which answers early, and remember something of its answers by window and group."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence

from millstream.logical.contract.requirements import Punctuated, Requirement
from millstream.logical.contract.state_parts import StatePart
from millstream.logical.nodes.kinds.common import Passing
from millstream.logical.plan import Key, Names, subsets


class Answering(Passing):
    """Remembers answers until the final ones. `keys`: the columns that name a window and group."""

    __slots__ = ()

    stateless = False
    positional = False
    punctuates: Names = frozenset()

    keys: tuple[str, ...]

    @property
    @abstractmethod
    def together(self) -> Sequence[str]:
        """The columns whose equal values have to be on one shard."""

    def hash_keys(self) -> Iterable[Key]:
        return subsets(list(self.together))

    def keys_below(self, key: Key) -> list[Key] | None:
        return [key] if {*key} <= {*self.together} else None

    def requirements(self, part: StatePart) -> Iterator[Requirement]:
        yield Punctuated(self.input, self.keys)
