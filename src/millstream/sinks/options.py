"""The options that all sinks share."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from millstream.options import TextOptions


class SinkOptions(TextOptions):
    """Options of every sink; a doc line each."""

    passed: ClassVar[frozenset[str]] = frozenset({"run"})

    run: str = Field(default="", description="the run of the job, which passes it; the same again when it resumes")
