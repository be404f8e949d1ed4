"""Cost of a tuple by the size of its window: differences stay flat, a naive aggregate grows with the window."""

from __future__ import annotations

from millstream_bench.aggregates.drive import WrongAnswer, bids, check, golden, run, running
from millstream_bench.aggregates.sizes import Sizes
from millstream_bench.suite.report import Finding

ITEMS = 1_000
MANY_ITEMS = 20_000
"""Items whose frequency is approximate: more than a table of the sketch has places, so that they share some."""
MEANS = {
    "built-in": "AVG(price)",
    "SQL, on columns": "sql_mean(price)",
    "SQL, a loop": "loop_mean(price)",
    "Python class": "python_mean(price)",
    "SQL, own window": "own_mean(price, {size})",
    "naive": "naive_mean(price)",
}
FREQUENCIES = {
    "SQL": "approx_frequency(item)",
    "Python class": "python_frequency(item)",
    "naive": "naive_frequency(item)",
}


def delta(sizes: Sizes) -> Finding:
    """An average, by differences and anew for each tuple."""
    found = Finding("delta", "mean of the last n tuples, tuples per CPU-second", "4.4", ("n", *MEANS))
    rows = bids(sizes.columns, ITEMS)
    for size in sizes.windows:
        frame = f"ROWS BETWEEN {size - 1} PRECEDING AND CURRENT ROW"
        right = golden(f"SELECT AVG(price) OVER (ORDER BY ts {frame}) AS x FROM bids ORDER BY ts", rows)
        rates = []
        for name, call in MEANS.items():
            on_columns = name in ("built-in", "SQL, on columns")
            timed = _few(sizes, size) if name == "naive" else sizes.columns - size if on_columns else sizes.rows
            window = "ROWS UNBOUNDED PRECEDING" if name == "SQL, own window" else f"ROWS {size - 1} PRECEDING"
            make = running(call.format(size=size), window)
            rounds = 1 if name == "naive" else sizes.rounds  # to fill its window takes long
            traces = [run(make, rows.head(size + timed), skip=size) for _ in range(rounds)]
            check(f"{name}, {size}", traces[0].results, right)
            rates.append(round(max(trace.rate for trace in traces)))
        found.rows.append((size, *rates))
    return _summed_up(found, list(MEANS))


def frequent(sizes: Sizes) -> Finding:
    """Counters that share hash values: four are changed for each tuple that comes or leaves."""
    title = "approximate frequency of an item among the last n tuples, tuples per CPU-second"
    found = Finding("frequent", title, "4.5", ("n", *FREQUENCIES, "too high by, mean", "exact, %"))
    rows = bids(max(sizes.windows) + sizes.rows, MANY_ITEMS)
    for size in sizes.windows[:-1]:
        frame = f"PARTITION BY item ORDER BY ts RANGE BETWEEN {size - 1} PRECEDING AND CURRENT ROW"
        exact = golden(f"SELECT ts, COUNT(*) OVER ({frame}) AS x FROM bids ORDER BY ts", rows).to_numpy()
        results, rates = {}, []
        for name, call in FREQUENCIES.items():
            timed = _few(sizes, 4 * size) if name == "naive" else sizes.rows
            make = running(call, f"ROWS {size - 1} PRECEDING")
            rounds = 1 if name == "naive" else sizes.rounds  # to fill its window takes long
            traces = [run(make, rows.head(size + timed), skip=size) for _ in range(rounds)]
            results[name] = traces[0].results.to_numpy()
            rates.append(round(max(trace.rate for trace in traces)))
        for name, values in results.items():
            both = min(len(values), len(results["SQL"]))
            if (values < exact[: len(values)]).any() or (values[:both] != results["SQL"][:both]).any():
                raise WrongAnswer(f"frequent items, {size}: {name} counts too few, or other than the others")
        above = results["SQL"] - exact[: len(results["SQL"])]
        found.numbers[f"overestimate, {size}"] = float(above.mean())
        found.rows.append((size, *rates, float(above.mean()), 100 * float((above == 0).mean())))
    return _summed_up(found, list(FREQUENCIES))


def _few(sizes: Sizes, size: int) -> int:
    """Number of tuples to measure where each reads the whole window again."""
    return max(sizes.few, min(sizes.rows, sizes.work // len(sizes.windows) // size))


def _summed_up(found: Finding, names: list[str]) -> Finding:
    """How many times as much a tuple costs in the largest window as in the smallest."""
    smallest, largest = found.rows[0], found.rows[-1]
    for position, name in enumerate(names, 1):
        found.numbers[f"growth, {name}"] = smallest[position] / largest[position]
        found.curves[name] = {"n": [row[0] for row in found.rows], "rate": [row[position] for row in found.rows]}
    growth = ", ".join(f"{name} × {found.numbers[f'growth, {name}']:.3g}" for name in names)
    found.notes.append(f"cost of a tuple, window of {largest[0]:,} against {smallest[0]:,}: {growth}")
    return found
