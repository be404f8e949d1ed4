"""Requests of other processes to the owner of a checkpoint: `millstream feedback` to `millstream run --checkpoint`.

    checkpoint/mailbox/1763…-4711.request     {"query": "q", "feedback": "~[k = 5]"}
    checkpoint/mailbox/1763…-4711.answer      {"warnings": [text, …]} or {"code": "M4004", "message": …, "hint": …}

The sender writes a request, waits for the answer and removes both. The folder is for its owner alone, and requests of
other users are not read. Requests from before the owner started are discarded.
"""

from __future__ import annotations

import json
import logging
import os
import stat
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from millstream.atomic_file import write_whole
from millstream.control.job.ownership import check_unowned
from millstream.errors import MillstreamError, OptionError

if TYPE_CHECKING:
    from millstream.control.connection import Connection

LOG = logging.getLogger("millstream")
FOLDER, REQUEST, ANSWER = "mailbox", ".request", ".answer"
POLLED = 0.2
"""Seconds between two looks into the mailbox."""
OWNER_ONLY = 0o700


class Mailbox:
    """The mailbox of a connection that has a checkpoint."""

    def __init__(self, connection: Connection, checkpoint: Path) -> None:
        self._connection, self._folder = connection, checkpoint / FOLDER
        self._looked = 0.0
        self._folder.mkdir(mode=OWNER_ONLY, exist_ok=True)
        self._folder.chmod(OWNER_ONLY)
        for path in self._folder.iterdir():
            path.unlink(missing_ok=True)

    def look(self) -> None:
        """Carry out the requests that have come, in their order."""
        if time.monotonic() - self._looked < POLLED:
            return
        self._looked = time.monotonic()
        for path in sorted(self._folder.glob(f"*{REQUEST}")):
            answer = self._carried_out(path)
            path.unlink(missing_ok=True)
            if answer is not None:
                write_whole(path.with_suffix(ANSWER), json.dumps(answer).encode())

    def _carried_out(self, path: Path) -> dict[str, Any] | None:
        """Carry out a request; return the answer, None if the request is not from the owner."""
        try:
            own = path.lstat()
            if own.st_uid != os.getuid() or not stat.S_ISREG(own.st_mode):
                LOG.warning("a request in '%s' is not from the owner of this process, and is ignored", self._folder)
                return None
            request = json.loads(path.read_bytes())
            query, feedback = str(request["query"]), str(request["feedback"])
            tell = self._connection.mill.prod if feedback.lstrip().startswith("{") else self._connection.mill.feedback
        except (OSError, ValueError, KeyError, TypeError):
            return {"code": "M6074", "message": "a request that cannot be read", "hint": ""}
        try:
            warnings = tell(query, feedback)
        except MillstreamError as error:
            return {"code": error.code, "message": error.message, "detail": error.detail, "hint": error.hint}
        LOG.info("feedback to query '%s': %s", query, feedback)
        return {"warnings": [str(warning) for warning in warnings]}


def post(checkpoint: Path, query: str, feedback: str, seconds: float) -> list[str]:
    """Send feedback to a query of the process that runs with a checkpoint, wait until it is accepted, and return the
    warnings about it. Raise its error, or OptionError if no process answers."""
    hint = "millstream run FILE --checkpoint DIR runs queries that can be told"
    try:
        check_unowned(checkpoint)
    except OptionError as error:
        if error.code != "M6070":
            raise
    else:
        raise OptionError("M6073", f"no process runs with the checkpoint '{checkpoint}'", hint=hint)
    folder = checkpoint / FOLDER
    if not folder.is_dir():
        raise OptionError("M6073", f"the process that uses '{checkpoint}' takes no requests", hint=hint)
    path = folder / f"{time.time_ns()}-{os.getpid()}{REQUEST}"
    answered, deadline = path.with_suffix(ANSWER), time.monotonic() + seconds
    try:
        write_whole(path, json.dumps({"query": query, "feedback": feedback}).encode())
        while not answered.exists():
            if time.monotonic() > deadline:
                message = f"the process that uses '{checkpoint}' has not answered in {seconds:g} s"
                raise OptionError("M6074", message, hint="is a batch running? --seconds waits longer")
            time.sleep(POLLED / 4)
        found = json.loads(answered.read_bytes())
    except OSError as error:
        raise OptionError("M6074", f"cannot write to '{folder}': {error.strerror or error}") from error
    finally:
        path.unlink(missing_ok=True)
        answered.unlink(missing_ok=True)
    if "code" in found:
        raise MillstreamError(found["code"], found["message"], detail=found.get("detail", ""), hint=found["hint"])
    return list(found.get("warnings", ()))
