"""A contract of an operator: `<In1, …, Ink, Out, Feedback.In, Feedback.Out1, …>`.

An operator that runs under a contract, and whose inputs obey the schemes of its inputs, guarantees:

| | |
|---|---|
| G1 | its output obeys the scheme `out` |
| G2A | no tuple stays in its state for ever |
| G2B | no guard stays for ever: punctuation covers the feedback that it exploits |
| G3 | it emits all its results sooner or later, but for those that feedback has disclaimed |

Schemes are any values that can be compared: those of a plan are `Offers`.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from millstream.algebra.punctuation.scheme import NO_FEEDBACK, FeedbackScheme


@dataclass(frozen=True, slots=True)
class Contract:
    """`feedback_in` is what it accepts of its readers, `feedback_out` what it may send to each input. One that does not
    `exploit` ignores the feedback, and keeps no guard."""

    ins: tuple[Hashable, ...]
    out: Hashable
    feedback_in: FeedbackScheme = NO_FEEDBACK
    feedback_out: tuple[FeedbackScheme, ...] = ()
    exploits: bool = True

    def sent_to(self, place: int) -> FeedbackScheme:
        return self.feedback_out[place] if place < len(self.feedback_out) else NO_FEEDBACK

    def __str__(self) -> str:
        ins = ", ".join(f"In{place}={scheme}" for place, scheme in enumerate(self.ins, start=1))
        sent = "".join(f", Feedback.Out{place}={s}" for place, s in enumerate(self.feedback_out, start=1))
        return f"<{ins}{', ' if ins else ''}Out={self.out}, Feedback.In={self.feedback_in}{sent}>"
