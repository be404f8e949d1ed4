"""What the operators of a shard wait for, by the streams that it reads."""

from __future__ import annotations

from millstream.physical.shard.host import ShardHost
from millstream.runtime.engine.demand import Lag, Levels, demands, lag_of, merged

Waiting = dict[str, tuple[int, Levels]]


def demands_of(host: ShardHost) -> Waiting:
    """What each waiting operator waits for: the time, and the streams behind it."""
    if not host.graph.on_demand:
        return {}
    return {name: (time, _by_stream(host, levels)) for name, (time, levels) in demands(host.graph).items()}


def lags_of(host: ShardHost) -> Waiting:
    """What the time of each part that another stage reads depends on."""
    if not host.graph.on_demand:
        return {}
    sending = [name for name, query in host.setup.running.items() if query.sending is not None]
    found = {name: lag_of(host.graph, host.compiler.top(name)) for name in sending}
    return {name: (lag.held, _by_stream(host, lag.levels)) for name, lag in found.items()}


def _by_stream(host: ShardHost, levels: Levels) -> Levels:
    streams = {source.name: stream.whole for stream, source in host.compiler.sources()}
    return merged(Lag(0, {streams[name]: level}) for name, level in levels.items() if name in streams).levels
