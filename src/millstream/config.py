"""Options, one typed tree: set by `SET name = value`, by keyword, or by MILLSTREAM_<NAME> in the environment."""

from __future__ import annotations

from typing import Any

from pydantic import Field, ValidationError, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from millstream.errors import OptionError, did_you_mean

STRATEGIES = ("dfs", "bfs", "rr", "batch")
ETS_MODES = ("demand", "punctuation", "heartbeat", "none")


class Options(BaseSettings):
    """All options with their defaults; a doc line each."""

    model_config = SettingsConfigDict(env_prefix="MILLSTREAM_", extra="forbid", validate_assignment=True)

    strategy: str = Field(
        default="batch:16", description="next-operator selection: dfs, bfs, rr, or batch:K (K pages at a time)"
    )
    ets: str = Field(
        default="demand", description="how idle streams promise time: demand, punctuation, heartbeat, none"
    )
    heartbeat: float = Field(default=1.0, gt=0, description="seconds between heartbeats, with ets = heartbeat")
    page_rows: int = Field(default=8192, ge=1, description="most tuples in a page; 1 is tuple at a time")
    shards: int = Field(default=1, ge=1, description="how many parts the key space is hashed into")
    paned: bool = Field(default=True, description="compute sliding aggregates from panes")

    @field_validator("strategy")
    @classmethod
    def _known_strategy(cls, value: str) -> str:
        name, _, size = value.lower().partition(":")
        if (
            name not in STRATEGIES
            or (name == "batch") != bool(size)
            or (size and (not size.isdigit() or int(size) < 1))
        ):
            raise ValueError("one of dfs, bfs, rr, batch:K")
        return value.lower()

    @field_validator("ets")
    @classmethod
    def _known_mode(cls, value: str) -> str:
        if value.lower() not in ETS_MODES:
            raise ValueError(f"one of {', '.join(ETS_MODES)}")
        return value.lower()

    @classmethod
    def read(cls, **given: Any) -> Options:
        """Options from the environment and these values, or a clear word on the first that cannot be."""
        try:
            return cls(**given)
        except ValidationError as error:
            first = error.errors()[0]
            name = ".".join(map(str, first["loc"]))
            reason = first["msg"].removeprefix("Value error, ").lower()
            hint = f"set by MILLSTREAM_{name.upper()}, or given"
            raise OptionError("M6002", f"option '{name}' cannot be {first['input']!r}: {reason}", hint=hint) from None

    def change(self, name: str, value: Any) -> None:
        """Set one option, or say what is wrong with it."""
        name = name.lower()
        if name not in type(self).model_fields:
            raise OptionError("M6001", f"unknown option '{name}'", hint=did_you_mean(name, type(self).model_fields))
        try:
            setattr(self, name, value)
        except ValidationError as error:
            reason = error.errors()[0]["msg"].removeprefix("Value error, ")
            raise OptionError(
                "M6002",
                f"option '{name}' cannot be {value!r}: {reason.lower()}",
                hint=str(type(self).model_fields[name].description),
            ) from None
