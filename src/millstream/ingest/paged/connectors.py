"""The connector that the options of a stream or table name."""

from __future__ import annotations

from collections.abc import Iterable

from millstream.errors import InputError, OptionError, did_you_mean

CONNECTOR = "connector"


def connector_of(owner: str, given: dict[str, str], known: Iterable[str]) -> str:
    """Remove the connector from the options and return it; raise an error if there is none, or it is unknown."""
    connector = given.pop(CONNECTOR, None)
    names = list(known)
    if connector is None:
        option = next(iter(given))
        if (hint := did_you_mean(option, [CONNECTOR])).startswith("did you mean"):
            raise OptionError("M6001", f"{owner} has no option '{option}'", hint=hint)
        hint = f"WITH (connector = '…', {option} = '…'), one of {', '.join(names)}"
        raise OptionError("M6040", f"option '{option}' of {owner} needs a connector", hint=hint)
    if connector.lower() not in names:
        raise InputError("M5002", f"unknown connector '{connector}' of {owner}", hint=did_you_mean(connector, names))
    return connector.lower()
