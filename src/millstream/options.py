"""Options given as text, read into typed models, and the value types that several of them share.

A model defines each option: type, default, bounds, and a description for hints. Unknown, missing and invalid options
raise OptionError.

>>> from pydantic import Field
>>> class Pace(TextOptions):
...     rows: int = Field(default=5, ge=1, description="rows a second")
>>> read_options(Pace, {"rows": "7"}).rows
7
>>> read_options(Pace, {"rows": "0"})
Traceback (most recent call last):
millstream.errors.OptionError: M6002: option 'rows' cannot be '0': input should be greater than or equal to 1
  hint: rows a second
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from typing import Annotated, Any, ClassVar, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, ValidationError, field_validator

from millstream.errors import SECRET, OptionError, did_you_mean

Read = TypeVar("Read", bound="TextOptions")

_SIZES = {"": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30}
_SHOWN = 80
"""Characters of a wrong value in a message."""
_NUMBER = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-z]*)\s*")


class TextOptions(BaseModel):
    """Base class for the options of a source, a generator or a sink."""

    model_config = ConfigDict(extra="forbid", frozen=True, arbitrary_types_allowed=True)
    passed: ClassVar[frozenset[str]] = frozenset()
    """Options that Millstream sets itself; hints do not mention them."""

    @field_validator("*", mode="before")
    @classmethod
    def _printable(cls, value: Any) -> Any:
        if isinstance(value, str) and "\0" in value:
            raise ValueError("it has a NUL character")
        return value


def check_names(kind: type[TextOptions], given: Iterable[str], owner: str = "", *, others: Iterable[str] = ()) -> None:
    """Raise OptionError for an option that does not exist. `others`: those that were read before, for the hint."""
    for name in given:
        if name not in kind.model_fields:
            message = f"{owner} has no option '{name}'" if owner else f"unknown option '{name}'"
            known = kind.model_fields.keys() - kind.passed | set(others)
            raise OptionError("M6001", message, hint=did_you_mean(name, known))


def read_options(kind: type[Read], given: Mapping[str, str], owner: str = "", *, others: Iterable[str] = ()) -> Read:
    """Read options from their text; error messages name the owner, if there is one."""
    check_names(kind, given, owner, others=others)
    known = kind.model_fields
    try:
        return kind.model_validate(dict(given))
    except ValidationError as error:
        raise refusal(error, given, lambda name: str(known[name].description), owner) from None


def refusal(
    error: ValidationError, given: Mapping[str, Any], hint: Callable[[str], str], owner: str = ""
) -> OptionError:
    """The OptionError for the first invalid option, with the hint for it."""
    first = error.errors()[0]
    name, reason = str(first["loc"][0]), first["msg"].removeprefix("Value error, ")
    if first["type"] in ("bool_parsing", "bool_type"):
        reason = "true or false"
    if first["type"] == "missing":
        message = f"{owner} needs option '{name}'" if owner else f"option '{name}' is needed"
        return OptionError("M6040", message, hint=f"WITH ({name} = '…'): {hint(name)}")
    value = given.get(name, first["input"])
    shown = "…" if SECRET.search(name) else repr(value)
    shown = shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}…"
    message = f"option '{name}' cannot be {shown}: {reason[:1].lower()}{reason[1:]}"
    return OptionError("M6002", message, hint=hint(name))


def measured(text: str, units: Mapping[str, int], wanted: str) -> int:
    """Parse a number with a unit; raise ValueError with the text `wanted` if it is malformed.

    >>> measured("1.5 KiB", _SIZES, "a size")
    1536
    """
    found = _NUMBER.fullmatch(text.lower())
    if found is None or found[2] not in units:
        raise ValueError(wanted)
    return int(Fraction(found[1]) * units[found[2]])


def _bytes(value: Any) -> Any:
    return measured(value, _SIZES, "a size such as 64 MB") if isinstance(value, str) else value


Bytes = Annotated[int, BeforeValidator(_bytes)]
"""A number of bytes, with or without a unit: '64 MB', '1.5 KiB', '800'."""


def _local(value: str) -> str:
    if re.match(r"[a-z][a-z0-9+.-]*:/", value, re.IGNORECASE):
        raise ValueError("it is an address, not a path on this machine")
    return value


LocalPath = Annotated[str, AfterValidator(_local)]
"""A path, not an address such as 's3://bucket/bids'."""


def one_of(*choices: str) -> AfterValidator:
    """A validator for one of these words, ignoring case."""

    def chosen(value: str) -> str:
        if value.lower() not in choices:
            raise ValueError(f"one of {', '.join(choices)}")
        return value.lower()

    return AfterValidator(chosen)
