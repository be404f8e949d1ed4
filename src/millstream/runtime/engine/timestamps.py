"""Enabling timestamps: the enhanced query graph and the guarded register writes.

An idle-waiting operator continues once it knows that time has passed on the input it waits for. The enhanced graph has
an arc from every source and every idle-waiting-prone operator to the next such operator on each path. It skips the
operators in between, which neither need nor change time. A value travels over an arc into the register of the port at
its end, but only while the path it skips is empty: otherwise the promise would overtake older data.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from millstream.algebra.upstream import TimeRequest
from millstream.errors import OptionError, did_you_mean

if TYPE_CHECKING:
    from millstream.runtime.engine.buffer import Buffer
    from millstream.runtime.engine.nodes import OperatorNode, Producer, Source
    from millstream.runtime.engine.port import Port

REQUEST = TimeRequest()
"""The request of a waiting operator to a source."""


class EtsMode(Enum):
    """How waiting operators learn that time passes on a silent input."""

    NONE = "none"
    HEARTBEAT = "heartbeat"
    """Every source sends its timestamp in band, once per period of the host."""
    PUNCTUATION = "punctuation"
    """A source sends its timestamp in band when backtracking finds that an operator waits for it."""
    EQG = "eqg"
    """On demand too, but written into the registers of the enhanced query graph."""

    @classmethod
    def parse(cls, text: str) -> EtsMode:
        """Return the mode of a name; `demand` is the enhanced query graph.

        >>> EtsMode.parse("demand")
        <EtsMode.EQG: 'eqg'>
        """
        names = {mode.value: mode for mode in cls} | {"demand": cls.EQG}
        name = text.strip().lower()
        if name not in names:
            raise OptionError("M6034", f"unknown way of promising time '{text}'", hint=did_you_mean(name, names))
        return names[name]

    @property
    def on_demand(self) -> bool:
        return self in (EtsMode.PUNCTUATION, EtsMode.EQG)

    @property
    def in_band(self) -> bool:
        return self in (EtsMode.PUNCTUATION, EtsMode.HEARTBEAT)


@dataclass(frozen=True, slots=True, eq=False)
class Arc:
    """A way for time from `origin` to `target`; `bypassed` are the ports of the operators it skips."""

    origin: Producer
    target: Port
    bypassed: tuple[Port, ...] = ()

    def write(self, value: int) -> bool:
        """Raise the target's register if the value is higher and no element is on the way; return whether it did."""
        port = self.target
        if value <= port.register or any(skipped.at != skipped.buffer.tail for skipped in self.bypassed):
            return False
        if port.reorder is not None:
            port.absorb()
        elif port.at != port.buffer.tail:
            port.ahead = max(port.ahead, value)
            return False
        port.register = value
        port.active = True
        node = port.node
        node.counters.ets += 1
        node.buffer.ledger.ready[node] = None
        return True

    def __str__(self) -> str:
        return f"{self.origin.name} ⇢ {self.target}"


def build_arcs(sources: Iterable[Source], operators: Iterable[OperatorNode]) -> list[Arc]:
    """Derive the arcs of the enhanced query graph anew. Registers are not touched."""
    arcs: list[Arc] = []
    nodes = list(operators)
    for node in nodes:
        for port in node.ports:
            port.arc = None
    origins: list[Producer] = [*sources, *nodes]
    for origin in origins:
        origin.arcs = tuple(_arcs_from(origin, origin.buffer, ())) if origin.prone else ()
        for arc in origin.arcs:
            arc.target.arc = arc
        arcs += origin.arcs
    return arcs


def _arcs_from(origin: Producer, buffer: Buffer, bypassed: tuple[Port, ...]) -> list[Arc]:
    arcs: list[Arc] = []
    for port in buffer.ports:
        if port.node.prone:
            arcs.append(Arc(origin, port, bypassed))
        else:
            arcs += _arcs_from(origin, port.node.buffer, (*bypassed, port))
    return arcs


def hand_over(node: OperatorNode) -> tuple[int, list[Arc]]:
    """Write the lowest timestamp that the node can still emit over its arcs; return it with the arcs that took it.

    It is written whenever it raises a register, even if data moved this node's time: the tuple may have been dropped on
    the way to the reader.
    """
    value = node.bound()
    written = [arc for arc in node.arcs if arc.write(value)]
    if written:
        for port in node.ports:
            port.active = False
    return value, written
