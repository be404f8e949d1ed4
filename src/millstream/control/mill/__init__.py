"""Mills: `LocalMill` runs in this process on a virtual clock; `base.Mill` is the part it shares with a connection."""

from millstream.control.mill.local import LocalMill

__all__ = ["LocalMill"]
