"""The options that all sinks share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar

from pydantic import Field

from millstream.options import Bytes, TextOptions, one_of, read_options
from millstream.sinks.modes import MODES


class SinkOptions(TextOptions):
    """Options of every sink."""

    passed: ClassVar[frozenset[str]] = frozenset({"run", "anew", "begun"})

    run: str = Field(default="", description="the job's run, passed by the job; unchanged when the job resumes")
    anew: bool = Field(default=False, description="whether the query is new, passed by the job; false when it resumes")
    begun: int | None = Field(
        default=None, description="the last batch whose results a resumed query's sink may have, passed by the job"
    )


class DeliveryOptions(TextOptions):
    """Options on the delivery to a sink, of whichever kind; the sink does not get them."""

    on_error: Annotated[str, one_of("spool", "stop")] = Field(
        default="spool",
        description="when the sink raises: 'spool' keeps results until it works again, 'stop' stops the query",
    )
    mode: Annotated[str, one_of(*MODES)] | None = Field(
        default=None,
        description="what the sink gets of a query with early answers: 'final', 'all' or 'upsert'; default: the sink's",
    )
    spool_limit: Bytes = Field(
        default=1_000_000_000,
        ge=0,
        description="most bytes of results that wait for the sink; the query stops beyond it",
    )


def delivery_options(given: Mapping[str, str], sink: str) -> tuple[DeliveryOptions, dict[str, str]]:
    """Separate the options on delivery from those of the sink."""
    own = {name: value for name, value in given.items() if name in DeliveryOptions.model_fields}
    rest = {name: value for name, value in given.items() if name not in own}
    return read_options(DeliveryOptions, own, f"sink '{sink}'"), rest
