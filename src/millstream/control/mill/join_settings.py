"""Join settings from options."""

from __future__ import annotations

from typing import cast

from millstream.config import DEFAULT, Options, propagation_of
from millstream.runtime.join.settings import IndexMode, JoinSettings, PropagationMode


def join_settings(options: Options) -> JoinSettings:
    """
    >>> join_settings(Options(propagation="count:10", join_memory="1 MB")).propagation_count
    10
    """
    mode, number = propagation_of(options.propagation)
    return JoinSettings(
        options.purge_threshold,
        cast(IndexMode, options.punctuation_index),
        cast(PropagationMode, mode),
        number if mode == "count" else 1,
        number if mode == "time" else 0,
        options.join_memory,
        options.disk_join_threshold,
        "" if options.join_listeners == DEFAULT else options.join_listeners,
    )
