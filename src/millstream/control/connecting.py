"""Opening a connection: its arguments are checked, and a Spark session is found or started."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from millstream.arguments import check_flag
from millstream.config import Options
from millstream.control.connection import Connection
from millstream.control.folders import checkpoint_folder, log_file
from millstream.control.job.jobs import check_jobs
from millstream.control.job.ownership import check_unowned
from millstream.control.observe.log_file import check_format
from millstream.control.spark.environment import check_session
from millstream.control.spark.given_session import check_workers, prepare_session
from millstream.control.spark.job import SparkJob
from millstream.control.spark.session import current_session, separate_session, start_session
from millstream.errors import OptionError, did_you_mean

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def connect(
    spark: SparkSession | None = None,
    *,
    local: bool = False,
    master: str | None = None,
    checkpoint: str | Path | None = None,
    settings: Mapping[str, str] | None = None,
    log: str | Path | None = None,
    log_format: str = "text",
    resume: bool = True,
    **options: Any,
) -> Connection:
    """Connect to Millstream.

    `spark`       the session to use; None: the program's, or if it has none, a new one, which is stopped when the
                  connection is closed. Jobs run in a copy of a session of the program, whose settings stay as they are.
    `local`       run in this process, without Spark and Java. Batches run while the program waits: in `insert`,
                  `punctuate`, `take` and `await_end`; each call also reads a batch of the streams with a connector.
    `master`      the master of a new session: `local[*]`, `spark://…`
    `checkpoint`  a folder that all jobs can reach; a connection to a folder used before resumes. None: a temporary
                  folder, with `local` memory.
    `settings`    Spark settings of a new session.
    `log`         the file for the messages of the JVM and the workers of a new session; None: discard them.
    `log_format`  its format, text or json.
    `resume`      start the queries of the checkpoint at once; False: with the next query, or at the end of `together`.
    `options`     Millstream's options, such as strategy, ets, page_rows, shards.
    """
    check_flag(local, "local")
    check_flag(resume, "resume")
    check_format(log_format)
    read = _read_options(options)  # mistakes are reported before Spark starts
    folder = checkpoint_folder(checkpoint)
    if local:
        if spark is not None or master is not None:
            raise OptionError("M6052", "local with a session or a master", hint="local=True needs neither")
        if settings is not None:
            raise OptionError("M6052", "local with settings", hint="settings are those of a new session of Spark")
        if log is not None:
            hint = "it is that of Spark; logging.getLogger('millstream') has the messages of this process"
            raise OptionError("M6052", "local with a log", hint=hint)
        return Connection(None, folder, read, own=False, resume=resume)
    if spark is not None:
        check_session(spark, master=master, settings=settings, log=log)
    elif (spark := current_session()) is not None and (master or settings or log):
        hint = "stop that session first, or leave master, settings and log out"
        raise OptionError("M6052", "this program has a Spark session already", hint=hint)
    if folder is not None:
        check_unowned(folder)  # before a JVM is started for nothing
        check_jobs(folder, SparkJob.host_name, read.shards if "shards" in read.model_fields_set else None)
    if spark is not None:
        prepare_session(spark)
        return Connection(separate_session(spark), folder, read, own=False, resume=resume, given=spark)
    session = start_session(master or "local[*]", settings, log_file(log), log_format)
    if not (master or "local").startswith("local"):
        try:
            check_workers(session)
        except BaseException:
            session.stop()
            raise
    return Connection(session, folder, read, own=True, resume=resume)


def _read_options(given: Mapping[str, Any]) -> Options:
    """Read Millstream's options; a misspelt name may also be that of an argument of `connect`."""
    own = connect.__kwdefaults__ or {}
    for name in given:
        if name not in Options.model_fields:
            hint = did_you_mean(name, [*Options.model_fields, *own])
            raise OptionError("M6001", f"unknown option '{name}'", hint=hint)
    return Options.read(**given)
