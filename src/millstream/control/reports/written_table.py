"""The rows of tables that streams write: fetched for statements that run once, and counted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import polars as pl

from millstream.control.reports import Reported, reports_of

if TYPE_CHECKING:
    from millstream.control.job.base import Job
    from millstream.control.mill.base import Mill
    from millstream.control.mill.placement import Placement
    from millstream.physical.shard.batch import Status


class TableRows(Reported):
    stem = "written_table"

    def __init__(self, mill: Mill) -> None:
        super().__init__(mill)
        self._fetched: dict[int, dict[str, pl.DataFrame]] = {}
        """Rows of tables that were asked for, by the number of the request."""

    def take(self, job: Job, statuses: Sequence[Status], *, again: bool) -> None:  # noqa: ARG002
        for table, fetched in () if again else reports_of(statuses, self.stem):
            for number, rows in fetched.items():
                held = self._fetched.setdefault(number, {})
                held[table] = pl.concat([held[table], rows]) if table in held else rows

    def fetched(self, number: int) -> dict[str, pl.DataFrame]:
        """The rows of tables from all shards; a table that has failed is not among them."""
        return self._fetched.pop(number, {})

    def counts(self, placement: Placement, table: str) -> tuple[int, int, str]:
        """Numbers of rows in a table and of rows that were refused, as last reported, and why one of them was."""
        found = [each for each in self.summaries(placement.reports()) if each[0] == table]
        reasons = [reason for _, _, _, reason in found if reason]
        rows, refused = sum(rows for _, rows, _, _ in found), sum(refused for _, _, refused, _ in found)
        return rows, refused, reasons[-1] if reasons else ""
