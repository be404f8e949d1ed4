"""Enabling timestamps: the enhanced query graph, the guarded register writes, and what sources can promise.

An idle-waiting operator is freed by knowing that time has passed on the input it waits for. The enhanced graph has an
arc from every source and every idle-waiting-prone operator to the next such operator on each path, past the operators
in between, for they neither need nor change time. A value goes over an arc into the register of the port at its end,
and only while nothing is under way on the path it skips: otherwise the promise would overtake older data.
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
"""What an operator that waits says to a source."""


class EtsMode(Enum):
    """How operators that wait learn that time passes on an input that is silent."""

    NONE = "none"
    HEARTBEAT = "heartbeat"
    """Every source sends its timestamp in band, each time the host's period passes."""
    PUNCTUATION = "punctuation"
    """A source sends its timestamp in band when backtracking finds that an operator waits for it."""
    EQG = "eqg"
    """On demand too, but written straight into the registers of the enhanced query graph."""

    @classmethod
    def parse(cls, text: str) -> EtsMode:
        """A mode from its name; `demand` is the enhanced query graph.

        >>> EtsMode.parse("demand")
        <EtsMode.EQG: 'eqg'>
        """
        names = {mode.value: mode for mode in cls} | {"demand": cls.EQG}
        word = text.strip().lower()
        if word not in names:
            raise OptionError("M6034", f"unknown way of promising time '{text}'", hint=did_you_mean(word, names))
        return names[word]

    @property
    def on_demand(self) -> bool:
        return self in (EtsMode.PUNCTUATION, EtsMode.EQG)

    @property
    def in_band(self) -> bool:
        return self in (EtsMode.PUNCTUATION, EtsMode.HEARTBEAT)


@dataclass(frozen=True, slots=True, eq=False)
class Arc:
    """`origin` can tell `target` the time; `bypassed` are the ports of the operators it skips."""

    origin: Producer
    target: Port
    bypassed: tuple[Port, ...] = ()

    def write(self, value: int) -> bool:
        """Raise the target's register, if that is an improvement and nothing is under way."""
        port = self.target
        if value <= port.register or any(skipped.at != skipped.buffer.tail for skipped in self.bypassed):
            return False
        if port.reorder is not None:
            port.absorb()
        elif port.at != port.buffer.tail:
            return False
        port.register = value
        port.active = True
        node = port.node
        node.counters.ets += 1
        node.buffer.ledger.ready[node] = None
        return True

    def __str__(self) -> str:
        return f"{self.origin.name} ⇢ {self.target.node.name}.{self.target.index + 1}"


def build_arcs(sources: Iterable[Source], operators: Iterable[OperatorNode]) -> list[Arc]:
    """Derive the arcs of the enhanced query graph anew. Registers are not touched."""
    made: list[Arc] = []
    nodes = list(operators)
    for node in nodes:
        for port in node.ports:
            port.arc = None
    origins: list[Producer] = [*sources, *nodes]
    for origin in origins:
        arcs = _arcs_from(origin, origin.buffer, ()) if origin.prone else []
        origin.arcs = tuple(arcs)
        for arc in arcs:
            arc.target.arc = arc
        made += arcs
    return made


def _arcs_from(origin: Producer, buffer: Buffer, bypassed: tuple[Port, ...]) -> list[Arc]:
    arcs: list[Arc] = []
    for port in buffer.ports:
        if port.node.prone:
            arcs.append(Arc(origin, port, bypassed))
        else:
            arcs += _arcs_from(origin, port.node.buffer, (*bypassed, port))
    return arcs


def hand_over(node: OperatorNode) -> tuple[int, list[Arc]]:
    """Tell the operators at the ends of the node's arcs the lowest timestamp it can still put out.

    It is told whenever it is news to them, whether it came over an arc or with data: a tuple that moved this
    operator's time may have been dropped on the way to them. Returns the value and the arcs that took it.
    """
    value = node.bound()
    written = [arc for arc in node.arcs if arc.write(value)]
    if written:
        for port in node.ports:
            port.active = False
    return value, written
