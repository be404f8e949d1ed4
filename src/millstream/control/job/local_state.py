"""An SQLite database for a job in one process: the state of its shards and the offsets of its batches.

Without a path the database is in memory, for a restart within the process, and holds no offsets. In a file a batch is
one transaction, and its offset is written before it begins: a batch that was interrupted runs again with the same
input.
"""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

from millstream.algebra.values import FORMAT, HINT, check_format, unversioned
from millstream.errors import InputError
from millstream.physical.shard.durable import Store
from millstream.physical.wire.reading import Offset

_TABLES = """
    CREATE TABLE IF NOT EXISTS state (label INTEGER, key TEXT, value BLOB, PRIMARY KEY (label, key)) WITHOUT ROWID;
    CREATE TABLE IF NOT EXISTS batches (number INTEGER PRIMARY KEY, offset TEXT, done INTEGER);
"""


class LocalState:
    def __init__(self, path: Path | None = None) -> None:
        self.durable = path is not None
        fresh = path is None or not path.exists()
        self._database = sqlite3.connect(path or ":memory:", isolation_level=None, check_same_thread=False)
        if fresh:
            self._database.execute(f"PRAGMA user_version = {FORMAT}")
        else:
            self._check(f"'{path}'")
        if self.durable:
            self._database.execute("PRAGMA journal_mode = WAL")
        self._database.executescript(_TABLES)

    def _check(self, what: str) -> None:
        """Raise InputError if the file is of another format, or damaged."""
        try:
            (found,) = self._database.execute("PRAGMA user_version").fetchone()
            (result,) = self._database.execute("PRAGMA quick_check(1)").fetchone()
        except sqlite3.DatabaseError:
            raise unversioned(what) from None
        check_format(found, what)
        if result != "ok":
            raise InputError("M5023", f"{what} is damaged", detail=f"SQLite says: {result}.", hint=HINT)

    def store(self, label: int) -> Store:
        """The state of a shard."""
        return _SqliteStore(self._database, label)

    def last(self) -> tuple[int, Offset] | None:
        """The last committed batch, and the offset at its end."""
        query = "SELECT number, offset FROM batches WHERE done ORDER BY number DESC LIMIT 1"
        found = self._database.execute(query).fetchone()
        return None if found is None else (found[0], json.loads(found[1]))

    def begun(self) -> Offset | None:
        """The end of the batch that was begun after the last committed one, if there is one."""
        if not self.durable:
            return None
        found = self._database.execute("SELECT offset FROM batches WHERE NOT done").fetchone()
        return None if found is None else json.loads(found[0])

    def begin(self, batch: int, end: Offset) -> None:
        if self.durable:
            self._database.execute("INSERT OR REPLACE INTO batches VALUES (?, ?, 0)", (batch, json.dumps(end)))
            self._database.execute("BEGIN")

    def commit(self, batch: int) -> None:
        if self.durable:
            self._database.execute("UPDATE batches SET done = 1 WHERE number = ?", (batch,))
            self._database.execute("DELETE FROM batches WHERE number < ?", (batch,))
            self._database.execute("COMMIT")

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
            message = f"the state of shard {self._label} is damaged"
            raise InputError("M5023", message, detail=f"SQLite says: {error}.", hint=HINT) from error
        return None if found is None else bytes(found[0])

    def put(self, key: str, value: bytes) -> None:
        self._database.execute("INSERT OR REPLACE INTO state VALUES (?, ?, ?)", (self._label, key, value))

    def remove(self, key: str) -> None:
        self._database.execute("DELETE FROM state WHERE label = ? AND key = ?", (self._label, key))

    def clear(self) -> None:
        self._database.execute("DELETE FROM state WHERE label = ?", (self._label,))
