"""Names as statements in messages have them.

>>> spelled("bids"), spelled("group"), spelled('a "b')
('bids', '"group"', '"a ""b"')
"""

from __future__ import annotations

import re

from millstream.lang.cursor import RESERVED
from millstream.lang.names import quoted

_PLAIN = re.compile(r"[^\W\d][\w$]*")


def spelled(name: str) -> str:
    """The name, in quotes if a statement needs them."""
    return name if _PLAIN.fullmatch(name) and name.upper() not in RESERVED else quoted(name)
