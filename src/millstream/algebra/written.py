"""The hidden columns of the changes of a table that streams write."""

from __future__ import annotations

ROW = "__row"
"""The number of a row, which it keeps when it is updated."""
ALIVE = "__alive"
"""True if the row is in the table from then on, false if it is deleted."""
