"""Aggregates over the last ten seconds of each sensor, by hand: Spark's `transformWithStateInPandas`.

The window is a list in Spark's state store. Spark hands over the rows of a key and a batch in any order.
"""

from collections import deque
from collections.abc import Iterator
from datetime import timedelta
from heapq import nlargest
from typing import Any

import pandas as pd
from pyspark.sql.streaming import StatefulProcessor, StatefulProcessorHandle

LENGTH = timedelta(seconds=10)


class WindowMean(StatefulProcessor):
    returns = "sensor BIGINT, ts TIMESTAMP, mean DOUBLE"

    def init(self, handle: StatefulProcessorHandle) -> None:
        self.window = handle.getListState("window", "ts TIMESTAMP, value BIGINT")

    def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any) -> Iterator[pd.DataFrame]:
        new = pd.concat(rows).sort_values("ts")
        window = deque(self.window.get())
        total = sum(value for _, value in window)
        means = []
        for ts, value in zip(new["ts"], new["value"], strict=True):
            window.append((ts, value))
            total += value
            while window[0][0] < ts - LENGTH:
                total -= window.popleft()[1]
            means.append(total / len(window))
        self.window.put(list(window))
        yield pd.DataFrame({"sensor": key[0], "ts": new["ts"], "mean": means})

    def close(self) -> None:
        pass


class WindowTop(StatefulProcessor):
    returns = "sensor BIGINT, ts TIMESTAMP, top BIGINT"

    def init(self, handle: StatefulProcessorHandle) -> None:
        self.window = handle.getListState("window", "ts TIMESTAMP, value BIGINT")

    def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any) -> Iterator[pd.DataFrame]:
        new = pd.concat(rows).sort_values("ts")
        window = deque(self.window.get())
        found = []
        for ts, value in zip(new["ts"], new["value"], strict=True):
            window.append((ts, value))
            while window[0][0] < ts - LENGTH:
                window.popleft()
            found += [(key[0], ts, top) for top in nlargest(3, (value for _, value in window))]
        self.window.put(list(window))
        yield pd.DataFrame(found, columns=["sensor", "ts", "top"])

    def close(self) -> None:
        pass
