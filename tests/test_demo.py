"""The demos without a JVM: their output, and the results that their text claims."""

import io
import re
from datetime import datetime, timedelta
from itertools import takewhile
from pathlib import Path

import polars as pl
import pytest
from rich.console import Console
from rich.live import Live
from typer.testing import CliRunner

import millstream as ms
from millstream import cli
from millstream.control.mill import LocalMill
from millstream.ingest.arrivals import PunctuatedRows
from millstream.ingest.paged import open_paged
from millstream_demo import auction, containment, early, rfid, shared, speedmap, traffic
from millstream_demo.cli import Demo
from millstream_demo.freeway import READINGS, probes
from millstream_demo.freeway.speed_map import SpeedMap, legend
from millstream_demo.narrator import Narrator
from tests.paths import ROOT


def plain(seconds: float = 10, now: list[float] | None = None) -> tuple[Narrator, io.StringIO]:
    file, clock = io.StringIO(), now or [0.0]
    return Narrator(Console(file=file, width=100), seconds, lambda: clock[0]), file


def test_plain_output_has_no_escape_codes() -> None:
    narrator, file = plain()
    narrator.title("A title")
    narrator.statement("SELECT a\nFROM s [RANGE 5 SECONDS]")
    with narrator.waiting("starting"):
        pass
    narrator.columns("second", "open auctions")
    narrator.line(1, 1234567)
    narrator.table(("item", "price"), [("blue [red]clock", 12345), (None, 1.25)])
    assert file.getvalue().splitlines() == [
        "A title",
        "",
        "SELECT a",
        "FROM s [RANGE 5 SECONDS];",
        "",
        "starting …",
        "starting: 0.0 s",
        "  second  open auctions",
        "       1      1,234,567",
        "               item  price",
        "    blue [red]clock  12345",
        "                  –    1.2",
    ]


def test_a_terminal_gets_colours() -> None:
    file = io.StringIO()
    narrator = Narrator(Console(file=file, width=100, force_terminal=True, color_system="standard"), 10)
    narrator.statement("SELECT a FROM s")
    assert "\x1b[" in file.getvalue() and "SELECT" in re.sub(r"\x1b\[[0-9;]*m", "", file.getvalue())


def test_time_left() -> None:
    now = [100.0]
    narrator, _ = plain(60, now)
    now[0] += 25
    assert narrator.left() == 35 and shared.lasting(narrator) == 35 - shared.CLOSING
    now[0] += 100
    assert narrator.left() == 0 and shared.lasting(narrator) == shared.SHORTEST


def fed(statements: str) -> LocalMill:
    """A mill whose streams are fed from the driver."""
    mill = LocalMill()
    mill.execute(re.sub(r"WITH \(.*?\)", "", statements, flags=re.DOTALL))
    return mill


def feed(mill: LocalMill, statements: str, streams: tuple[str, ...], upto: int) -> None:
    """Insert the first events of the streams that the statements generate."""
    declared = LocalMill()
    declared.execute(statements)
    for name in streams:
        definition = declared.catalog.stream(name)
        source = open_paged(name, definition.schema, definition.options, [])
        for split in source.splits(source.start(), {"event": upto, "anchor": None}, 1):
            read = split.read().rows
            assert isinstance(read, PunctuatedRows)
            mill.insert(name, read)
    mill.batch()


def test_the_join_holds_the_open_auctions() -> None:
    mill = fed(auction.streams(12))
    mill.add_query("joined", auction.JOIN)
    mill.add_query("sold", auction.ADDED)
    feed(mill, auction.streams(12), ("auctions", "bids"), 60_000)
    closed = sum(map(auction.closes, punctuations(mill, "joined")))
    assert mill.take_rows("joined").height == 46 * 1200
    assert 0 < mill.state_rows("joined") == 3600 - closed < 3600
    assert mill.take_rows("sold").height > 0
    assert len({len(line) <= 100 for line in auction.streams(55).splitlines()}) == 1


def punctuations(mill: LocalMill, name: str) -> list[str]:
    return [pattern.format(mill.schema(name)) for pattern in mill.take_punctuations(name)]


