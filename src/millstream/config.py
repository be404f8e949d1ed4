"""Options, one typed tree: set by `SET name = value`, by keyword, or by MILLSTREAM_<NAME> in the environment."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Any

from pydantic import Field, ValidationError, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from millstream.errors import OptionError, did_you_mean
from millstream.join_rules import listeners_of

STRATEGIES = ("dfs", "bfs", "rr", "batch")
ETS_MODES = ("demand", "punctuation", "heartbeat", "none")
PROPAGATIONS = ("eager", "count", "time", "request")
INDEX_MODES = ("eager", "lazy")
MULTI_JOINS = ("auto", "always", "never")
DEFAULT = "default"
_SIZES = {"": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30}
_LENGTHS = {"": 1, "us": 1, "ms": 10**3, "s": 10**6, "min": 60 * 10**6, "h": 3600 * 10**6}
_NUMBER = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-z]*)\s*")


def bytes_of(text: str) -> int:
    """
    >>> bytes_of("64 MB"), bytes_of("1.5 KiB")
    (64000000, 1536)
    """
    return int(_measured(text, _SIZES, "a size such as 64 MB"))


def propagation_of(text: str) -> tuple[str, int]:
    """How punctuation is put out, and the number that goes with it: a count, or a period in units of the timestamps,
    which are microseconds where a unit is given.

    >>> propagation_of("eager"), propagation_of("count:10"), propagation_of("time:5 s"), propagation_of("time:30")
    (('eager', 0), ('count', 10), ('time', 5000000), ('time', 30))
    """
    name, colon, number = text.lower().partition(":")
    if name not in PROPAGATIONS or bool(colon) != (name in ("count", "time")):
        raise ValueError("one of eager, count:N, time:DURATION, request")
    if name == "count" and (not number.strip().isdigit() or int(number) < 1):
        raise ValueError("count:N with N at least 1")
    if not colon:
        return name, 0
    value = int(number) if name == "count" else int(_measured(number, _LENGTHS, "time:DURATION such as time:5s"))
    if value < 1:
        raise ValueError("a period of more than nothing")
    return name, value


def _measured(text: str, units: dict[str, int], wanted: str) -> Fraction:
    found = _NUMBER.fullmatch(text.lower())
    if found is None or found.group(2) not in units:
        raise ValueError(wanted)
    return Fraction(found.group(1)) * units[found.group(2)]


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
    multi_join: str = Field(
        default="auto",
        description="joins of three streams or more on a common key in one operator: auto, always, never",
    )
    purge_threshold: int = Field(
        default=1, ge=1, description="joins purge their state every so many punctuations; 1 is at once"
    )
    propagation: str = Field(
        default="eager", description="when joins put punctuation out: eager, count:N, time:DURATION, request"
    )
    punctuation_index: str = Field(
        default="lazy",
        description="how joins know what a punctuation waits for: eager (tuples are counted) or lazy (looked at)",
    )
    join_memory: int = Field(
        default=0, ge=0, description="most memory for the state of a join on a shard, such as 64 MB; 0 is no limit"
    )
    disk_join_threshold: int = Field(
        default=1, ge=1, description="so many tuples must have missed partners on disk before a pause is used for them"
    )
    join_listeners: str = Field(
        default=DEFAULT,
        description="which components of joins run on which event: default, or rules such as StreamEmpty: Disk Join",
    )

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

    @field_validator("multi_join")
    @classmethod
    def _known_choice(cls, value: str) -> str:
        if value.lower() not in MULTI_JOINS:
            raise ValueError(f"one of {', '.join(MULTI_JOINS)}")
        return value.lower()

    @property
    def join_grouping(self) -> str:
        """How joins are grouped."""
        return "never" if self.multi_join == "auto" and self.of_two else self.multi_join

    @property
    def of_two(self) -> list[str]:
        """The options that are set and that only joins of two know: to use the disk, to have listeners, to put
        punctuation out at other times than at once."""
        changed = {
            "join_memory": self.join_memory > 0,
            "propagation": self.propagation != "eager",
            "join_listeners": self.join_listeners != DEFAULT,
        }
        return [name for name, is_set in changed.items() if is_set]

    @field_validator("propagation")
    @classmethod
    def _known_propagation(cls, value: str) -> str:
        propagation_of(value)
        return value.lower()

    @field_validator("punctuation_index")
    @classmethod
    def _known_index(cls, value: str) -> str:
        if value.lower() not in INDEX_MODES:
            raise ValueError(f"one of {', '.join(INDEX_MODES)}")
        return value.lower()

    @field_validator("join_listeners")
    @classmethod
    def _known_listeners(cls, value: str) -> str:
        if value.strip().lower() in ("", DEFAULT):
            return DEFAULT
        return "; ".join(map(str, listeners_of(value)))

    @field_validator("join_memory", mode="before")
    @classmethod
    def _known_size(cls, value: Any) -> Any:
        return bytes_of(value) if isinstance(value, str) else value

    @classmethod
    def read(cls, **given: Any) -> Options:
        """Options from the environment and these values, or a clear word on the first that cannot be."""
        try:
            return cls(**given)
        except ValidationError as error:
            first = error.errors()[0]
            name = ".".join(map(str, first["loc"]))
            reason = _reason(first["msg"])
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
            raise OptionError(
                "M6002",
                f"option '{name}' cannot be {value!r}: {_reason(error.errors()[0]['msg'])}",
                hint=str(type(self).model_fields[name].description),
            ) from None


def _reason(message: str) -> str:
    """Why a value is refused, as the rest of a sentence."""
    plain = message.removeprefix("Value error, ")
    return plain[:1].lower() + plain[1:]
