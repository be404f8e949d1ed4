"""Requirements: what inputs would have to promise to bound a part of an operator's state (`Plan.requirements`)."""

from __future__ import annotations

from dataclasses import dataclass

from millstream.logical.plan import Plan


@dataclass(frozen=True, slots=True)
class TimeMoves:
    """Time moves on all these inputs."""

    inputs: tuple[Plan, ...]


@dataclass(frozen=True, slots=True)
class Punctuated:
    """An input punctuates one of these columns, whichever helps."""

    input: Plan
    columns: tuple[str, ...]
    class_: str = "#"


@dataclass(frozen=True, slots=True)
class AllPunctuated:
    """Each input punctuates the first of its columns that can be punctuated."""

    inputs: tuple[Punctuated, ...]


@dataclass(frozen=True, slots=True)
class Refers:
    """A column of an input refers to the primary key that a column of another input copies; `columns` pairs them."""

    input: Plan
    other: Plan
    columns: tuple[tuple[str, str], ...]


Requirement = Refers | TimeMoves | Punctuated | AllPunctuated
