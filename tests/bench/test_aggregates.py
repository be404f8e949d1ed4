"""The benchmark of running aggregates runs, and panes hold less than tuples."""

from millstream_bench.aggregates.frames import QUICK, delta, panes


def test_the_experiments_run() -> None:
    assert [row[0] for row in delta(QUICK).rows] == list(QUICK.windows)
    rows = panes(QUICK).rows
    assert rows[-1][2] < rows[-1][4] / 5
