"""Changing an option of a mill, and with it the settings of its shards."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from millstream.control.mill.places import check_operators
from millstream.errors import MillstreamError, OptionError
from millstream.physical.wire.records import Configure

if TYPE_CHECKING:
    from millstream.control.mill.base import Mill


def set_option(mill: Mill, name: str, value: Any) -> None:
    """Change an option, for all shards; an invalid value changes nothing."""
    recovering = mill.journal.recovering
    if name.lower() == "shards" and (mill.queries or (mill.placements.of and not recovering)):
        raise OptionError("M6004", "the number of shards cannot change while queries run", hint="set it first")
    before = mill.options.model_copy()
    mill.options.change(name, value)
    try:
        if not recovering:
            check_operators(mill, name.lower(), before)
        if name.lower() == "shards" and not (recovering and mill.jobs.all()):
            mill.jobs.reshard(mill.options.shards)
    except MillstreamError:
        mill.options.change(name, getattr(before, name.lower()))
        raise
    mill.time.reconsider()
    if not recovering:
        mill.placements.append(Configure(mill.name, mill.settings()))
    mill.journal.option(name, value)
