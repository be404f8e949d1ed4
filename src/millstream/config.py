"""Options, one typed tree: set by `SET name = value`, by keyword, or by MILLSTREAM_<NAME> in the environment."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, Field, ValidationError, ValidationInfo, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from millstream.errors import OptionError, advice, did_you_mean
from millstream.join_rules import listeners_of
from millstream.options import Bytes, measured, one_of, refusal
from millstream.strategies import Schedule, strategies
from millstream.switches import EXPLOIT, PROPAGATE, Switches

DEFAULT = "default"
MOST_SHARDS = 4096
"""Every shard costs memory and a share of every batch, whether it has tuples or not."""
_LONGEST = 10**18
"""The greatest count or period, which fits 64 bits."""
_LENGTHS = {"": 1, "us": 1, "ms": 10**3, "s": 10**6, "min": 60 * 10**6, "h": 3600 * 10**6}


def propagation_of(text: str) -> tuple[str, int]:
    """Parse a propagation mode and its number: a count, or a period in timestamp units; a period with a time unit is
    converted to microseconds.

    >>> propagation_of("eager"), propagation_of("count:10"), propagation_of("time:5 s"), propagation_of("time:30")
    (('eager', 0), ('count', 10), ('time', 5000000), ('time', 30))
    """
    mode, colon, number = text.lower().partition(":")
    if mode in ("eager", "request") and not colon:
        return mode, 0
    if mode not in ("count", "time") or not colon:
        raise ValueError("one of eager, count:N, time:DURATION, request")
    if mode == "time":
        value = measured(number, _LENGTHS, "time:DURATION such as time:5s")
    else:
        value = int(number) if number.strip().isdigit() else 0
    if not 1 <= value <= _LONGEST:
        limits = f"from 1 to {_LONGEST}"
        raise ValueError(f"count:N with N {limits}" if mode == "count" else f"a period {limits}")
    return mode, value


def _known_strategy(value: str) -> str:
    try:
        Schedule.parse(value)
    except OptionError as error:
        if error.code not in ("M6030", "M6031", "M6035"):
            raise
        rules = "" if ";" not in value else ", then strategies of operators, such as 'dfs; q.union: bfs'"
        raise ValueError(f"one of {strategies()}{rules}") from None
    return value.lower()


def _known_breaks(value: str) -> str:
    try:
        return "; ".join(map(str, Schedule.parse("dfs", value).broken))
    except OptionError:
        raise ValueError("operators, such as 'union; q.select 2'") from None


def _known_exploit(value: str) -> str:
    return _switched(value, "exploit")


def _known_propagate(value: str) -> str:
    return _switched(value, "propagate")


def _switched(value: str, switch: str) -> str:
    try:
        Switches.parse(**{switch: value})
    except OptionError:
        known = ", ".join(EXPLOIT if switch == "exploit" else PROPAGATE)
        raise ValueError(f"one of {known}, then those of operators, such as 'on; q.union: off'") from None
    return value.lower()


def _known_propagation(value: str) -> str:
    propagation_of(value)
    return value.lower()


def _known_listeners(value: str) -> str:
    if value.strip().lower() in ("", DEFAULT):
        return DEFAULT
    return "; ".join(map(str, listeners_of(value)))


class Options(BaseSettings):
    """All options, with defaults and descriptions."""

    model_config = SettingsConfigDict(env_prefix="MILLSTREAM_", extra="forbid", validate_assignment=True)

    strategy: Annotated[str, AfterValidator(_known_strategy)] = Field(
        default="batch:16",
        description="next-operator selection: dfs, bfs, rr, or batch:K (K pages at a time); then those of operators,"
        " such as batch:16; q.union: bfs",
    )
    breaks: Annotated[str, AfterValidator(_known_breaks)] = Field(
        default="", description="operators behind which a fragment of the graph ends, such as q.select 2; union"
    )
    exploit: Annotated[str, AfterValidator(_known_exploit)] = Field(
        default="on",
        description="whether operators act on feedback: on, guard (they keep what they hold), off; then those of"
        " operators, such as on; q.union: off",
    )
    propagate: Annotated[str, AfterValidator(_known_propagate)] = Field(
        default="on",
        description="whether operators pass feedback on: on, off; then those of operators, such as on; q.union: off",
    )
    guard_limit: int = Field(
        default=1000,
        ge=0,
        le=_LONGEST,
        description="most patterns of feedback that a query holds; beyond them more is refused; 0: no limit",
    )
    ets: Annotated[str, one_of("demand", "punctuation", "heartbeat", "none")] = Field(
        default="demand", description="how silent sources promise time: demand, punctuation, heartbeat, none"
    )
    heartbeat: float = Field(
        default=1.0, ge=1e-6, le=10**9, description="seconds between heartbeats, with ets = heartbeat"
    )
    page_rows: int = Field(
        default=8192, ge=1, le=10**9, description="maximum number of tuples in a page; 1: tuple at a time"
    )
    shards: int = Field(
        default=1, ge=1, le=MOST_SHARDS, description="number of shards that the key space is hashed into"
    )
    paned: bool = Field(default=True, description="compute sliding aggregates from panes")
    accumulators: Annotated[str, one_of("auto", "all")] = Field(
        default="auto",
        description="which aggregates keep their state after a prodded result: all, or auto: not the panes of windows",
    )
    multi_join: Annotated[str, one_of("auto", "always", "never")] = Field(
        default="auto",
        description="when to join three or more streams on a common key in one operator: auto, always, never",
    )
    purge_threshold: int = Field(
        default=1,
        ge=1,
        le=_LONGEST,
        description="number of punctuations after which joins purge their state; 1: at once",
    )
    propagation: Annotated[str, AfterValidator(_known_propagation)] = Field(
        default="eager", description="when joins emit punctuation: eager, count:N, time:DURATION, request"
    )
    punctuation_index: Annotated[str, one_of("eager", "lazy")] = Field(
        default="lazy",
        description="how joins find the tuples that block a punctuation: eager (count them) or lazy (look for them)",
    )
    join_memory: Bytes = Field(
        default=0,
        ge=0,
        le=_LONGEST,
        description="memory limit for the state of a join on a shard, such as 64 MB; 0: no limit",
    )
    disk_join_threshold: int = Field(
        default=1,
        ge=1,
        le=_LONGEST,
        description="number of tuples that must have missed partners on disk before a pause is used to find them",
    )
    join_listeners: Annotated[str, AfterValidator(_known_listeners)] = Field(
        default=DEFAULT,
        description="which components of joins run on which event: default, or rules such as StreamEmpty: Disk Join",
    )

    contracts: Annotated[str, one_of("warn", "enforce", "off")] = Field(
        default="warn",
        description="what to do if the state of a new query can grow for ever: warn, enforce (refuse it), off",
    )

    @property
    def join_grouping(self) -> str:
        """The value of `multi_join` in effect: never, if it is auto and an option of pairwise joins is set."""
        return "never" if self.multi_join == "auto" and self.of_two else self.multi_join

    @property
    def of_two(self) -> list[str]:
        """The options set that only pairwise joins support: disk, listeners, and propagation other than eager."""
        changed = {
            "join_memory": self.join_memory > 0,
            "propagation": self.propagation != "eager",
            "join_listeners": self.join_listeners != DEFAULT,
        }
        return [name for name, is_set in changed.items() if is_set]

    @field_validator("*", mode="before")
    @classmethod
    def _no_flag_for_a_number(cls, value: Any, info: ValidationInfo) -> Any:
        kind = cls.model_fields[info.field_name or ""].annotation
        if isinstance(value, bool) and kind is not bool:  # True would be 1
            raise ValueError("it is a number, not a flag" if kind in (int, float) else "it is a text, not a flag")
        return value

    @classmethod
    def read(cls, **given: Any) -> Options:
        """Read options from the environment and these values; raise OptionError naming the first invalid one."""
        known = cls.model_fields
        for name in given:
            if name not in known:
                raise OptionError("M6001", f"unknown option '{name}'", hint=did_you_mean(name, known))
        try:
            return cls(**given)
        except ValidationError as error:
            raise refusal(error, given, _origin) from None

    def change(self, name: str, value: Any) -> None:
        """Set one option; raise OptionError if it is unknown or the value is invalid."""
        name, known = name.lower(), type(self).model_fields
        if name not in known:
            raise OptionError("M6001", f"unknown option '{name}'", hint=did_you_mean(name, known))
        try:
            setattr(self, name, value)
        except ValidationError as error:
            raise refusal(error, {name: value}, lambda name: str(known[name].description)) from None


def _origin(name: str) -> str:
    return f"{Options.model_fields[name].description}; set by MILLSTREAM_{name.upper()}{advice(' or by keyword', '')}"
