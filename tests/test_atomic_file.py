from pathlib import Path

import pytest

from millstream.atomic_file import drafted, write_whole


@pytest.mark.parametrize("durable", [False, True])
def test_a_file_is_replaced_whole(tmp_path: Path, durable: bool) -> None:
    path = tmp_path / "a"
    write_whole(path, b"old", durable=durable)
    with drafted(path, durable=durable) as draft:
        draft.write_bytes(b"new")
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new" and [p.name for p in tmp_path.iterdir()] == ["a"]


def test_what_fails_leaves_nothing_behind(tmp_path: Path) -> None:
    write_whole(tmp_path / "a", b"old")
    with pytest.raises(ZeroDivisionError), drafted(tmp_path / "a") as draft:
        draft.write_bytes(b"half")
        _ = 1 / 0
    assert (tmp_path / "a").read_bytes() == b"old" and [p.name for p in tmp_path.iterdir()] == ["a"]
