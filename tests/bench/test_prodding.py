"""The benchmark of early answers on tiny streams, and its tools."""

from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import millstream as ms
from millstream.control.mill import LocalMill
from millstream_bench.prodding import measures, page
from millstream_bench.prodding.plots import DRAWN, draw_all
from millstream_bench.prodding.run import EXPERIMENTS, ON_SPARK
from millstream_bench.prodding.sizes import QUICK
from millstream_bench.prodding.tools import predicate, written
from millstream_bench.prodding.tools.data import bursts, detector, normal, numbers, uniform, words
from millstream_bench.prodding.tools.driving import drive, first_arrivals
from millstream_bench.prodding.tools.prods import lead_of, prods, punctuations
from millstream_bench.prodding.tools.streamer import PROD, PUNCTUATION, Control, Delivery, Streamer, chopped, paced
from millstream_bench.prodding.tools.top_only import prod_topmost
from millstream_bench.suite.report import Finding
from tests.tries import sometimes

TINY = replace(
    QUICK, length=90, lengths=(60,), hours=0.4, pairs=1, slides=4, per_slide=100, paced_slides=4, paced_scale=50.0
)
RUN = [name for name in EXPERIMENTS if name not in ("burst_lengths", "bursts_aside")]  # no runs of their own


@pytest.fixture(scope="module")
def findings() -> dict[str, Finding]:
    return {name: EXPERIMENTS[name](TINY) for name in RUN}


@sometimes(2, 5)
@pytest.mark.xdist_group("prodding bench")  # they share a run
class TestRun:
    def test_everything_is_shown(self, findings: dict[str, Finding], tmp_path: Path) -> None:
        assert all(made.name == name for name, made in findings.items())
        assert {*page.WRITERS} == {*EXPERIMENTS, *ON_SPARK} and {*DRAWN} <= {*page.WRITERS}
        sections = page.sections({name: asdict(made) for name, made in findings.items()})
        assert {*sections} == {*RUN} and all("|---|" in text for text in sections.values())
        drawn = [path.stem for path in draw_all(findings, tmp_path)]
        assert drawn == [f"prodding_{name}" for name in DRAWN if name in EXPERIMENTS]

    def test_sooner_is_less_accurate(self, findings: dict[str, Finding]) -> None:
        curve = findings["uniform"].curves["uniform"]
        assert curve["percent"] == [10, 20, 30, 40, 50] and curve["gain"] == pytest.approx(
            [10 / 3 * n for n in range(1, 6)]
        )
        assert sorted(curve["sum average"], reverse=True) == curve["sum average"]
        assert min(curve["average average"]) > 97 > 90 > curve["sum average"][-1] > curve["sum worst"][-1]

    def test_only_bursts_have_early_answers(self, findings: dict[str, Finding]) -> None:
        ((_, _, windows, early, last, gain, accuracy, *_),) = findings["bursts"].rows
        assert windows == 95 and 10 < early < 40 and 75 <= last <= 85 and 0.5 < gain < 4 and 70 < accuracy < 100

    def test_one_operator_is_not_enough(self, findings: dict[str, Finding]) -> None:
        alone, whole = (findings["topmost"].numbers[row[0]] for row in findings["topmost"].rows)
        assert alone["sum"] < whole["sum"] - 10 and alone["max"] <= whole["max"]


def test_top_only_prodding() -> None:
    """Spec 002, W19."""
    mill = LocalMill()
    mill.execute("CREATE STREAM s (ts BIGINT, v BIGINT) PUNCTUATED ON (ts +)")
    mill.add_query("q", "SELECT window_end, SUM(v) AS v, finality FROM s [RANGE 30 SLIDE 10 ON ts]")
    mill.insert("s", [(104, 55), (113, 52), (125, 45)])
    mill.punctuate("s", "[ts < 120]")
    mill.insert("s", [(126, 54)])
    mill.batch()
    mill.take_rows("q")
    assert prod_topmost(mill, "{window_end = 130}").select("window_end", "sum_v").rows() == [(130, 107)]
    mill.prod("s", "{ts = 130}")
    mill.batch()
    assert mill.take_rows("q").rows() == [(130, 206, "early")]


def test_the_data() -> None:
    made = numbers(2000, {"u": uniform(), "n": normal(500, 100)}, seed=5)
    assert made["ts"].is_sorted() and made["ts"].min() == 0 and 1900 < int(made["ts"].max()) < 2000  # type: ignore[arg-type]
    assert 38_000 < made.height < 42_000 and made["u"].is_between(0, 999).all() and 490 < made["n"].mean() < 510  # type: ignore[operator]
    assert made.equals(numbers(2000, {"u": uniform(), "n": normal(500, 100)}, seed=5))
    log = bursts(repeats=2, seed=1)
    assert (
        log.filter(pl.col("ts") == 95 + 30).height == 600 and 26_000 < log.height < 33_000 and log["counter"].min() >= 0
    )  # type: ignore[operator]
    assert words(3, rate=4).height == 12 and detector()["ts"].diff().drop_nulls().min() == 20


