"""Sources of streams with a connector: files and generators, cut into splits for the workers."""

from __future__ import annotations

from millstream.ingest.paged.base import (
    SOURCES,
    Offset,
    PagedSource,
    Split,
    SplitRows,
    check_options,
    open_paged,
    punctuates,
)

__all__ = ["SOURCES", "Offset", "PagedSource", "Split", "SplitRows", "check_options", "open_paged", "punctuates"]
