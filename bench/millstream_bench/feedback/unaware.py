"""This version without its code of feedback: a copy of the sources, from which it is taken out.

What a query does for feedback if none is sent is a few tests a step, at a sink and a batch, and fields of the
checkpoint. A copy without them differs from this version in nothing else, as an older version would.

| taken out | |
|---|---|
| a step | the test for guards, and for groups that were given up |
| a sink | the guard, the order of desired rows, the summary of the punctuation seen |
| an aggregate | doomed groups: their test, their table |
| a join | keys that its inputs are told of |
| a query | its response rules, what its conditions disclaim, guards that a new reader ends |
| a batch | guards that have ended, reports of what is disclaimed, the relay of the driver, patterns for sources |
| the checkpoint | what sinks have seen, gates, what ports have issued |
"""

from __future__ import annotations

import shutil
from pathlib import Path

import millstream

Edit = tuple[str, str]
EDITS: dict[str, tuple[Edit, ...]] = {
    "runtime/engine/execution.py": (
        ("guarded(graph, node, taken.inputs) if node.guarded else taken.inputs", "taken.inputs"),
        ("    for pattern in output.abandoned:\n        upstream.abandon(graph, node, pattern)\n", ""),
        ("        issue(node.ports[port], message)\n", ""),
    ),
    "runtime/engine/nodes.py": (
        ("            if len(element):\n                self.seen.add(element)\n", "            pass\n"),
        ("elif self.guard is not None and isinstance(element, Page):", "elif False:"),
        ("if self.preference is not None and isinstance(element, Page):", "if False:"),
    ),
    "runtime/engine/graph.py": (
        ("        guarding.renew(self, inputs)\n", ""),
        ("        guarding.renew(self, (node,))\n", ""),
    ),
    "runtime/engine/snapshot.py": (
        ('{"seen": sink.seen.to_value(), "gate": _take_gate(sink)}', "{}"),
        ('        "issued": port.issued,\n        "gate": _take_gate(port),\n', ""),
        ("    for reader in buffer.readers():\n        mount_remembered(reader)\n", ""),
        ('    sink.seen.restore(value["seen"])\n', ""),
    ),
    "runtime/aggregate/grouped.py": (
        (
            "            if self._doomed.due(port.rows.height, len(self._state.table)):\n"
            "                self._doom()\n",
            "",
        ),
        ("abandoned=self._doomed.take_found(), ", ""),
        ("self._doomed.without(where(partials, ~late) if late.any() else partials)",
         "where(partials, ~late) if late.any() else partials"),
        ("        self._doomed.close(closes)\n", ""),
        (', "doomed": self._doomed.table', ""),
        ('            "watched": self._doomed.to_value(),\n', ""),
        ("        if self._doomed.watched and self._doomed.taken:\n            self._doom()\n", ""),
    ),
    "runtime/join/window_join.py": (
        ("self._told_keys() if self.tells_keys and equality.pairs else None", "None"),
    ),
    "runtime/join/multi/multi_join.py": (
        ("None if self._kernel.by_rows else ToldKeys(columns, [True] * len(inputs))", "None"),
    ),
    "physical/plan/compile.py": (
        ("                respond=partial(responded, chain),\n", ""),
        ("[Feedback(Intent.ASSUMED, pattern) for pattern in refused(chain[-1])]", "()"),
    ),
    "physical/shard/host.py": (
        ("        retire(self.graph)\n", ""),
        ('            "skipped": self.intake.skipped,\n', ""),
    ),
    "physical/shard/batch.py": (
        ("        disclaimed=host.disclaimed(),\n", ""),
        ("        skipped=dict(host.intake.skipped),\n", ""),
    ),
    "physical/shard/topology.py": (
        ("            route.unwanted = self.unwanted.get(key, ())\n", ""),
    ),
    "control/job/base.py": (
        ("        for tenant in served:\n            tenant.relay(self)\n", ""),
    ),
}  # fmt: skip
"""For each file, texts that occur once, with what takes their place."""


def without_feedback(folder: Path) -> Path:
    """Write the copy into `folder/src`, and return the folder."""
    package = folder / "src" / "millstream"
    shutil.copytree(Path(millstream.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    for name, edits in EDITS.items():
        file = package / name
        text = file.read_text()
        for old, new in edits:
            if text.count(old) != 1:
                raise AssertionError(f"{name} has {text.count(old)} times, not once: {old!r}")
            text = text.replace(old, new)
        file.write_text(text)
    return folder