def test_measures() -> None:
    """Spec 002, W16."""
    rows = pl.DataFrame({"e": [60.0, 120.0, 0.0, 1.0, -5.0], "f": [50.0, 50.0, 0.0, 0.0, -10.0]})
    assert rows.select(measures.accuracy("e", "f")).to_series().to_list() == [80, -40, 100, 0, 50]
    assert 100 * (120 - 90) / 120 == 25 and lead_of(50, 120) == 60
    first = first_arrivals(np.array([5, 7, 11]), np.array([5.0, 7.0, 12.0]), 5, 5)
    assert first.rows() == [(10, 5.0), (15, 12.0)]


class TestStreamer:
    ROWS = pl.DataFrame({"ts": [0, 1, 2, 5, 9, 10]})

    def test_prods_overtake_and_punctuations_do_not(self) -> None:
        made = Streamer(delay=4.0, seed=1).deliveries(self.ROWS, [*prods(10, 5, [20]), *punctuations(10, 5)])
        assert [made[i].at <= made[i + 1].at for i in range(len(made) - 1)]
        seen: list[int] = []
        for delivery in made:
            if delivery.rows is not None:
                seen += delivery.rows["ts"].to_list()
            elif delivery.control is not None and delivery.control.kind == PUNCTUATION:
                assert {ts for ts in self.ROWS["ts"] if ts < delivery.control.end} <= set(seen)
            else:
                assert delivery.control is not None and delivery.at == delivery.control.end - 1
        assert seen == self.ROWS["ts"].to_list()

    def test_delays(self) -> None:
        for mean, longest in ((False, 3.0), (True, 6.0)):
            streamer = Streamer(delay=3.0, mean=mean, in_order=False)
            delays = streamer.due(pl.DataFrame({"ts": [0] * 2000}))
            assert delays.min() >= 0 and delays.max() <= longest
            assert 0.9 < delays.mean() / (longest / 2) < 1.1
        assert (np.diff(Streamer(delay=30.0).due(self.ROWS)) >= 0).all()
        late = Streamer(with_next=True).deliveries(self.ROWS, punctuations(5, 5))
        assert [each.at for each in late if each.control is not None] == [5.0]

    def test_by_the_clock(self) -> None:
        now = [100.0]
        plan = [Delivery(0.0, self.ROWS), Delivery(4.0, control=Control(4.0, 5, PROD))]
        at = [
            now[0] for _ in paced(plan, scale=2.0, clock=lambda: now[0], sleep=lambda s: now.__setitem__(0, now[0] + s))
        ]
        assert at == [100.0, 102.0]
        pages = [each.at for each in chopped(plan, 5) if each.rows is not None]
        assert pages == [0.0, 5.0, 10.0]

    def test_deliveries_as_a_file(self, tmp_path: Path) -> None:
        made = Streamer().deliveries(self.ROWS, [*prods(10, 5, [20, 0]), *punctuations(10, 5)])
        read = written.read(written.write(made, tmp_path / "plan.parquet"))
        assert [(each.at, each.control) for each in read] == [(each.at, each.control) for each in made]
        assert all(
            a.rows is None or a.rows.equals(b.rows) for a, b in zip(made, read, strict=True) if b.rows is not None
        )


def test_a_costly_predicate() -> None:
    with ms.connect(local=True) as mill:
        mill.sql(predicate.WORDS)
        predicate.register(mill, "the mill is by the river")
        query = mill.sql(predicate.COUNTED.format(budget=3, range=10, slide=10)).start(name="q")
        mill.insert("words", [(ts, word) for ts, word in enumerate(("mill", "sea", "river", "mill", "hill", "river"))])
        mill.prod("words", "{ts = 10}")
        early = query.take().rows()
        mill.punctuate("words", "[ts < 10]")
        mill.mill.drain()
        final = query.take().rows()
    assert early == [(10, 2, "early", 1)] and final[-1][:3] == (10, 4, "final")


def test_virtual_time() -> None:
    rows = pl.DataFrame({"ts": [1, 5, 8], "v": [1, 2, 4]})
    plan = Streamer().deliveries(rows, [*prods(10, 10, [50, 30]), *punctuations(10, 10)])
    declared = "CREATE STREAM s (ts BIGINT, v BIGINT) PUNCTUATED ON (ts +)"
    found = drive(declared, "SELECT window_end, SUM(v) AS v, finality, revision FROM s [RANGE 10 ON ts]", plan)
    assert found.rows() == [(10, 1, "early", 1, 5.0), (10, 3, "early", 2, 7.0), (10, 7, "final", 3, 10.0)]
