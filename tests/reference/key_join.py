"""KEY JOIN of two streams, one tuple at a time: a window join whose pairs use the tuples of some streams up."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

Tuple = tuple[int, int, int]
"""Key, value, timestamp."""
Window = int | str | None
"""A range of time; `rows:N`: the last N tuples; None: all."""


def key_join(
    arrivals: Iterable[tuple[int, Tuple]],
    windows: Sequence[Window],
    once: Sequence[bool],
    condition: Callable[[Tuple, Tuple], bool],
) -> list[tuple[int, int]]:
    """Return the values of all pairs. `arrivals`: (side, tuple), processed by time, the first side first."""
    held: tuple[list[Tuple], list[Tuple]] = ([], [])
    used: tuple[list[Tuple], list[Tuple]] = ([], [])
    found: list[tuple[int, int]] = []
    for side, new in sorted(arrivals, key=lambda arrival: (arrival[1][2], arrival[0])):
        partners, window = held[1 - side], windows[1 - side]
        if isinstance(window, str):
            count = int(window.removeprefix("rows:"))
            partners = partners[len(partners) - count :] if count else []
        for partner in list(partners):
            gone = any(partner is other for other in used[1 - side]) or any(new is other for other in used[side])
            late = isinstance(window, int) and new[2] - partner[2] > window
            pair = (new, partner) if side == 0 else (partner, new)
            if not gone and not late and condition(*pair):
                found.append((pair[0][1], pair[1][1]))
                for place, one in enumerate(pair):
                    if once[place]:
                        used[place].append(one)
        held[side].append(new)
    return found


def recent_once(
    arrivals: Iterable[tuple[int, Tuple]], condition: Callable[[Tuple, Tuple], bool]
) -> list[tuple[int, int]]:
    """SEQ MODE RECENT by key, each tuple of the first stream in one pair at most; the second first among equals."""
    latest: dict[int, Tuple] = {}
    found: list[tuple[int, int]] = []
    for side, new in sorted(arrivals, key=lambda arrival: (arrival[1][2], -arrival[0])):
        if side == 0:
            latest[new[0]] = new
        elif new[0] in latest and condition(latest[new[0]], new):
            found.append((latest.pop(new[0])[1], new[1]))
    return found
