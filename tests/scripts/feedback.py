"""Random scripts of assumed feedback: to random queries, on random columns, under random switches, between restarts.

Every query has an equal one beside it that is told nothing. By the reference, with SR the rows of the query without
feedback, S those that it emits and M the rows that match the feedback: SR − M ⊆ S ⊆ SR, and nothing of M is emitted
after the feedback. A row of input may be in one batch with the feedback before it.
"""

from __future__ import annotations

from random import Random

from millstream.algebra.types import Type
from millstream.config import Options
from millstream.control.mill import LocalMill
from millstream.lang import ast, parse
from millstream.logical.bind import bind_select
from tests.control.test_feedback import FORMS, SWITCHED
from tests.scripts.queries import query
from tests.scripts.script import EXTERNAL, KEYS, SKEWED, STREAMS, Script
from tests.time_kinds import KINDS

TIMES = ("ts", "t", "window_end", "top")


class TellingScript(Script):
    """`told`: the queries that may receive feedback, with their columns that are numbers."""

    def __init__(self, chance: Random) -> None:
        super().__init__(chance, chance.choice((EXTERNAL, EXTERNAL, SKEWED)))
        self.told: dict[str, list[str]] = {}
        self._catalog = LocalMill(Options(contracts="off"))

    def create(self, name: str) -> None:
        super().create(name)
        self._catalog.execute(f"CREATE STREAM {name} (k BIGINT, v BIGINT, ts BIGINT) {KINDS[self.kinds[name]]}")

    def query(self) -> None:
        self.made += 1
        name, text = f"q{self.made}", query(self.chance, tuple(sorted(self.kinds)), self.kinds)
        (statement,) = parse(text)
        assert isinstance(statement, ast.SelectStatement)
        schema = bind_select(statement.select, self._catalog.catalog).schema
        self.told[name] = [a.name for a in schema if a.type in (Type.BIGINT, Type.INT, Type.DOUBLE)]
        for each in (name, f"{name}_all"):
            self.queries[each] = text
            self.add(f"query {each}", text)

    def feedback(self) -> None:
        name = self.chance.choice(sorted(self.told))
        self.add(f"expect {name}")
        self.add(f"feedback {name} ~[{', '.join(self._restriction(name))}]")

    def _restriction(self, name: str) -> list[str]:
        columns = sorted({self.chance.choice(self.told[name]) for _ in range(self.chance.randint(1, 2))})
        return [f"{column} {self._form(column)}" for column in columns]

    def _form(self, column: str) -> str:
        if column == "k":
            return self.chance.choice(("= {0}", "in {{{0}, {1}}}", "<= {0}")).format(*self.chance.sample(KEYS, 2))
        most = self.now + 10 if column in TIMES else 6
        low, high = sorted(self.chance.randint(0, most) for _ in range(2))
        return self.chance.choice(FORMS).format(low, high)

    def switch(self) -> None:
        for option, value in zip(("exploit", "propagate"), self.chance.choice(SWITCHED), strict=True):
            self.add("statement", f"SET {option} = '{value}'")

    def observe(self, name: str) -> None:
        self.add(f"expect {name}")

    def end(self) -> None:
        super().end()
        if self.files:  # such a stream does not end: what is held depends on what operators have dropped
            self.blocks = [block for block in self.blocks if not block.startswith("state ")]


STEPS = {
    TellingScript.feed: 50,
    TellingScript.feedback: 14,
    TellingScript.look: 8,
    TellingScript.advance: 4,
    TellingScript.switch: 6,
    TellingScript.restart: 6,
}


def random_feedback(chance: Random, steps: int = 25) -> list[str]:
    """The blocks of a script."""
    script = TellingScript(chance)
    for name in STREAMS[: chance.randint(2, 3)]:
        script.create(name)
    for _ in range(chance.randint(1, 2)):
        script.query()
    for _ in range(chance.randint(8, steps)):
        chance.choices([*STEPS], [*STEPS.values()])[0](script)
    script.end()
    return script.blocks
