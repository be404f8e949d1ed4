"""Recognises bodies that built-in functions compute on columns.

| state, or body | function |
|---|---|
| `s = s + g`, from g on; EXPIRE subtracts it | SUM(g); COUNT(*) if g is a constant |
| `s = GREATEST(s, g)` or `LEAST(s, g)`, from g on | MAX(g), MIN(g) |
| `s = CASE WHEN g > s THEN g ELSE s END` (also `UPDATE … WHERE g > s`), or `<` | the same |
| `s = a * s + b * g` with constants, from any value on | DECAY_SUM(g, a, b) |
| s is never changed, from g on | FIRST(g) |
| `s = g`, from g on | g of the tuple itself |
| window version: `DELETE FROM inwindow WHERE w < g`, and `oldest()` is returned | MAX(g); MIN(g) if `>` |

The result is an expression over such states and the arguments, the same after INITIALIZE and after ITERATE or in
TERMINATE. Anything else is compiled, and so is a body that calls Python functions.

A NULL that is added to a sum makes it NULL for ever, which a built-in function does not: where an argument may be NULL,
the number of NULLs so far decides.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

from millstream.algebra.expression import Binary, Call, Case, Column, Expression, Literal, Unary, conjunction, rewrite
from millstream.algebra.frame import Frame
from millstream.algebra.program.call import ProgramCall
from millstream.algebra.program.expression import Argument, CallValue, Oldest, walk
from millstream.algebra.program.program import Program
from millstream.algebra.program.statement import INWINDOW, RETURN, Delete, Insert
from millstream.algebra.types import Type
from millstream.logical.bind.aggregate.symbolic import NotSymbolic, simplified, substituted, symbolic
from millstream.logical.bind.coercion import cast
from millstream.logical.references import references

Nullable = Callable[[Expression], bool]


@dataclass(frozen=True, slots=True)
class Part:
    """A built-in function of an expression over the arguments (None: `*`), of the tuples for which `filter` holds.
    `ever`: over all tuples so far, whatever the frame."""

    function: str
    argument: Expression | None
    filter: Expression | None = None
    parameters: tuple[float, ...] = ()
    ever: bool = False


@dataclass(slots=True)
class Recognised:
    """The functions, and the result over them (`CallValue`) and the arguments."""

    parts: list[Part] = field(default_factory=list)
    results: tuple[Expression, ...] = ()

    def value(self, part: Part, type_: Type) -> Expression:
        if part not in self.parts:
            self.parts.append(part)
        return CallValue(type_, self.parts.index(part))

    @property
    def functions(self) -> list[str]:
        return [part.function.lower() for part in self.parts if not part.ever]


def recognised(call: ProgramCall, frame: Frame, nullable: Nullable) -> Recognised | None:
    """The built-in functions that compute a call over a frame; None: it has to be compiled."""
    by_slots = frame.rows and frame.tumbles and call.base is not None
    by_window = call.window is not None and frame.size is not None and not by_slots
    program = call.window if by_window else call.base or call.window
    assert program is not None
    if (frame.active and by_window) or any(True for _ in references(program)):
        return None
    may_be_null = any(nullable(Argument(each.type, each.name)) for each in program.arguments)
    skips = program.ignore_nulls and may_be_null
    if skips and (frame.size is not None or frame.base):
        return None
    try:
        if by_window and (found := _pruned(program)) is not None:
            return None if may_be_null else found
        return _Recogniser(program, frame, by_window, nullable, skips).run()
    except NotSymbolic:
        return None


class _Recogniser:
    def __init__(self, program: Program, frame: Frame, by_window: bool, nullable: Nullable, skips: bool) -> None:
        self._program, self._frame, self._by_window = program, frame, by_window
        self._nullable, self._skips = nullable, skips
        self._found = Recognised()
        tests = [Unary(Type.BOOLEAN, "IS NOT NULL", Argument(each.type, each.name)) for each in program.arguments]
        self._known = conjunction(tuple(tests)) if skips else None
        """The tuples that are taken; None: all."""
        self._other = skips or frame.active
        """True if a row may have another tuple's result: one that is not taken repeats the last, one that leaves has
        that of the frame without it."""
        self._first = symbolic(program, program.initialize, starts=True)
        self._next = symbolic(program, program.iterate)
        self._gone = symbolic(program, program.expire)

    def run(self) -> Recognised:
        result = self._result()
        used = [node.name for item in result for node in walk(item) if isinstance(node, Column)]
        values = {name: self._state(name) for name in dict.fromkeys(used)}
        results = tuple(substituted(item, values) for item in result)
        if self._other and any(isinstance(node, Argument) for item in results for node in walk(item)):
            raise NotSymbolic
        if not self._found.functions:
            raise NotSymbolic  # no function to compute over the frame
        self._found.results = results
        return self._found

    def _result(self) -> tuple[Expression, ...]:
        """The result over the state after a tuple."""
        ended = symbolic(self._program, self._program.terminate)
        first, later = self._first.returned, self._next.returned
        if ended.returned is not None and not self._frame.base:
            if first is not None or later is not None or any(_arguments(item) for item in ended.returned):
                raise NotSymbolic
            return ended.returned
        if first is None or later is None:
            raise NotSymbolic
        same = [
            simplified(substituted(a, self._first.state)) == simplified(substituted(b, self._first.state))
            for a, b in zip(first, later, strict=True)
        ]
        if not all(same):
            raise NotSymbolic
        return later

    def _state(self, name: str) -> Expression:
        """A column of the state, as a function of the tuples in the frame."""
        first, later = self._first.state[name], self._next.state[name]
        own = Column(later.type, name)
        if _columns(first):
            raise NotSymbolic
        gone = self._gone.state[name]
        added = _added(later, own)
        if added is not None and not _columns(added) and simplified(added) == simplified(first):
            if self._by_window and not _subtracted(gone, own, added, self._program):
                raise NotSymbolic
            return self._sum(added, own.type)
        if self._by_window:
            raise NotSymbolic  # tuples that have left still count
        if later == own:
            return self._found.value(Part("FIRST", first, self._known), own.type)
        if later == first:
            return self._last(first)
        return self._extreme(first, later, own) or self._decay(first, later, own)

    def _sum(self, added: Expression, type_: Type) -> Expression:
        if isinstance(added, Literal) and isinstance(added.value, int | float) and added.value:
            counted = self._found.value(Part("COUNT", None, self._known), Type.BIGINT)
            total = counted if added.value == 1 and type_ is Type.BIGINT else _times(added, counted, type_)
            if not self._skips:
                return total
            called = Binary(Type.BOOLEAN, ">", counted, Literal(Type.BIGINT, 0))
            return Case(type_, ((called, total),), None)  # no result before the first tuple that is taken
        if not _arguments(added):
            raise NotSymbolic
        total = self._found.value(Part("SUM", added, self._known), type_)
        if self._skips or not self._nullable(added):
            return total
        # the base version starts anew with each frame; the sum of a window version stays NULL
        if self._by_window and not self._frame.every:
            raise NotSymbolic
        missing = Unary(Type.BOOLEAN, "IS NULL", added)
        nulls = self._found.value(Part("COUNT", None, missing, ever=self._by_window), Type.BIGINT)
        none = Binary(Type.BOOLEAN, "=", nulls, Literal(Type.BIGINT, 0))
        return Case(type_, ((none, total),), None)

    def _last(self, value: Expression) -> Expression:
        return self._found.value(Part("LAST", value, self._known), value.type) if self._other else value

    def _extreme(self, first: Expression, later: Expression, own: Column) -> Expression | None:
        strict = False
        match later:
            case Call(function="GREATEST" | "LEAST" as name, arguments=(a, b)) if own in (a, b):
                value, function = (b if a == own else a), "MAX" if name == "GREATEST" else "MIN"
            case Case(branches=((Binary(op="<" | ">" | "<=" | ">=" as op, left=a, right=b), value),), otherwise=other):
                if {a, b} != {own, value} or other != own:
                    return None
                strict, function = True, "MAX" if (op[0] == ">") == (a == value) else "MIN"
            case _:
                return None
        if value != first or _columns(value):
            return None
        made = (
            self._greatest(value)
            if function == "MAX"
            else self._found.value(Part(function, value, self._known), own.type)
        )
        if not strict or self._skips or not self._nullable(value):
            return made
        # nothing compares with a first value that is NULL
        start = self._found.value(Part("FIRST", value), own.type)
        return Case(own.type, ((Unary(Type.BOOLEAN, "IS NOT NULL", start), made),), None)

    def _greatest(self, value: Expression) -> Expression:
        """The greatest value. In a body NaN is greater than all other numbers, and MAX has it only if it is alone."""
        made = self._found.value(Part("MAX", value, self._known), value.type)
        if not value.type.is_float:
            return made
        is_nan = Binary(Type.BOOLEAN, ">", value, Literal(Type.DOUBLE, math.inf))
        taken = is_nan if self._known is None else conjunction((self._known, is_nan))
        return Call(value.type, "GREATEST", (made, self._found.value(Part("MAX", value, taken), value.type)))

    def _decay(self, first: Expression, later: Expression, own: Column) -> Expression:
        """`s = a * s + b * g`; what s is at first is added, as often multiplied by `a` as tuples have come."""
        found = _linear(later, own)
        if found is None or own.type is not Type.DOUBLE or self._skips:
            raise NotSymbolic
        a, b, value = found
        if not 0 < a <= 1 or _columns(value) or not _arguments(value):
            raise NotSymbolic
        total = self._found.value(Part("DECAY_SUM", value, None, (a, b)), Type.DOUBLE)
        weighted = Binary(Type.DOUBLE, "*", Literal(Type.DOUBLE, b), value)
        if simplified(weighted) != simplified(first):
            start = Binary(Type.DOUBLE, "-", first, weighted)
            excess = self._found.value(Part("FIRST", simplified(start)), Type.DOUBLE)
            count = self._found.value(Part("COUNT", None), Type.BIGINT)
            steps = Binary(Type.DOUBLE, "-", cast(count, Type.DOUBLE), Literal(Type.DOUBLE, 1.0))
            faded = Call(Type.DOUBLE, "POWER", (Literal(Type.DOUBLE, a), steps))
            total = Binary(Type.DOUBLE, "+", total, Binary(Type.DOUBLE, "*", faded, excess))
        if not (self._nullable(value) or self._nullable(first)):
            return total
        missing = Unary(Type.BOOLEAN, "IS NULL", value)
        nulls = self._found.value(Part("COUNT", None, missing), Type.BIGINT)
        none = Binary(Type.BOOLEAN, "=", nulls, Literal(Type.BIGINT, 0))
        return Case(Type.DOUBLE, ((none, total),), None)


def _times(factor: Literal, count: Expression, type_: Type) -> Expression:
    return Binary(type_, "*", cast(factor, type_), cast(count, type_))


def _added(later: Expression, own: Column) -> Expression | None:
    """g of `s + g`, or of `g + s`."""
    if isinstance(later, Binary) and later.op == "+" and own in (later.left, later.right):
        return later.right if later.left == own else later.left
    return None


def _linear(later: Expression, own: Column) -> tuple[float, float, Expression] | None:
    """a, b and g of `a * s + b * g`."""
    if not (isinstance(later, Binary) and later.op == "+"):
        return None
    for kept, added in ((later.left, later.right), (later.right, later.left)):
        factor, term = _scaled(kept)
        if term == own:
            weight, value = _scaled(added)
            return factor, weight, value
    return None


def _scaled(expression: Expression) -> tuple[float, Expression]:
    """b and g of `b * g`."""
    if isinstance(expression, Binary) and expression.op == "*":
        for factor, value in ((expression.left, expression.right), (expression.right, expression.left)):
            if isinstance(factor, Literal) and factor.value is not None:
                return float(factor.value), value
    return 1.0, expression


def _subtracted(gone: Expression, own: Column, added: Expression, program: Program) -> bool:
    """True if EXPIRE subtracts what the expired tuple had added."""
    if not (isinstance(gone, Binary) and gone.op == "-" and gone.left == own):
        return False
    names = [argument.name for argument in program.arguments]

    def change(node: Expression) -> Expression | None:
        return Argument(node.type, names[node.position]) if isinstance(node, Oldest) else None

    return simplified(rewrite(gone.right, change)) == simplified(added)


def _columns(expression: Expression) -> bool:
    return any(isinstance(node, Column | Oldest) for node in walk(expression))


def _arguments(expression: Expression) -> bool:
    return any(isinstance(node, Argument) for node in walk(expression))


def _pruned(program: Program) -> Recognised | None:
    """MAX or MIN that deletes from inwindow what can no longer be the result."""
    if program.tables or program.expire or len(program.arguments) != 1 or len(program.results) != 1:
        return None
    match program.initialize, program.iterate:
        case (Insert(table=RETURN_1, queries=(first,)),), (
            Delete(table=deleted, condition=Binary(op="<" | ">" | "<=" | ">=" as op, left=left, right=right)),
            Insert(table=RETURN_2, queries=(later,)),
        ):
            pass
        case _:
            return None
    argument = Argument(program.arguments[0].type, program.arguments[0].name)
    held = Column(argument.type, f"{INWINDOW}.{program.inwindow[0]}") if program.inwindow else None
    plain = [not query.sources and query.condition is None for query in (first, later)]
    if RETURN_1 != RETURN or RETURN_2 != RETURN or deleted != INWINDOW or not all(plain):
        return None
    oldest = len(later.items) == 1 and isinstance(later.items[0], Oldest)
    if first.items != (argument,) or not oldest or {left, right} != {held, argument} or op not in ("<", ">"):
        return None
    greatest = (op == "<") == (left == held)
    found = Recognised()
    found.results = (found.value(Part("MAX" if greatest else "MIN", argument), argument.type),)
    return found
