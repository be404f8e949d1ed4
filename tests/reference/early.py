"""Early answers, a tuple at a time: what a prod is answered with, given all elements before it.

Windows are `[end - range, end)`, ends at multiples of the slide. A stream is a list of elements: tuples (k, v, ts),
punctuations `("<", time, k or None)`, prods `("{", operator or None, time, k or None)`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

Element = tuple[Any, ...]
Key = tuple[int, Any]


@dataclass
class Windows:
    """Sums by window and group. `group`: of a tuple (k, v, ts)."""

    range: int
    slide: int
    group: Callable[[Any], Any] = lambda k: k
    open: dict[Key, list[int]] = field(default_factory=dict)

    def ends(self, ts: int) -> Iterator[int]:
        end = (ts // self.slide + 1) * self.slide
        while end - self.range <= ts:
            yield end
            end += self.slide

    def take(self, k: Any, v: int, ts: int) -> None:
        for end in self.ends(ts):
            self.open.setdefault((end, self.group(k)), []).append(v)

    def close(self, time: int, k: Any = None) -> list[tuple[int, Any, list[int]]]:
        """Windows that end by a time, rounded down, of one group or of all."""
        last = time // self.slide * self.slide
        gone = sorted(key for key in self.open if key[0] <= last and (k is None or key[1] == k))
        return [(*key, self.open.pop(key)) for key in gone]

    def asked(self, operator: str | None, time: int, k: Any = None) -> list[tuple[int, Any, list[int]]]:
        """Open windows that a prod asks for."""
        last = time // self.slide * self.slide
        forms: dict[str | None, Callable[[int], bool]] = {None: lambda _: True, "=": lambda end: end == last}
        forms |= {">": lambda end: end > time, ">=": lambda end: end >= time}
        wanted = forms.get(operator, lambda end: end <= last)
        return [
            (end, own, values)
            for (end, own), values in sorted(self.open.items())
            if wanted(end) and (k is None or own == k)
        ]


def sums(elements: list[Element], range_: int, slide: int, least: int = 1) -> Iterator[tuple[Any, ...]]:
    """The rows (window_end, k, sum, finality, revision) of a query by k, HAVING COUNT(*) >= least."""
    windows = Windows(range_, slide)
    answers: dict[Key, int] = {}
    for element in elements:
        match element:
            case ("<", time, k):
                for end, own, values in windows.close(time, k):
                    if len(values) >= least:
                        yield end, own, sum(values), "final", answers.get((end, own), 0) + 1
            case ("{", operator, time, k):
                for end, own, values in windows.asked(operator, time, k):
                    if len(values) >= least:
                        answers[end, own] = answers.get((end, own), 0) + 1
                        yield end, own, sum(values), "early", answers[end, own]
            case (k, v, ts):
                windows.take(k, v, ts)


def greatest(elements: list[Element], inner: tuple[int, int], outer: tuple[int, int]) -> Iterator[tuple[Any, ...]]:
    """The rows (window_end, MAX(sum), finality) of a query over the sums by k: each prod is answered over the final
    rows of the sums so far and their early rows. For some windows, the sums of all windows before their ends are asked
    for."""
    below, above = Windows(*inner), Windows(*outer, group=lambda _: None)
    for element in elements:
        match element:
            case ("<", time, None):
                for end, _, values in below.close(time):
                    above.take(None, sum(values), end - 1)
                for end, _, values in above.close(time):
                    yield end, max(values), "final"
            case ("{", operator, time, None):
                so_far = Windows(*outer, group=lambda _: None, open={key: [*held] for key, held in above.open.items()})
                for end, _, values in below.asked("<=" if operator in ("<", "<=", "=") else None, time):
                    so_far.take(None, sum(values), end - 1)
                for end, _, values in so_far.asked(operator, time):
                    if not above_closed(end, elements, element, outer):
                        yield end, max(values), "early"
            case (k, v, ts):
                below.take(k, v, ts)


def greatest_of_ends(elements: list[Element], inner: tuple[int, int]) -> Iterator[tuple[Any, ...]]:
    """The rows (end, MAX(sum), finality) of a query over the sums by k, by the end of their window."""
    windows = Windows(*inner)
    for element in elements:
        match element:
            case (("<" | "{") as kind, *operator, time, None):
                found = windows.asked(operator[0], time) if operator else windows.close(time)
                for end in dict.fromkeys(end for end, *_ in found):
                    largest = max(sum(values) for other, _, values in found if other == end)
                    yield end, largest, "final" if kind == "<" else "early"
            case (k, v, ts):
                windows.take(k, v, ts)


def above_closed(end: int, elements: list[Element], at: Element, outer: tuple[int, int]) -> bool:
    """Return whether a window of the outer aggregate is closed before an element."""
    before = elements[: next(i for i, each in enumerate(elements) if each is at)]
    times = [each[1] // outer[1] * outer[1] for each in before if each[0] == "<"]
    return any(end <= time for time in times)
