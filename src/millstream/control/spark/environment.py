"""What a Spark session needs, checked before and while it starts: Java, the master. Each failure is one message."""

from __future__ import annotations

import os
import re
import shutil
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from millstream.errors import OptionError

OLDEST_JAVA = 17
REACHED_WITHIN = 5.0
"""Seconds in which a master must accept a connection."""
_LOCAL = re.compile(r"local(\[(\d+|\*)(, *\d+)?\])?|local-cluster\[.*\]|yarn")
_INSTALL = f"install Java {OLDEST_JAVA} or newer (make java explains how), and set JAVA_HOME to its folder"


def check_java() -> None:
    """Raise OptionError unless there is a Java that Spark can run with. Its version is read, not asked for: to start
    a JVM takes time."""
    home = os.environ.get("JAVA_HOME")
    java = Path(home) / "bin" / "java" if home else Path(shutil.which("java") or "")
    if home and not java.is_file():
        raise OptionError("M6055", f"JAVA_HOME is '{home}', and there is no bin/java in it", hint=_INSTALL)
    if not java.is_file():
        raise OptionError("M6055", f"Spark needs Java {OLDEST_JAVA} or newer, and there is none", hint=_INSTALL)
    version = _version(java)
    if version is not None and version < OLDEST_JAVA:
        raise OptionError("M6055", f"Spark needs Java {OLDEST_JAVA} or newer; {java} is Java {version}", hint=_INSTALL)


def _version(java: Path) -> int | None:
    """The version of a Java by the file beside it; None if it is unknown.

    >>> _version(Path("/no/such/java"))
    """
    try:
        text = (java.resolve().parent.parent / "release").read_text()
    except (OSError, UnicodeDecodeError):
        return None
    found = re.search(r'JAVA_VERSION="(?:1\.)?(\d+)', text)
    return int(found[1]) if found else None


def check_master(master: Any) -> None:
    """Raise OptionError for what is no master, and unless a standalone master accepts connections: Spark itself would
    try for a minute. Whether other masters are there is not known here."""
    if not isinstance(master, str) or not (_LOCAL.fullmatch(master) or "://" in master):
        hint = "local[*], local[4], spark://host:7077, yarn or k8s://…"
        raise OptionError("M6064", f"{master!r} is not a Spark master", hint=hint)
    if not master.startswith("spark://"):
        return
    reasons = []
    for address in master.removeprefix("spark://").split(","):
        host, _, port = address.strip().rpartition(":")
        if not host or not port.isdigit():
            raise OptionError("M6064", f"the Spark master '{master}' is malformed", hint="spark://host:7077")
        try:
            socket.create_connection((host, int(port)), REACHED_WITHIN).close()
        except (OSError, OverflowError) as error:
            reasons.append(f"{address}: {getattr(error, 'strerror', None) or error}")
        else:
            return
    hint = "start the cluster, or leave the master out to run on this machine"
    message = f"cannot reach the Spark master '{master}'"
    raise OptionError("M6064", message, detail=f"{'; '.join(reasons)}.", hint=hint)


def is_stopped(spark: Any) -> bool:
    """True once the program has stopped the session, or its JVM has."""
    context: Any = spark.sparkContext._jsc
    try:
        return context is None or bool(context.sc().isStopped())
    except Exception:  # the JVM does not answer
        return True


def check_session(spark: Any, *, master: str | None, **of_a_new_one: Any) -> None:
    """Raise OptionError if a session is none, or comes with what only a new one can have."""
    if not hasattr(spark, "sparkContext"):
        hint = "connect(spark), or connect(master='…'), or connect(local=True)"
        raise OptionError("M6052", f"{spark!r} is not a Spark session", hint=hint)
    if is_stopped(spark):
        raise OptionError("M6052", "the Spark session is stopped", hint="connect() starts one, or make a new session")
    if master is not None:
        raise OptionError("M6052", "a session and a master were given", hint="a session has its master already")
    for name, given in of_a_new_one.items():
        if given is not None:
            message = f"a session and {name} were given"
            raise OptionError("M6052", message, hint=f"{name} is for a new session; this one has started already")


@contextmanager
def starting(master: str, log: Path | None) -> Iterator[None]:
    """Turn the failure of a session to start into OptionError."""
    try:
        yield
    except OptionError:
        raise
    except Exception as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        caused = [line for line in lines if "Exception: " in line and "Py4J" not in line]
        reason = (caused or lines or [type(error).__name__])[0].removeprefix(": ").rstrip(".")
        hint = f"{log} has the messages of Spark" if log else "log='spark.log' (--log) keeps the messages of Spark"
        raise OptionError("M6064", f"Spark did not start at '{master}'", detail=f"{reason}.", hint=hint) from error
