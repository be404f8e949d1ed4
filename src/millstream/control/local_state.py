"""What a job in one process keeps from batch to batch: the state of its shards, and the offsets of its batches.

In memory, it is there for a restart within the process. In a folder it is an SQLite database: a batch is one
transaction, and its offset is written before it begins, so that a batch that was interrupted is run again as it was.
"""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Protocol

from millstream.errors import InputError
from millstream.physical.durable import Store
from millstream.physical.reading import Offset

FORMAT = 1
TOKEN = "token"
_TABLES = """
    CREATE TABLE IF NOT EXISTS state (label INTEGER, key TEXT, value BLOB, PRIMARY KEY (label, key)) WITHOUT ROWID;
    CREATE TABLE IF NOT EXISTS batches (number INTEGER PRIMARY KEY, offset TEXT, done INTEGER);
"""


class LocalState(Protocol):
    durable: bool

    def store(self, label: int) -> Store:
        """The state of a shard."""
        ...

    def last(self) -> tuple[int, Offset] | None:
        """The last batch that was committed, and where it ended."""
        ...

    def begun(self) -> Offset | None:
        """Where a batch ends that was begun after it and not committed."""
        ...

    def begin(self, batch: int, end: Offset) -> None: ...
    def commit(self, batch: int) -> None: ...
    def abandon(self) -> None:
        """Forget what the batch has written."""
        ...

    def close(self) -> None: ...


class MemoryStore:
    """A state store in a dictionary."""

    def __init__(self) -> None:
        self._held: dict[str, bytes] = {}

    def token(self) -> str | None:
        held = self._held.get(TOKEN)
        return None if held is None else held.decode()

    def put_token(self, token: str) -> None:
        self._held[TOKEN] = token.encode()

    def get(self, key: str) -> bytes:
        return self._held[key]

    def put(self, key: str, value: bytes) -> None:
        self._held[key] = value

    def remove(self, key: str) -> None:
        del self._held[key]

    def clear(self) -> None:
        self._held.clear()


class MemoryState:
    durable = False

    def __init__(self) -> None:
        self._stores: dict[int, MemoryStore] = {}

    def store(self, label: int) -> Store:
        return self._stores.setdefault(label, MemoryStore())

    def last(self) -> None:
        return None

    def begun(self) -> None:
        return None

    def begin(self, batch: int, end: Offset) -> None:
        pass

    def commit(self, batch: int) -> None:
        pass

    def abandon(self) -> None:
        pass

    def close(self) -> None:
        pass


class _SqliteStore:
    def __init__(self, database: sqlite3.Connection, label: int) -> None:
        self._database, self._label = database, label

    def _value(self, key: str) -> bytes | None:
        query = "SELECT value FROM state WHERE label = ? AND key = ?"
        found = self._database.execute(query, (self._label, key)).fetchone()
        return None if found is None else bytes(found[0])

    def token(self) -> str | None:
        held = self._value(TOKEN)
        return None if held is None else held.decode()

    def put_token(self, token: str) -> None:
        self.put(TOKEN, token.encode())

    def get(self, key: str) -> bytes:
        value = self._value(key)
        if value is None:
            raise InputError("M5023", f"the state of shard {self._label} lacks '{key}'")
        return value

    def put(self, key: str, value: bytes) -> None:
        self._database.execute("INSERT OR REPLACE INTO state VALUES (?, ?, ?)", (self._label, key, value))

    def remove(self, key: str) -> None:
        self._database.execute("DELETE FROM state WHERE label = ? AND key = ?", (self._label, key))

    def clear(self) -> None:
        self._database.execute("DELETE FROM state WHERE label = ?", (self._label,))


class SqliteState:
    durable = True

    def __init__(self, path: Path) -> None:
        fresh = not path.exists()
        self._database = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        try:
            (found,) = self._database.execute("PRAGMA user_version").fetchone()
        except sqlite3.DatabaseError:
            raise InputError(
                "M5024", f"{path} is not a state database", hint="take another checkpoint folder"
            ) from None
        if fresh:
            self._database.execute(f"PRAGMA user_version = {FORMAT}")
        elif found != FORMAT:
            detail = f"This release reads format {FORMAT}."
            hint = "take another checkpoint folder, or the release that wrote it"
            raise InputError("M5024", f"{path} has format {found}", detail=detail, hint=hint)
        self._database.execute("PRAGMA journal_mode = WAL")
        self._database.executescript(_TABLES)

    def store(self, label: int) -> Store:
        return _SqliteStore(self._database, label)

    def last(self) -> tuple[int, Offset] | None:
        query = "SELECT number, offset FROM batches WHERE done ORDER BY number DESC LIMIT 1"
        found = self._database.execute(query).fetchone()
        return None if found is None else (found[0], json.loads(found[1]))

    def begun(self) -> Offset | None:
        found = self._database.execute("SELECT offset FROM batches WHERE NOT done").fetchone()
        return None if found is None else json.loads(found[0])

    def begin(self, batch: int, end: Offset) -> None:
        self._database.execute("INSERT OR REPLACE INTO batches VALUES (?, ?, 0)", (batch, json.dumps(end)))
        self._database.execute("BEGIN")

    def commit(self, batch: int) -> None:
        self._database.execute("UPDATE batches SET done = 1 WHERE number = ?", (batch,))
        self._database.execute("DELETE FROM batches WHERE number < ?", (batch,))
        self._database.execute("COMMIT")

    def abandon(self) -> None:
        if self._database.in_transaction:
            self._database.execute("ROLLBACK")

    def close(self) -> None:
        self.abandon()
        self._database.close()
