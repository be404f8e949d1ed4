"""Symmetric window join of two streams."""

from __future__ import annotations

from dataclasses import dataclass

from millstream.logical.nodes.kinds.windowed import TwoWindowed


@dataclass(frozen=True, slots=True)
class WindowJoin(TwoWindowed):
    stem = "window_join"
