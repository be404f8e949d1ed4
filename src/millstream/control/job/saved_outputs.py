"""The state of query outputs that later punctuations depend on, saved batch by batch in the folder of a job."""

from __future__ import annotations

from pathlib import Path

from millstream.algebra import values
from millstream.atomic_file import write_whole

OutputStates = dict[str, dict[str, object]]
"""State of the outputs of a tenant's queries, by query."""
KEPT = 3
"""Number of batches whose states are kept."""


class SavedOutputs:
    def __init__(self, job: Path) -> None:
        self._folder = job / "outputs"

    def save(self, batch: int, states: dict[str, OutputStates]) -> None:
        """Save the states of all tenants after a batch; forget the oldest."""
        self._folder.mkdir(exist_ok=True)
        write_whole(self._folder / str(batch), values.encode(states))
        for old in self._batches()[:-KEPT]:
            (self._folder / str(old)).unlink()

    def after(self, last: int, tenant: str) -> OutputStates:
        """The states of a tenant's queries as saved by the latest batch up to `last`."""
        found = [batch for batch in self._batches() if batch <= last]
        if not found:
            return {}
        path = self._folder / str(found[-1])
        held: dict[str, OutputStates] = values.decode(path.read_bytes(), f"'{path}'")
        return held.get(tenant, {})

    def _batches(self) -> list[int]:
        """The batches whose outputs are saved, in order."""
        return sorted(int(path.name) for path in self._folder.glob("[0-9]*"))
