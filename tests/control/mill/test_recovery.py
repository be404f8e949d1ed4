"""Recovery of a mill from its logs, whenever the driver ended."""

from pathlib import Path

import pytest

from millstream.config import Options
from millstream.control.job.jobs import LocalJobs
from millstream.control.mill.base import Mill
from millstream.control.mill.recovery import recovered
from millstream.physical.wire.records import StartQuery, StopQuery

STREAM = "CREATE STREAM s (k BIGINT, ts BIGINT) ORDER BY ts"


class Killed(BaseException):
    pass


def opened(folder: Path) -> Mill:
    return recovered(LocalJobs(folder, shards=1), options=Options(), wall=True)


def killed_before_note(mill: Mill, statement: str) -> None:
    """Run a statement in a driver that ends just before it writes to its log."""

    def kill(kind: str, value: object) -> None:
        raise Killed

    mill.journal.note = kill  # type: ignore[method-assign]
    with pytest.raises(Killed):
        mill.execute(statement)
    mill.jobs.close()


def running(mill: Mill) -> set[str]:
    """The queries that run according to the job's log."""
    log, found = mill.jobs.job().log, set()
    for record in log.read(0, log.end()):
        if isinstance(record, StartQuery):
            assert record.name not in found
            found.add(record.name)
        elif isinstance(record, StopQuery):
            found.remove(record.name)
    return found


def test_a_query_that_was_only_half_started(tmp_path: Path) -> None:
    mill = opened(tmp_path)
    mill.execute(STREAM)
    mill.execute("CREATE QUERY one AS SELECT k FROM s")
    killed_before_note(mill, "CREATE QUERY two AS SELECT k + 1 AS k FROM s")
    again = opened(tmp_path)
    assert set(again.queries) == running(again) == {"one"}
    again.execute("CREATE QUERY two AS SELECT k + 2 AS k FROM s")
    again.insert("s", [(1, 1)])
    again.batch()
    assert again.take_rows("two").rows() == [(3,)]
    again.jobs.close()


def test_a_query_that_was_only_half_stopped(tmp_path: Path) -> None:
    mill = opened(tmp_path)
    mill.execute(f"{STREAM}; CREATE QUERY one AS SELECT k FROM s; CREATE QUERY two AS SELECT k FROM s WHERE k > 1")
    killed_before_note(mill, "DROP QUERY one")
    for _ in range(2):
        again = opened(tmp_path)
        assert set(again.queries) == running(again) == {"two"}
        assert len(again.placements.groups) == 1
        again.jobs.close()


def test_a_query_that_is_dropped_before_the_first_batch(tmp_path: Path) -> None:
    mill = opened(tmp_path)
    mill.execute(f"{STREAM}; CREATE QUERY gone AS SELECT k FROM s WHERE k > 0; DROP QUERY gone")
    mill.jobs.step()
    mill.execute("CREATE QUERY q AS SELECT k FROM s")
    mill.insert("s", [(1, 1)])
    mill.batch()
    assert mill.take_rows("q").rows() == [(1,)]
    mill.jobs.close()


def test_a_name_that_is_used_again(tmp_path: Path) -> None:
    mill = opened(tmp_path)
    mill.execute(
        f"{STREAM}; CREATE QUERY q AS SELECT k FROM s; DROP QUERY q; CREATE QUERY q AS SELECT k + 1 AS k FROM s"
    )
    mill.jobs.close()
    again = opened(tmp_path)
    assert set(again.queries) == running(again) == {"q"}
    assert "k + 1" in again.queries["q"].text
    again.jobs.close()


@pytest.mark.parametrize("first", [1, 2])
def test_a_name_that_is_used_again_in_another_job(tmp_path: Path, first: int) -> None:
    texts = {1: "SELECT k FROM s", 2: "SELECT s.k FROM s JOIN t ON s.k = t.k JOIN u ON t.ts = u.k"}
    mill = recovered(LocalJobs(tmp_path, shards=2), options=Options(), wall=True)
    mill.execute(f"{STREAM}; {STREAM.replace(' s ', ' t ')}; {STREAM.replace(' s ', ' u ')}")
    mill.add_query("q", texts[first])
    mill.execute("DROP QUERY q")
    mill.add_query("q", texts[3 - first])
    stages = mill.job("q").stages
    mill.jobs.close()
    for _ in range(2):
        again = recovered(LocalJobs(tmp_path, shards=2), options=Options(), wall=True)
        assert set(again.queries) == {"q"} and again.job("q").stages == stages == 3 - first
        again.jobs.close()


def test_a_file_resumes_at_the_next_statement(tmp_path: Path) -> None:
    mill = opened(tmp_path)
    assert mill.journal.statements_done(3) == 0
    mill.journal.note_file(0)
    mill.jobs.close()
    mill = opened(tmp_path)
    assert mill.journal.statements_done(3) == 0
    mill.execute(STREAM)  # done, but not noted
    mill.jobs.close()
    mill = opened(tmp_path)
    assert mill.journal.statements_done(3) == 1
    mill.journal.note_file(1)
    mill.execute("SET strategy = 'bfs'")
    mill.journal.note_file(2)
    mill.jobs.close()
    mill = opened(tmp_path)
    assert mill.journal.statements_done(3) == 2
    mill.execute("CREATE QUERY q AS SELECT k FROM s")
    mill.journal.note_file(None)
    mill.jobs.close()
    assert opened(tmp_path).journal.statements_done(5) == 5
