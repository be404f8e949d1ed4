"""A whole Millstream in one Python process, on a virtual clock, for programs and tests that need no Spark.

>>> mill = LocalMill()
>>> _ = mill.execute("CREATE STREAM s (k BIGINT, ts BIGINT) ORDER BY ts")
>>> _ = mill.execute("CREATE QUERY q AS SELECT k FROM s WHERE k > 1")
>>> mill.insert("s", [(1, 10), (2, 11)])
>>> mill.batch()
>>> mill.take_rows("q").rows()
[(2,)]
"""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

from millstream.config import Options
from millstream.control.job.jobs import LocalJobs
from millstream.control.job.local import LocalJob
from millstream.control.mill.base import Mill
from millstream.control.mill.python_code import PythonCode
from millstream.control.mill.recovery import recover
from millstream.physical.shard.host import ShardHost
from millstream.runtime.engine import NodeStatistics


class LocalMill(Mill):
    """`checkpoint`: the folder that keeps the mill; a mill kept there earlier resumes. None: in memory. `code`: the
    Python code of an earlier mill."""

    jobs: LocalJobs

    def __init__(
        self,
        options: Options | None = None,
        checkpoint: Path | None = None,
        jobs: LocalJobs | None = None,
        code: PythonCode | None = None,
    ) -> None:
        options = options or Options.read()
        self._first = options.model_copy()
        with ExitStack() as opening:
            if jobs is None:
                jobs = LocalJobs(None if checkpoint is None else Path(checkpoint), shards=options.shards)
                opening.callback(jobs.close)
                if "shards" in options.model_fields_set:
                    jobs.check_shards(options.shards)
            super().__init__(jobs, options=options)
            self.jobs.clock = self.clock.now
            if code is not None:
                self.python_code.share(code)
            recover(self)
            self.python_code.check()
            opening.pop_all()

    def restarted(self) -> LocalMill:
        """Return a new mill that resumes where this one stops, exactly as after the end of the process. It has the same
        Python functions."""
        self.batch()
        self.note_sources(in_memory=True)
        self.jobs.stop()
        return LocalMill(self._first, jobs=self.jobs, code=self.python_code)

    def close(self) -> None:
        """Stop. A mill opened later with the same folder resumes."""
        self.deliveries.close()
        self.jobs.close()

    def hosts(self, name: str) -> list[ShardHost]:
        """The shards that run a query, those of its topmost part first."""
        self.sync()
        placement = self.placement(name)
        assert isinstance(placement.job, LocalJob)
        return [placement.job.host(label) for group in placement.groups for label in group.labels]

    def statistics(self, name: str) -> list[dict[str, NodeStatistics]]:
        """The statistics of all operators in the graphs that run a query, shard by shard."""
        return [host.statistics() for host in self.hosts(name)]
