"""Expressions as Python source, with the semantics of `runtime.expression` on single values.

| mode | source |
|---|---|
| `value` | an expression whose value is that of SQL, None for NULL |
| `holds` | a truth value: the condition is true, not false or NULL |
| `fails` | a truth value: the condition is false, not true or NULL |

Of the conditions of WHERE, those that cannot overflow are tested first, and those that call Python functions last:
where one does not hold, the others are not used.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from millstream.algebra.expression import (
    Binary,
    Call,
    Case,
    Cast,
    Column,
    Expression,
    InList,
    Literal,
    PythonCall,
    Unary,
    calls_code,
)
from millstream.algebra.program.expression import (
    Argument,
    CallValue,
    Exists,
    Fitting,
    GroupValue,
    InQuery,
    Oldest,
    ScalarQuery,
    walk,
)
from millstream.algebra.program.query import Query
from millstream.algebra.types import Type
from millstream.runtime.program import functions, operators, scalars
from millstream.runtime.program.code import python_function
from millstream.runtime.program.forms import any_equal, calls_last, same_kind
from millstream.runtime.program.operators import COMPARISONS
from millstream.runtime.program.source import Code, Frame

_OPPOSITE = {"=": "<>", "<>": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
_COMPUTED = (Type.INT, Type.BIGINT, Type.DOUBLE)
"""The types that Python computes with as it is."""


QueryCompiler = Callable[[Query, Frame, str], str]
"""Source that calls a query: `kind` is 'rows', 'value' or 'exists'."""


class Expressions:
    """Generates the expressions of one function."""

    def __init__(self, frame: Frame, call_query: QueryCompiler) -> None:
        self.frame, self._call_query = frame, call_query
        self.facts = frame.module.facts
        self.repeated = False
        """True if the expressions are evaluated in a loop."""
        self._before: dict[Expression, str] | None = None
        """The variables of values that are computed before the loop."""
        self._lines: list[str] = []
        self.always: tuple[Expression, ...] = ()
        """Values that the first row uses in any case: they may be computed before the loop even if they may fail."""

    @contextmanager
    def in_loop(self) -> Iterator[list[str]]:
        """While the body of a loop is generated: the lines before it, which compute what is the same for all rows."""
        outside = self._before, self._lines
        self._before, self._lines = {}, []
        yield self._lines
        self._before, self._lines = outside

    # --- values ---------------------------------------------------------------------------------------------------

    def value(self, node: Expression) -> Code:
        """Source of the value of an expression. Inside a loop, one of arguments alone is computed before it."""
        if not self.repeated:
            return self._value(node)
        of_function, of_loop = self._is_invariant(node), self._before is not None and self._is_same_in_loop(node)
        if not of_function and not of_loop:
            return self._value(node)
        self.repeated = False
        made = self._value(node)
        self.repeated = True
        if of_function:
            return Code(self.frame.invariant(node, made.text), made.nullable, True)
        assert self._before is not None
        if made.text.isidentifier():
            return made
        if node not in self._before:
            self._before[node] = self.frame.temporary()
            self._lines.append(f"{self._before[node]} = {made.text}")
        return Code(self._before[node], made.nullable, True)

    def _is_same_in_loop(self, node: Expression) -> bool:
        """True if it is an operation on arguments, constants and one-row tables that cannot fail, or such a value."""
        inside = [*walk(node)]
        if isinstance(node, Argument | Literal) or any(each.type not in _COMPUTED for each in inside):
            return False
        return all(map(self._is_same, inside)) and (node in self.always or not self.may_overflow(node))

    def _is_same(self, node: Expression) -> bool:
        match node:
            case Argument() | Literal() | Binary() | Unary() | Cast():
                return True
            case Column(name=name):
                return self.frame.has_one_row(name.rpartition(".")[0])
            case ScalarQuery(query=query):
                tables = [self.frame.module.tables.get(str(source.relation)) for source in query.sources]
                one_row = all(table is not None and table.fixed == 1 for table in tables)
                plain = query == Query(query.sources, query.items) and isinstance(query.items[0], Column)
                return one_row and plain and not any(source.outer for source in query.sources)
        return False

    def _is_invariant(self, node: Expression) -> bool:
        """True if it is an operation on arguments and constants that cannot fail."""
        inside = [*walk(node)]
        plain = all(isinstance(each, Argument | Literal | Binary | Unary) for each in inside)
        numeric = all(each.type in _COMPUTED for each in inside) and any(isinstance(each, Argument) for each in inside)
        return plain and numeric and len(inside) > 1 and not self.may_overflow(node)

    def _value(self, node: Expression) -> Code:
        frame = self.frame
        match node:
            case Argument(name=name):
                names = [argument.name for argument in frame.module.program.arguments]
                return Code(frame.use(f"a{names.index(name)}"), not frame.module.program.ignore_nulls, True)
            case Column(name=name):
                return Code(frame.column(name), self.facts.of(node).nullable, True)
            case Literal(value=constant):
                return self.literal(constant)
            case GroupValue(position=position):
                return Code(frame.groups[position], self.facts.of(node).nullable, atom=True)
            case CallValue(position=position):
                return Code(frame.calls[position], self.facts.of(node).nullable, atom=True)
            case Oldest(position=position):
                name = frame.temporary()
                return Code(f"(None if ({name} := s.inwindow.oldest()) is None else {name}[{position}])")
            case ScalarQuery(query=query):
                return Code(self._call_query(query, frame, "value"), self.facts.of(node).nullable)
            case Exists(query=query):
                return Code(self._call_query(query, frame, "exists"), nullable=False)
            case InQuery(operand=operand, query=query):
                rows = self._call_query(query, frame, "rows")
                return Code(f"contained({self.value(operand).text}, {rows})")
            case Binary():
                return operators.binary(self, node)
            case Unary():
                return operators.unary(self, node)
            case InList():
                return self.value(any_equal(node))
            case Case():
                return self._case(node)
            case Cast():
                return functions.cast(self, node)
            case Fitting(type=type_, operand=operand):
                narrow, text = "narrow" if type_ is Type.INT else "narrow_real", frame.module.constant(str(node))
                return self.strict([operand], f"{narrow}({{0}}, {text})".format)
            case Call():
                return functions.call(self, node)
            case PythonCall():
                name = frame.module.constant(python_function(node), "f")
                return Code(f"{name}({', '.join(self.value(each).text for each in node.arguments)})")
        return self.through_page(node)

    def literal(self, constant: object) -> Code:
        if constant is None or isinstance(constant, bool | int | str):
            return Code(f"({constant!r})" if isinstance(constant, int) else repr(constant), constant is None, True)
        if isinstance(constant, float) and math.isfinite(constant):
            return Code(f"({constant!r})", False, True)
        return Code(self.frame.module.constant(constant), False, True)

    def named(self, code: Code) -> tuple[str, str]:
        """Source that evaluates a value and keeps it, and source that repeats it."""
        if code.atom:
            return code.text, code.text
        name = self.frame.temporary()
        return f"({name} := {code.text})", name

    def known(self, *operands: Expression, once: bool = False) -> tuple[list[str], list[tuple[str, str]]]:
        """Tests, in order, that the operands are not NULL; and of each, source that evaluates it after the tests, and
        source that repeats it, unless it is used `once`. An operand that may overflow is evaluated even if another one
        is NULL."""
        risky, tests, texts = [], [], []
        codes = list(map(self.value, operands))
        certain = not any(code.nullable for code in codes)
        for operand, code in zip(operands, codes, strict=True):
            if certain:
                texts.append((code.text, code.text) if once else self.named(code))
                continue
            risk = self.may_overflow(operand)
            first, again = (code.text, code.text) if once and not risk and not code.nullable else self.named(code)
            if risk:
                risky.append(f"({first} is not None)")
            elif code.nullable:
                tests.append(f"{first} is not None")
            else:
                texts.append((first, again))
                continue
            texts.append((again, again))
        return [" & ".join(risky), *tests] if risky else tests, texts

    def strict(self, operands: tuple[Expression, ...] | list[Expression], form: Callable[..., str]) -> Code:
        """A value that is NULL if one of the operands is."""
        tests, texts = self.known(*operands, once=True)
        made = form(*(first for first, _ in texts))
        return Code(f"({made} if {' and '.join(tests)} else None)") if tests else Code(f"({made})", nullable=False)

    def _case(self, node: Case) -> Code:
        text = "None" if node.otherwise is None else self.value(node.otherwise).text
        nullable = node.otherwise is None or self.value(node.otherwise).nullable
        for condition, value in reversed(node.branches):
            made = self.value(value)
            text, nullable = f"({made.text} if {self.holds(condition)} else {text})", nullable or made.nullable
        return Code(text, nullable)

    def through_page(self, node: Expression) -> Code:
        operands = [child for child in node.children() if not isinstance(child, Literal)]
        name = self.frame.module.constant(scalars.through_page(node, operands), "f")
        return Code(f"{name}({', '.join(self.value(operand).text for operand in operands)})")

    # --- conditions -----------------------------------------------------------------------------------------------

    def holds(self, node: Expression) -> str:
        """Source that is true if the condition is true."""
        if isinstance(node, Binary) and node.op in ("AND", "OR") and self.may_overflow(node):
            return f"({self.value(node).text} is True)"
        match node:
            case Binary(op="AND"):
                return f"({' and '.join(map(self.holds, calls_last(node)))})"
            case Binary(op="OR"):
                return f"({' or '.join(map(self.holds, calls_last(node)))})"
            case Unary(op="NOT", operand=operand):
                return self.fails(operand)
            case InList():
                return self.holds(any_equal(node))
            case Literal(value=constant):
                return repr(constant is True)
            case Binary(op=op) if op in COMPARISONS and same_kind(node.left.type, node.right.type):
                return self._comparison(op, node)
        made = self.value(node)
        return f"({made.text} is True)" if made.nullable else made.text

    def fails(self, node: Expression) -> str:
        """Source that is true if the condition is false."""
        if isinstance(node, Binary) and node.op in ("AND", "OR") and self.may_overflow(node):
            return f"({self.value(node).text} is False)"
        match node:
            case Binary(op="AND"):
                return f"({' or '.join(map(self.fails, calls_last(node)))})"
            case Binary(op="OR"):
                return f"({' and '.join(map(self.fails, calls_last(node)))})"
            case Unary(op="NOT", operand=operand):
                return self.holds(operand)
            case InList():
                return self.fails(any_equal(node))
            case Literal(value=constant):
                return repr(constant is False)
            case Binary(op=op) if op in COMPARISONS and same_kind(node.left.type, node.right.type):
                return self._comparison(_OPPOSITE[op], node)
        made = self.value(node)
        return f"({made.text} is False)" if made.nullable else f"(not {made.text})"

    def _comparison(self, op: str, node: Binary) -> str:
        tests, text = operators.compared(self, op, node)
        return f"({' and '.join([*tests, text])})"

    def may_overflow(self, node: Expression) -> bool:
        """True if a value inside the expression may not fit its type."""
        return not all(map(self.facts.fits, walk(node)))

    def all_hold(self, conditions: Sequence[Expression]) -> str:
        """Source that is true if all conditions of WHERE are true; where one is not, the others are not used."""
        parts = sorted(conditions, key=lambda part: (calls_code(part), self.may_overflow(part)))
        tests = list(map(self.holds, parts))
        if sum(map(self.may_overflow, parts)) > 1:
            return f"all_hold({', '.join(f'lambda: {test}' for test in tests)})"
        return tests[0] if len(tests) == 1 else f"({' and '.join(tests)})"