def test_means_of_a_minute_and_slow_probes() -> None:
    mill = fed(traffic.STREAMS)
    mill.add_query("means_per_minute", traffic.MEANS)
    mill.add_query("probes_per_minute", traffic.PROBES)
    mill.add_query("slow_probes", traffic.ADDED)
    feed(mill, traffic.STREAMS, ("sensors", "probes"), 60_000)
    rows = mill.take_rows("means_per_minute")
    assert set(rows["segment"]) == set(range(1, 51))
    assert set(mill.take_rows("probes_per_minute")["window_end"]) == set(rows["window_end"])
    slow = mill.take_rows("slow_probes")
    assert slow.height > 0 and (slow["speed"] < slow["mean"]).all() and (slow["mean"] < 30).all()


def test_noise_is_removed_and_each_tag_arrives_once() -> None:
    mill = fed(rfid.STREAMS)
    for name, query in (("raw", rfid.RAW), ("clean", rfid.CLEAN), ("seen", rfid.TAGS_SEEN), ("added", rfid.ADDED)):
        mill.add_query(name, query)
    feed(mill, rfid.STREAMS, ("readings",), 30_000)
    board = rfid.Board()
    for name in ("raw", "clean", "seen"):
        board.take(name, mill.take_rows(name).rows())
    lines = board.lines()
    assert len(lines) > 3 and not board.lines()
    for _, readings, wrong, tags, kept, wrong_kept, tags_kept, arrivals in lines[1:]:
        assert 0.08 < wrong / readings < 0.12 and tags > 1.5 * tags_kept and wrong_kept == 0
        assert kept > 0.99 * (readings - wrong) and abs(arrivals - 10 * rfid.TAGS) < rfid.TAGS
    assert mill.take_rows("added")["median_readings"].to_list()[1:-1] == [9.0] * (len(lines) - 2)


def test_the_speed_map_and_its_zoom(tmp_path: Path) -> None:
    """Feedback leaves the stations out of sight out of the map, and the work for them out of the query."""
    probes.write(tmp_path / "probes.parquet")
    taken: dict[bool, tuple[SpeedMap, int]] = {}
    for zooms in (False, True):
        mill = LocalMill()
        mill.execute(speedmap.statements(tmp_path, "'max', max_rows_per_trigger = 5000"))
        mill.add_query("map", speedmap.MAP)
        board = SpeedMap(coloured=False)
        mill.jobs.step()
        board.take(mill.take_rows("map").rows())
        assert board.now is not None
        if zooms:
            mill.feedback("map", speedmap.hidden(board))
        while mill.jobs.step():
            board.take(mill.take_rows("map").rows())
        board.take(mill.take_rows("map").rows())
        work = sum(s.tuples_in for shard in mill.statistics("map") for s in shard.values())
        taken[zooms] = board, work
        mill.close()
    assert taken[True][1] < taken[False][1] * 0.85
    whole, zoomed = (drawn_plain(taken[zooms][0]) for zooms in (False, True))
    assert len(whole) == 11 and whole[0].split()[:2] == ["mile", "place"]
    for before, after in zip(whole[1:], zoomed[1:], strict=True):
        in_sight = any(place in before for place in speedmap.ZOOM)
        assert (before == after) == in_sight
    assert "█" in "".join(whole) and "▪" in "".join(whole)
    assert "▪ above 50 mph" in str(legend(coloured=False))


def drawn_plain(board: SpeedMap) -> list[str]:
    file = io.StringIO()
    Console(file=file, width=110).print(board)
    return file.getvalue().splitlines()


