"""A process that ends at a chosen moment: just before or just after any write to disk, to the state or to a sink.

`Mortal` counts the writes of what runs inside it. At write number `at` it raises `Dead`, and so does every later write:
whatever the program still does on its way out leaves no trace, as after a SIGKILL.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from millstream.control.job import local_state


class Dead(BaseException):
    pass


class Mortal:
    """`at`: the number of the write; None: it lives. With `error`, that write raises the error instead, and the program
    lives on: a disk that is full for a moment."""

    def __init__(self, at: int | None = None, error: Exception | None = None) -> None:
        self.at, self.error, self.writes, self.dead = at, error, 0, False
        self.where: list[str] = []

    def install(self, patch: pytest.MonkeyPatch) -> None:
        for owner, name in (
            (os, "fsync"),
            (Path, "replace"),
            (Path, "rename"),
            (local_state.LocalState, "begin"),
            (local_state.LocalState, "commit"),
            (local_state._SqliteStore, "put"),
        ):
            patch.setattr(owner, name, self.around(getattr(owner, name), name))

    def around(self, write: Callable[..., Any], name: str) -> Callable[..., Any]:
        def written(*arguments: Any, **named: Any) -> Any:
            self.point(f"before {name}")
            result = write(*arguments, **named)
            if self.error is None:
                self.point(f"after {name}")
            return result

        return written

    def point(self, what: str) -> None:
        """A moment at which the process may end."""
        self.where.append(what)
        number, self.writes = self.writes, self.writes + 1
        if self.dead:
            raise Dead
        if number == self.at:
            if self.error is not None:
                raise self.error
            self.dead = True
            raise Dead
