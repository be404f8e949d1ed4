"""Early answers: a reader demands the results of a query so far, and gets them as early rows.

| | direction | |
|---|---|---|
| `Demand` | upstream | which results are wanted now, as a pattern over the output of the operator that receives it |
| `Early` | downstream | the rows that answer it, for the reader that asked |

An aggregate answers with the partial results of the open windows and groups that match, which it keeps. Early rows pass
selections and projections, which hold nothing; no other operator takes them, and no other reader gets them. So neither
state nor final results change.

>>> from millstream.algebra.types import Type
>>> schema = Schema.of(("window_end", Type.BIGINT), ("k", Type.BIGINT))
>>> [str(parse_demand(text, schema).pattern) for text in ("{window_end < 20}", "{*, 5}", "{}")]
['[window_end < 20]', '[k = 5]', '[]']
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import polars as pl

from millstream.algebra.element import Element
from millstream.algebra.punctuation.pattern import Pattern, parse_pattern
from millstream.algebra.schema import TS, Schema
from millstream.algebra.upstream import Answer, Upstream
from millstream.algebra.values import record, value
from millstream.errors import PatternError

FINALITY = "finality"
"""The column of an aggregate that tells early rows from final ones."""
FINAL, EARLY = "final", "early"


@record("demand")
class Demand(Upstream):
    """Asks for results now, though they are partial. `reader`: the sink that asked."""

    first: ClassVar[bool] = True

    pattern: Pattern
    reader: str = ""

    def unanswered(self, arity: int) -> Answer:  # noqa: ARG002
        return Answer()

    def at_fork(self, others: Sequence[Sequence[Upstream]]) -> Upstream | None:  # noqa: ARG002
        return self

    def __str__(self) -> str:
        return f"{{{str(self.pattern)[1:-1]}}}"


@value("early_rows", fields=("frame", "reader"))
class Early(Element):
    """Early rows for one reader. They are no tuples of the stream: they raise no time, and nothing counts them."""

    __slots__ = ("frame", "reader")

    def __init__(self, frame: pl.DataFrame, reader: str) -> None:
        self.frame, self.reader = frame, reader

    punctuation_count: int = 0

    def __bool__(self) -> bool:
        return self.frame.height > 0

    def select(self, names: Mapping[str, str]) -> Early:
        return Early(self.frame.select(*(pl.col(old).alias(new) for old, new in names.items()), TS), self.reader)


def parse_demand(text: str, schema: Schema) -> Demand:
    """Parse a prod `{…}` on the columns of a query; raise PatternError if it is malformed or does not fit."""
    written = text.strip()
    if not (written.startswith("{") and written.endswith("}")):
        raise PatternError("M4011", "a prod is a pattern in braces", detail=f"In {text}", hint="such as {k = 5}, or {}")
    inner = written[1:-1].strip()
    return Demand(parse_pattern(f"[{inner}]", schema) if inner not in ("", "*") else Pattern())
