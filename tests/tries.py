"""Number of examples per property: `make test` tries a share of the number that a property states, `make fuzz` more."""

import os

SHARE = float(os.environ.get("MILLSTREAM_TRIES", "0.25"))


def tries(stated: int) -> int:
    return max(1, round(stated * SHARE))
