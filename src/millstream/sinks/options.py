"""The options that all sinks share."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from millstream.options import TextOptions


class SinkOptions(TextOptions):
    """Options of every sink."""

    passed: ClassVar[frozenset[str]] = frozenset({"run"})

    run: str = Field(default="", description="the job's run, passed by the job; unchanged when the job resumes")
