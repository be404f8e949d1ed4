"""Mills: `LocalMill` runs in this process on a virtual clock; `base.Mill` is the part it shares with a connection."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from millstream.control.mill.local import LocalMill

__all__ = ["LocalMill"]


def __getattr__(name: str) -> object:
    """Import it when it is used: modules of this package can then be imported one by one."""
    if name == "LocalMill":
        from millstream.control.mill.local import LocalMill

        return LocalMill
    raise AttributeError(name)
