"""PJoin against the same join without punctuation: state and results over the stream.

Large steps spend most of the time on results, which are the same; steps of a page show the cost of searching the state.
"""

from __future__ import annotations

from itertools import accumulate

from millstream_bench.joins.drive import PAGE_ROWS, STEP_ROWS, Trace, pjoin, run, same
from millstream_bench.joins.sizes import Sizes
from millstream_bench.joins.streams import GAP, in_step, steps
from millstream_bench.suite.report import Finding, thinned

EVERY = 40
WIDTH = 100
"""Number of open values."""


def growth(sizes: Sizes) -> Finding:
    """State over a long stream."""
    rows = min(STEP_ROWS, sizes.long // 16)
    made, aware, unaware = _both("growth", "5.1", sizes.long, EVERY, rows)
    worst = max(aware.state[len(aware.state) // 4 :]) / max(1, unaware.state[-1])
    halves = [max(part) for part in (aware.state[: len(aware.state) // 2], aware.state[len(aware.state) // 2 :])]
    made.numbers |= {"state_share": worst, "most_state_by_half": halves}
    made.notes.append(
        f"{sizes.long:,} tuples; the punctuated join holds at most 1/{1 / worst:,.0f} of what the other holds: up to "
        f"{halves[0]:,} tuples in the first half, {halves[1]:,} in the second"
    )
    return made


def output_rate(sizes: Sizes) -> Finding:
    """Results over time, a page a step."""
    made, _, _ = _both("output_rate", "5.3", sizes.long // 5, 30, min(PAGE_ROWS, sizes.long // 80))
    made.notes.append("slower: CPU time of the last quarter of the stream over that of the first")
    return made


def _both(name: str, figures: str, count: int, every: int, rows: int) -> tuple[Finding, Trace, Trace]:
    """The join with punctuation and without, in steps of `rows` tuples."""
    streams = in_step(count // 2, every, width=WIDTH)
    length = rows // 2 * GAP
    aware = run(pjoin(), steps(streams, length), sized=True)
    unaware = run(pjoin(), steps(streams, length, punctuated=False), sized=True)
    same(name, {"PJoin": aware, "unaware": unaware})
    made = Finding(
        name,
        f"PJoin and a join that hears no punctuation; one every {every} tuples, steps of {rows:,}",
        figures,
        ("join", "state", "at end", "MB", "results", "CPU s", "slower"),
    )
    for label, trace in (("with punctuation", aware), ("without", unaware)):
        mean_state, at_end = round(trace.steady(trace.state)), trace.state[-1]
        slowing = _slowing(trace)
        made.rows.append((label, mean_state, at_end, trace.size[-1] / 1e6, trace.rows, trace.seconds, slowing))
        made.curves[label] = {
            "tuples": thinned([(i + 1) * rows for i in range(len(trace.state))]),
            "state": thinned(trace.state),
            "results": thinned(list(accumulate(trace.results))),
            "cpu_s": thinned(list(accumulate(trace.cpu_s))),
        }
        made.numbers[label] = {"cpu_s": trace.seconds, "slow_down": slowing}
    made.numbers["speed_up"] = unaware.seconds / aware.seconds
    return made, aware, unaware


def by_rate(sizes: Sizes) -> Finding:
    """Mean state by the number of tuples between two punctuations."""
    made = Finding(
        "state_by_rate",
        "PJoin, eager: state by how often values are closed",
        "5.2",
        ("tuples a punctuation", "state, mean", "most", "results", "CPU s"),
    )
    rows = min(PAGE_ROWS, sizes.swept // 16)
    for every in (10, 20, 30, EVERY):
        streams = in_step(sizes.swept // 2, every, width=WIDTH)
        trace = run(pjoin(), steps(streams, rows // 2 * GAP))
        mean_state = round(trace.steady(trace.state))
        made.rows.append((every, mean_state, max(trace.state), trace.rows, trace.seconds))
        made.numbers[str(every)] = mean_state
    return made


def _slowing(trace: Trace) -> float:
    """Ratio of the CPU time of the last steps to that of the first, for equal input."""
    quarter = max(1, len(trace.cpu_s) // 4)
    return sum(trace.cpu_s[-quarter - 1 : -1]) / sum(trace.cpu_s[1 : quarter + 1])
