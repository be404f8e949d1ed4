"""An SQLite database for a job in one process: the state of its shards and the offsets of its batches.

Without a path the database is in memory, for a restart within the process, and holds no offsets. In a file a batch is
one transaction, and its offset is in `batches.log` before it begins: a batch that was interrupted runs again with the
same input.

The file is changed only when its write-ahead file is copied into it, and has the number of these copies in its header.
`batches.log` names that number: an older file beside a newer write-ahead file is found out. The mark of the job is
in the file, and with each batch also in the write-ahead file, with the number of the copies: of either file, one of
another job or an older one is found out.
"""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

from millstream.algebra.values import FORMAT, HINT, check_format, unversioned
from millstream.control.job.identity import FILE
from millstream.control.job.parts import behind, foreign
from millstream.errors import InputError
from millstream.physical.shard.durable import Store
from millstream.physical.wire.reading import Offset

_TABLES = """
    CREATE TABLE IF NOT EXISTS state (label INTEGER, key TEXT, value BLOB, PRIMARY KEY (label, key)) WITHOUT ROWID;
    CREATE TABLE IF NOT EXISTS batches (number INTEGER PRIMARY KEY, offset TEXT, mark BLOB, copies INTEGER);
    CREATE TABLE IF NOT EXISTS job (mark BLOB PRIMARY KEY);
"""
OUTPUTS = -1
"""Labels what belongs to no shard: the state of the outputs of queries."""
WAL_BYTES = 4_000_000
"""Size of the write-ahead file at which it is copied into the database."""
_COPIES = slice(68, 72)
"""Place of the number of copies in the database file: SQLite's application id."""


def last_batch(path: Path, mark: bytes) -> int:
    """The last committed batch of a database, -1 if it has none. It is only read: a checkpoint that is refused stays as
    it is. Raise InputError if the file is of another format, or damaged, or not of the job with this mark."""
    what = f"'{path}'"
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as database:
            (found,) = database.execute("PRAGMA user_version").fetchone()
            (result,) = database.execute("PRAGMA quick_check(1)").fetchone()
            tables = found == FORMAT and database.execute("SELECT 1 FROM sqlite_master WHERE name = 'job'").fetchone()
            job = database.execute("SELECT mark FROM job").fetchone() if tables else None
            last = database.execute("SELECT number, mark, copies FROM batches").fetchone() if tables else None
    except sqlite3.OperationalError:
        raise
    except sqlite3.DatabaseError as error:
        if "not a database" in str(error):
            raise unversioned(what) from None
        raise _damaged(what, error) from error
    check_format(found or None, what)
    number, held, begun = last or (-1, mark, 0)
    wal = path.with_name(f"{path.name}-wal")
    if job not in (None, (mark,)):
        raise foreign(path, path.with_name(FILE))
    if held != mark:
        raise foreign(wal, path)
    if result != "ok":
        raise _damaged(what, result)
    if last is None:
        return -1
    if begun not in ((now := copies(path)), now + 1):
        raise behind(wal, f"follows copy {begun}", f"'{path}' is copy {now}", "One of them is an older copy.")
    return int(number)


def _damaged(what: str, said: object) -> InputError:
    return InputError("M5023", f"{what} is damaged", detail=f"SQLite says: {said}.", hint=HINT)


def copies(path: Path) -> int:
    """How often the write-ahead file of a database was copied into its file, as the file says."""
    with path.open("rb") as file:
        return int.from_bytes(file.read(_COPIES.stop)[_COPIES], "big")


class LocalState:
    def __init__(self, path: Path | None = None, mark: bytes = b"") -> None:
        self._mark = mark
        self.durable = path is not None
        self._path, self._wal = path, Path(f"{path}-wal")
        self.copies = 0
        """How often the write-ahead file was copied into the database file."""
        if path is not None:
            path.touch(mode=0o600)
        fresh = path is None or not path.stat().st_size
        self._database = sqlite3.connect(path or ":memory:", isolation_level=None, check_same_thread=False)
        if fresh:
            self._database.execute(f"PRAGMA user_version = {FORMAT}")
        if self.durable:
            self._database.execute("PRAGMA journal_mode = WAL")
            self._database.execute("PRAGMA wal_autocheckpoint = 0")
        self._database.executescript(f"BEGIN; {_TABLES} INSERT OR IGNORE INTO job VALUES (x'{mark.hex()}'); COMMIT")
        if self.durable:
            self._copy()

    def _copy(self) -> None:
        """Copy the write-ahead file into the database file."""
        assert self._path is not None
        number = copies(self._path) + 1
        self._database.execute("BEGIN")
        self._database.execute(f"PRAGMA application_id = {number}")
        self._database.execute("UPDATE batches SET copies = ?", (number,))
        self._database.execute("COMMIT")
        self._database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self.copies = copies(self._path)

    def store(self, label: int) -> Store:
        """The state of a shard."""
        return _SqliteStore(self._database, label)

    def last(self) -> tuple[int, Offset] | None:
        """The last committed batch, and the offset at its end."""
        found = self._database.execute("SELECT number, offset FROM batches").fetchone()
        return None if found is None else (found[0], json.loads(found[1]))

    def begin(self) -> None:
        if self.durable:
            self._database.execute("BEGIN")

    def commit(self, batch: int, end: Offset) -> None:
        if self.durable:
            self._database.execute("DELETE FROM batches")
            noted = (batch, json.dumps(end), self._mark, self.copies)
            self._database.execute("INSERT INTO batches VALUES (?, ?, ?, ?)", noted)
            self._database.execute("COMMIT")
            if self._wal.stat().st_size > WAL_BYTES:
                self._copy()

    def abandon(self) -> None:
        """Roll back what the batch has written."""
        if self._database.in_transaction:
            self._database.execute("ROLLBACK")

    def close(self) -> None:
        self.abandon()
        self._database.close()


class _SqliteStore:
    def __init__(self, database: sqlite3.Connection, label: int) -> None:
        self._database, self._label = database, label

    def get(self, key: str) -> bytes | None:
        query = "SELECT value FROM state WHERE label = ? AND key = ?"
        try:
            found = self._database.execute(query, (self._label, key)).fetchone()
        except sqlite3.DatabaseError as error:
            raise _damaged(f"the state of shard {self._label}", error) from error
        return None if found is None else bytes(found[0])

    def put(self, key: str, value: bytes) -> None:
        self._database.execute("INSERT OR REPLACE INTO state VALUES (?, ?, ?)", (self._label, key, value))

    def remove(self, key: str) -> None:
        self._database.execute("DELETE FROM state WHERE label = ? AND key = ?", (self._label, key))

    def clear(self) -> None:
        self._database.execute("DELETE FROM state WHERE label = ?", (self._label,))
