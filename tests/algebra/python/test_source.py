"""The identity of code: its text, and for a class that Python cannot tell from another one, its methods."""

from __future__ import annotations

from typing import Any

from millstream.algebra.python.source import source_digest


def of_one_name(*, first: bool) -> type[Any]:
    if first:

        class Step:
            def iterate(self, x: int) -> int:
                return x + 1
    else:

        class Step:  # type: ignore[no-redef]
            def iterate(self, x: int) -> int:
                return x + 2

    return Step


def test_classes_of_one_name_differ() -> None:
    digests = [source_digest(of_one_name(first=first)) for first in (True, False, True, False)]
    assert digests[:2] == digests[2:] and digests[0] != digests[1]


def test_what_was_declared_counts() -> None:
    assert source_digest(of_one_name, 1) != source_digest(of_one_name, 2)
