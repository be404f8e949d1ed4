"""The picture of early answers: the windows that it shows, put together from all shards."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

import millstream as ms
from millstream.control.observe.early_plot import KEPT, Track, Window, by_window

SVG = "{http://www.w3.org/2000/svg}"


def test_windows_of_all_shards() -> None:
    judged = [
        (20, 1, 0.5, 80.0, 80.0, 4.0, 5.0),
        (10, 1, 0.5, 90.0, 90.0, 9.0, 10.0),
        (20, 2, 1.0, 150.0, 70.0, 6.0, 8.0),
    ]
    found = by_window(judged)
    assert list(found) == [10, 20]
    assert found[20] == Window(3, 1.5, 230.0, 70.0, 10.0, 13.0)
    track = Track()
    track.add(found)
    track.add(dict.fromkeys(range(20, 10 * KEPT + 20, 10), found[10]))
    assert len(track.windows) == KEPT and track.windows[20].count == 4


def drawn(picture: ElementTree.Element, line: str) -> int:
    """The points of a line without segments."""
    (group,) = (group for group in picture.iter(f"{SVG}g") if group.get("id") == line)
    return sum(1 for _ in group.iter(f"{SVG}use"))


@pytest.mark.parametrize("shards", [1, 2])
def test_a_picture_of_a_query(shards: int) -> None:
    with ms.connect(local=True, shards=shards) as mill:
        mill.sql("CREATE STREAM s (ts TIMESTAMP, k BIGINT) ORDER BY ts")
        query = mill.sql(
            "CREATE QUERY q AS SELECT k, COUNT(*) AS n FROM s [RANGE 10 SECONDS] GROUP BY k EMIT EARLY AT 80 %"
        )
        assert "no early answer has a final one yet" in query.early_plot()
        mill.insert("s", [(at, k) for at in range(31) for k in range(3)])
        query.take()
        picture = ElementTree.fromstring(query.early_plot())
        assert drawn(picture, "early") == drawn(picture, "window") == 3
        texts = [str(text.text) for text in picture.iter(f"{SVG}text")]
        assert {"1970-01-01 00:00:10", "1970-01-01 00:00:30", "end of the window"} <= {*texts}


def test_texts_have_no_values_to_draw() -> None:
    track = Track()
    track.add({10: Window(1, 0.8, 60.0, 60.0, None, None), 20: Window(1, 0.8, 80.0, 80.0, None, None)})
    picture = ElementTree.fromstring(track.svg("a < b"))
    assert (drawn(picture, "early"), drawn(picture, "window")) == (0, 2)
