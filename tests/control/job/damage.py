"""Damages of a file or a folder of a checkpoint."""

from __future__ import annotations

import shutil
from pathlib import Path

DAMAGES = ("removed", "cut", "emptied", "older")


def damaged(path: Path, damage: str, older: Path) -> bool:
    """Damage a file, or a folder, of which `older` is an older copy; return False if there is nothing to damage."""
    if not path.exists() or (damage == "older" and not older.exists()):
        return False
    match damage:
        case "older" if path.is_dir():
            shutil.rmtree(path)
            shutil.copytree(older, path)
        case "older":
            if path.read_bytes() == older.read_bytes():
                return False
            shutil.copy(older, path)
        case "removed" | "emptied" if path.is_dir():
            shutil.rmtree(path)
            if damage == "emptied":
                path.mkdir()
        case "removed":
            path.unlink()
        case _ if path.is_dir():
            return False
        case _:
            data = path.read_bytes()
            path.write_bytes(data[: len(data) // 2] if damage == "cut" else b"")
    return True
