"""Programs of the documentation, run as printed: what each `print` says is what the comment behind it promises.

python -m tests.docs.programs FILE…    runs Python files, and the Python blocks of pages, in one process
"""

from __future__ import annotations

import builtins
import sys
from pathlib import Path
from typing import Any

from tests.docs.blocks import blocks_of


def program_of(path: Path) -> str:
    """The text of a Python file, or of all Python blocks of a page."""
    if path.suffix == ".py":
        return path.read_text(encoding="utf-8")
    return "\n".join(block.text for block in blocks_of(path) if block.info == "python")


def run_program(text: str, **names: Any) -> dict[str, Any]:
    """Run a program in which `names` are known; return its namespace.

    Where a comment follows `print(…)` on its line and one line is printed, the comment begins with that line.
    """
    lines = text.splitlines()

    def checked_print(*values: Any) -> None:
        printed = " ".join(map(str, values))
        call, _, comment = lines[sys._getframe(1).f_lineno - 1].partition("  # ")
        if comment and call.lstrip().startswith("print(") and "\n" not in printed:
            assert comment.startswith(printed), f"{call.strip()} prints {printed}, not {comment}"
        builtins.print(*values)

    space = {"__name__": "__main__", **names, "print": checked_print}
    exec(compile(text, "<documentation>", "exec"), space)
    return space


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        run_program(program_of(Path(argument)))
