"""The set of files read: exact for all names, and small for numbered files."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from millstream.ingest.paged.files import seen
from millstream.ingest.paged.files.seen import SeenFiles

NAMES = st.one_of(
    st.builds("part-{:03d}.csv".format, st.integers(0, 30)),
    st.builds("{}/x{}".format, st.integers(0, 3), st.integers(0, 12)),
    st.text(alphabet="a0.1é/", min_size=1, max_size=6),
    st.builds("{:d}".format, st.integers(0, 10**20)),
)


@given(st.lists(st.lists(NAMES)), st.lists(NAMES), st.integers(1, 4))
def test_it_contains_exactly_the_names_added(rounds: list[list[str]], asked: list[str], recent: int) -> None:
    held, added = SeenFiles(), set[str]()
    before, seen.RECENT = seen.RECENT, recent
    try:
        for names in rounds:
            held.add(names)
            added.update(names)
            held = SeenFiles.read(json.loads(json.dumps(held.write())))
            assert all((name in held) == (name in added) for name in [*added, *asked])
    finally:
        seen.RECENT = before


def test_numbered_files_take_no_room_and_others_little() -> None:
    numbered, random = SeenFiles(), SeenFiles()
    for number in range(5_000):
        numbered.add([f"day={number // 1000:02d}/part-{number % 1000:05d}.parquet"])
        random.add([f"part-{hash((number, 'x')) & (1 << 128) - 1:x}-c000.snappy.parquet"])
        if number % 100 == 0:
            numbered, random = SeenFiles.read(numbered.write()), SeenFiles.read(random.write())
    assert len(json.dumps(numbered.write())) < 400
    assert len(json.dumps(random.write())) < 5_000 * 12 + 64 * 80
