"""Damages of a checkpoint: each part of one that a kill has left is removed, cut off, emptied or made older.

A program that opens it must refuse it, with the name of the part, or continue with exactly the rows of an undisturbed
run.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import millstream as ms
from millstream.control.spark.session import start_session
from millstream.errors import MillstreamError
from millstream_bench.soak.comparison import difference
from millstream_bench.soak.program import Run, Workload, read_rows

DAMAGES = ("removed", "cut", "emptied", "older")
REFUSED = ("M5022", "M5023", "M5024", "M5025", "M5026", "M5027")
PARTS = ("", "job.json", "control.log", "batches.log", "spark", "spark/offsets", "spark/commits", "spark/state")
OLDER, KILLED = 4, 12
"""Batches after which the two copies are made."""


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


def parts_of(checkpoint: Path) -> Iterator[Path]:
    """The files and folders of a checkpoint on Spark that are damaged."""
    spark = checkpoint / "job-1" / "spark"
    yield checkpoint / "driver.log"
    yield from (checkpoint / "job-1" / name for name in PARTS)
    yield spark / "metadata"
    for folder in (spark / "offsets", spark / "commits"):
        yield from (folder / str(number) for number in sorted(int(p.name) for p in folder.glob("[0-9]*"))[-2:])
    yield from (next(iter(sorted(spark.glob(f"state/0/{kind}")))) for kind in ("_metadata/v2/0", "_stateSchema/*/0_*"))
    store = spark / "state" / "0" / "0"
    logs = sorted(store.glob("*.changelog"), key=lambda path: int(path.name.partition("_")[0]))
    yield from {logs[-1], logs[len(logs) // 2], *store.glob("*.zip"), *store.glob("SSTs/*.sst")}


def run_damages(folder: Path, report: Callable[[str], None], seconds: float) -> bool:
    """Damage a checkpoint on Spark; return whether each was refused, or continued exactly."""
    run = Run(folder / "run", Workload(batches=20), "local[2]")
    copies: dict[str, Path] = {}
    for name, batch in (("older", OLDER), ("killed", KILLED)):
        run.start()
        while run.done() < batch and run.wait_for_commit(seconds):
            pass
        run.kill()
        copies[name] = Path(shutil.copytree(run.folder, folder / name))
    run.start()
    if not run.finish(seconds):
        report(f"the undisturbed run did not end: {run.said()}")
        return False
    wanted, right, spark = run.rows(), True, start_session("local[2]", log=folder / "spark.log")
    refused = continued = 0
    try:
        for part in parts_of(copies["killed"] / "checkpoint"):
            path = run.folder / part.relative_to(copies["killed"])
            for damage in (*DAMAGES, "cut, without its checksums"):
                while run.folder.exists():  # Spark may still tidy up there
                    shutil.rmtree(run.folder, ignore_errors=True)
                shutil.copytree(copies["killed"], run.folder)
                if not _damage(path, damage, copies["older"] / path.relative_to(run.folder)):
                    continue
                told = f"{path.relative_to(run.folder)} {damage}"
                try:
                    with ms.connect(spark, checkpoint=run.folder / "checkpoint") as mill:
                        ended = mill.await_end(seconds)
                    fault = difference(read_rows(run.folder / "output"), wanted) if ended else "it did not end"
                    continued += not fault
                    said = fault or "continued"
                except MillstreamError as error:
                    refused += error.code in REFUSED
                    fault, said = "" if error.code in REFUSED else "not refused by its code", str(error)
                right = right and not fault
                report(f"{'FAULT: ' if fault else ''}{told}: {said}")
    finally:
        spark.stop()
        run.close()
    report(f"damages: {refused} refused, {continued} continued")
    return right


def _damage(path: Path, damage: str, older: Path) -> bool:
    crc, number = path.with_name(f".{path.name}.crc"), path.name
    if damage in DAMAGES:
        before = path.with_name(str(int(number) - 1)) if number.isdigit() else older
        return damaged(path, damage, before)
    if not crc.exists():
        return False
    crc.unlink()
    return damaged(path, "cut", older)
