"""CPU time of process trees, with children that end, are orphaned, or get the number of another."""

import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from millstream.errors import OptionError
from millstream_bench.spark.processes import Process, Sampler, Tree, processes


def _seen(*found: Process) -> dict[int, Process]:
    return {process.pid: process for process in found}


def test_kinds() -> None:
    driver, jvm = Process(1, 0, "python3", 0, 1.0, 0.0), Process(2, 1, "java", 1, 5.0, 0.0)
    worker, chmod = Process(3, 2, "python3", 2, 2.0, 0.0), Process(4, 2, "chmod", 3, 0.5, 0.0)
    stranger = Process(9, 0, "java", 0, 100.0, 0.0)
    total = Tree(1).update(_seen(driver, jvm, worker, chmod, stranger))
    assert total == {"driver": 1.0, "jvm": 5.5, "worker": 2.0}


def test_time_of_the_ended_stays_with_their_kind() -> None:
    tree = Tree(1)
    driver, jvm = Process(1, 0, "python3", 0, 1.0, 0.0), Process(2, 1, "java", 1, 5.0, 0.0)
    daemon, worker = Process(3, 2, "python3", 2, 1.0, 0.0), Process(4, 3, "python3", 3, 2.0, 0.0)
    tree.update(_seen(driver, jvm, daemon, worker))
    after = tree.update(_seen(driver, replace(jvm, reaped=3.5)))  # both have ended, half a second later
    assert after == {"driver": 1.0, "jvm": 5.5, "worker": 3.0}
    assert tree.update(_seen(driver, replace(jvm, reaped=3.5))) == after


def test_an_orphan_is_followed_and_its_time_kept() -> None:
    tree = Tree(1)
    driver, daemon = Process(1, 0, "python3", 0, 1.0, 0.0), Process(3, 1, "python3", 2, 1.0, 0.0)
    worker = Process(4, 3, "python3", 3, 2.0, 0.0)
    tree.update(_seen(driver, daemon, worker))
    orphaned = tree.update(_seen(replace(driver, reaped=1.0), replace(worker, parent=0, own=4.0)))
    assert orphaned == {"driver": 1.0, "jvm": 0.0, "worker": 5.0}
    assert tree.update(_seen(replace(driver, reaped=1.0))) == orphaned


def test_a_number_that_is_given_again() -> None:
    tree = Tree(1)
    driver, worker = Process(1, 0, "python3", 0, 1.0, 0.0), Process(4, 1, "python3", 3, 2.0, 0.0)
    tree.update(_seen(driver, worker))
    total = tree.update(_seen(replace(driver, reaped=2.0), Process(4, 1, "python3", 9, 0.5, 0.0)))
    assert total == {"driver": 1.0, "jvm": 0.0, "worker": 2.5}


def test_a_real_tree_with_children_that_end() -> None:
    burn = "import time\nwhile time.process_time() < {}: pass\n"
    parent = f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {burn.format(0.4)!r}])\n"
    child = subprocess.Popen([sys.executable, "-c", parent + burn.format(0.3)])
    start = time.time()
    with Sampler(child.pid, every=0.02) as sampler:
        while child.poll() is None:
            time.sleep(0.02)
    spent = sampler.record.between(start - 1, time.time())
    assert 0.5 < sum(spent.values()) < 1.6
    assert spent["worker"] > 0


def test_this_process_is_there() -> None:
    assert any(process.own > 0 for process in processes().values())


def test_where_there_is_no_proc(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="M6021"):
        processes(tmp_path / "proc")
