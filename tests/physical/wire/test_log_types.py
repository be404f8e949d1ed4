"""The process that reads a control log knows all types that a plan may contain, whatever else it imports."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from pkgutil import walk_packages

import millstream.algebra
import millstream.logical
from millstream.algebra import values

KNOWN = "from millstream.physical.wire import records; from millstream.algebra import values; print(*values._by_name)"


def test_a_reader_of_a_log_knows_all_types_of_plans() -> None:
    for package in (millstream.algebra, millstream.logical):
        for module in walk_packages(package.__path__, f"{package.__name__}."):
            import_module(module.name)
    planned = {
        name
        for name, kind in values._by_name.items()
        if kind.type.__module__.startswith(("millstream.algebra.", "millstream.logical."))
    }
    done = subprocess.run([sys.executable, "-c", KNOWN], capture_output=True, text=True, check=True)
    assert planned - {*done.stdout.split()} == set()
