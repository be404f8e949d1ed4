"""How many examples a property is tried on: `make test` tries few of those that a property states, `make fuzz` many."""

import os

SHARE = float(os.environ.get("MILLSTREAM_TRIES", "0.25"))


def tries(stated: int) -> int:
    return max(1, round(stated * SHARE))
