"""The options that all sinks share, and how options are read from the text of `WITH (…)`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from millstream.errors import OptionError, did_you_mean

Read = TypeVar("Read", bound="SinkOptions")


class SinkOptions(BaseModel):
    """Options of every sink; a doc line each."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    run: str = Field(default="", description="the run of the job, which passes it; the same again when it resumes")


def read_options(kind: type[Read], given: Mapping[str, str], sink: str) -> Read:
    """The options from their text, or a clear word on the first that cannot be."""
    known = kind.model_fields
    for name in given:
        if name not in known:
            own = [field for field in known if field not in SinkOptions.model_fields]
            raise OptionError("M6001", f"{sink} has no option '{name}'", hint=did_you_mean(name, own))
    try:
        return kind.model_validate(dict(given))
    except ValidationError as error:
        first = error.errors()[0]
        name = str(first["loc"][0])
        hint = str(known[name].description)
        if first["type"] == "missing":
            raise OptionError("M6040", f"{sink} needs option '{name}'", hint=f"WITH ({name} = '…'): {hint}") from None
        reason = first["msg"].removeprefix("Value error, ")
        message = f"option '{name}' cannot be {given[name]!r}: {reason[:1].lower()}{reason[1:]}"
        raise OptionError("M6002", message, hint=hint) from None
