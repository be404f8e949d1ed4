"""A call of an aggregate that takes one tuple at a time and returns any number of rows."""

from __future__ import annotations

from abc import ABC, abstractmethod

from millstream.algebra.frame import Frame
from millstream.algebra.schema import Attribute


class RowCall(ABC):
    """Implementations name the call, the input columns that it reads, and the columns of its result."""

    __slots__ = ()

    name: str
    arguments: tuple[str, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """The input columns that it reads."""
        return self.arguments

    @property
    @abstractmethod
    def function(self) -> str:
        """The name of the aggregate."""

    @property
    def collects(self) -> bool:
        """True if it holds every tuple where no frame bounds them."""
        return False

    def remembers(self, frame: Frame) -> bool:  # noqa: ARG002
        """True if it keeps something for a partition beside the tuples of a finite frame."""
        return True

    @property
    @abstractmethod
    def outputs(self) -> tuple[Attribute, ...]:
        """The columns of the result."""
