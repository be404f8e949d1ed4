"""The queries of the experiments, over the streams of `data`."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

from millstream_bench.feedback.data import LOCATION, PROBE, SENSOR, START, stream, table

OVERHEAD = {
    "selection, union": "SELECT sensor_id, speed, ts FROM sensor WHERE occupancy > 20 "
    "UNION ALL SELECT sensor_id, speed, ts FROM sensor WHERE speed > 40",
    "bucket, maximum": "SELECT window_end, sensor_id, MAX(speed) AS top FROM sensor [RANGE 1 MINUTE] "
    "GROUP BY sensor_id",
    "join, maximum": "SELECT window_end, freeway_id, milepost, MAX(speed) AS top "
    "FROM (SELECT s.ts AS ts, l.freeway_id AS freeway_id, l.milepost AS milepost, s.speed AS speed "
    "FROM sensor s JOIN location l ON s.sensor_id = l.sensor_id) [RANGE 1 MINUTE] GROUP BY freeway_id, milepost",
}
LEVELS = (
    "SELECT window_end, AVG(speed) AS mean FROM (SELECT a.ts AS ts, a.speed AS speed "
    "FROM sensor [RANGE 1 SECOND] a JOIN sensor [RANGE 1 SECOND] b ON a.sensor_id = b.sensor_id AND a.ts = b.ts) "
    "[RANGE 1 MINUTE]"
)
RESOURCES = {
    "Q1": "SELECT sensor_id, volume, speed, ts FROM sensor WHERE occupancy > 30 "
    "UNION ALL SELECT sensor_id, volume, speed, ts FROM sensor WHERE speed > 42",
    "Q1, one detector": "",
    "Q2": OVERHEAD["join, maximum"],
    "Q3": "SELECT s.window_end AS window_end, s.mean AS sensors, p.mean AS probes "
    "FROM (SELECT window_end, AVG(speed) AS mean FROM sensor [RANGE 1 MINUTE]) [RANGE 1 MINUTE] s "
    "JOIN (SELECT window_end, AVG(speed) AS mean FROM probe [RANGE 1 MINUTE]) [RANGE 1 MINUTE] p "
    "ON s.window_end = p.window_end",
}
RESOURCES["Q1, one detector"] = RESOURCES["Q1"]
PLANS = {
    "Q1": "selections, union",
    "Q1, one detector": "the same, wanted by detector",
    "Q2": "join with a table, window, maximum",
    "Q3": "means of two streams, join",
}


def disclaiming(hours: int) -> dict[str, str]:
    """Feedback for 99 % of what each of these queries emits: all but the first hundredth of the time, or all detectors
    but one."""
    kept = START + timedelta(minutes=hours * 60 // 100)
    return {
        "Q1": f"~[ts >= {kept:%Y-%m-%d %H:%M:%S}]",
        "Q1, one detector": "~[sensor_id > 1001]",
        "Q2": f"~[window_end > {kept:%Y-%m-%d %H:%M:%S}]",
        "Q3": f"~[window_end > {kept:%Y-%m-%d %H:%M:%S}]",
    }


def declared(folder: Path, text: str) -> list[str]:
    """The statements that a query needs."""
    parts = {
        "sensor": stream("sensor", SENSOR, folder / "sensor"),
        "probe": stream("probe", PROBE, folder / "probe"),
        "location": table("location", LOCATION, folder / "location.parquet"),
    }
    return [statement for name, statement in parts.items() if f" {name} " in f"{text} "]


def task(folder: Path, text: str, **more: Any) -> dict[str, Any]:
    return {"setup": declared(folder, text), "queries": {"q": text}, **more}