def test_an_hour_of_windows_is_answered_early() -> None:
    """Every window of the hour has an early answer and a final one; later ones are asked for sooner."""
    made = early.readings()
    with ms.connect(local=True) as mill:
        mill.sql(early.STREAM)
        query = mill.sql(early.QUERY).start(name="freeway")
        board = early.Board()
        narrator, file = plain()
        with narrator.live() as live:
            screen = early.Screen(narrator, board, live)
            for page in made.partition_by("ts", maintain_order=True):
                now = page["ts"][0]
                mill.insert("readings", page)
                board.take(query.take().rows(), now)
                if now == early.CHANGE:
                    mill.sql(early.SOONER)
                screen.draw()
        assert not board.open()
        terminal = early.Screen(narrator, board, Live(console=narrator.console)).picture()
    assert len(board.answers()) == 12
    for answer in board.answers():
        asked = answer.end - timedelta(seconds=210 if answer.sooner else 60)
        assert answer.asked is not None and timedelta(0) <= answer.asked - asked < early.PERIOD
        inside = made.filter((pl.col("ts") >= answer.end - timedelta(minutes=10)) & (pl.col("volume") > 0))
        for until, found in ((asked, answer.early), (answer.end, answer.final)):
            part = inside.filter(pl.col("ts") < until)
            assert found == (part["volume"].sum(), pytest.approx(part["speed"].mean()))
    lines = file.getvalue().splitlines()
    assert sum("%" in line for line in lines) == 12 and "\x1b" not in file.getvalue()
    assert all(len(line) <= 100 for line in early.STREAM.splitlines()) and len(board.summary()) == 2
    assert len(terminal.renderables) == 13


def test_probes_drive_at_the_speed_of_the_detectors() -> None:
    made, readings = probes.generate(40), pl.read_parquet(READINGS).filter(pl.col("volume") > 0)
    assert made.get_column("probe").n_unique() == 40 and made.get_column("ts").is_sorted()
    assert made.equals(probes.generate(40))
    means = [frame.group_by("station").agg(pl.col("speed").mean()).sort("station") for frame in (made, readings)]
    both = means[0].join(means[1], on="station")
    assert both.height == 17 and both.select((pl.col("speed") - pl.col("speed_right")).abs().mean()).item() < 6


def test_the_board_has_the_last_mean_of_each_segment() -> None:
    board, end = traffic.Board(), datetime(2010, 2, 15, 7, 1)
    assert board.slowest is None and board.rows()[0] == [1, *[None] * traffic.MILES]
    board.take_probes([(end, 50.0)])
    assert board.probes == 50.0
    board.take([(end + timedelta(minutes=1), 12, 20.4, 9), (end, 12, 40.0, 9), (end, 1, 60.0, 9)])
    assert (board.minute, board.slowest, board.groups) == ("07:02", (12, 20.4), 3)
    assert board.mean == pytest.approx(40.2)
    assert board.rows()[0][:3] == [1, 60, None] and board.rows()[1][:3] == [2, None, 20]


def test_a_product_is_in_the_case_before_it() -> None:
    mill = LocalMill()
    mill.execute(containment.STREAMS)
    mill.add_query("contained", containment.CONTAINED)
    mill.add_query("counted", containment.ADDED)
    now, expected, case = 0.0, [], ""
    for at, stream, tag in takewhile(lambda reading: reading[0] < 60, containment.readings()):
        mill.advance(round((at - now) * 1e6))
        now = at
        mill.insert(stream, [(tag,)])
        mill.batch()
        case = tag if stream == "cases" else case
        expected += [(case, tag)] if stream == "products" else []
    mill.advance(1_000_000)
    assert mill.take_rows("contained").rows() == expected and len(expected) > 50
    assert mill.state_rows("contained") == 1
    mill.execute(containment.WITHOUT)


def test_every_named_page_exists() -> None:
    for demo in (auction, traffic, containment, speedmap, early):
        text = Path(str(demo.__file__)).read_text()
        (pages,) = re.findall(r"Next, by millstream docs PAGE: (.*)\"", text)
        named = re.findall(r"([\w/-]+) for ", pages)
        assert named and all((ROOT / "docs" / f"{page}.md").exists() for page in named)


def test_an_unknown_demo_is_a_usage_error() -> None:
    result = CliRunner().invoke(cli.app, ["demo", "aucton"])
    assert result.exit_code == 2 and "containment" in result.output
    assert {demo.value for demo in Demo} == {"auction", "traffic", "rfid", "speedmap", "early", "containment"}
