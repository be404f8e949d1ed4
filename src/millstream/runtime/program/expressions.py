"""Expressions as Python source, with the semantics of `runtime.expression` on single values.

| mode | source |
|---|---|
| `value` | an expression whose value is that of SQL, None for NULL |
| `holds` | a truth value: the condition is true, not false or NULL |
| `fails` | a truth value: the condition is false, not true or NULL |

DOUBLEs compare as in Polars: NaN equals NaN and is greater than any other number. Of the conditions of WHERE, those
that cannot overflow are tested first, and those that call Python functions last: where one does not hold, the others
are not used.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

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
from millstream.runtime.program import scalars
from millstream.runtime.program.code import python_function
from millstream.runtime.program.forms import ALIKE, any_equal, calls_last, needs_nan, same_kind, unconverted
from millstream.runtime.program.source import Frame

_OPPOSITE = {"=": "<>", "<>": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
COMPARISONS = {"=": "==", "<>": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
_WITH_NAN = {
    "=": "({0} == {1} or {2} != {2} and {3} != {3})",
    "<>": "({0} != {1} and ({2} == {2} or {3} == {3}))",
    "<": "({0} < {1} or {3} != {3} and {2} == {2})",
    "<=": "({0} <= {1} or {3} != {3})",
    ">": "({0} > {1} or {2} != {2} and {3} == {3})",
    ">=": "({0} >= {1} or {2} != {2})",
}
"""Comparisons of DOUBLEs: {0} and {1} evaluate the operands, {2} and {3} repeat them."""
_MOST = (1 << 63) - 1
_INSTANTS = (Type.TIMESTAMP, Type.INTERVAL)
_COMPUTED = (Type.BIGINT, Type.DOUBLE)
"""The types that Python computes with as it is."""


@dataclass(frozen=True, slots=True)
class Code:
    """Source of a value. `nullable`: it may be None. `atom`: it may be repeated at no cost."""

    text: str
    nullable: bool = True
    atom: bool = False


QueryCompiler = Callable[[Query, Frame, str], str]
"""Source that calls a query: `kind` is 'rows', 'value' or 'exists'."""


class Expressions:
    """Generates the expressions of one function."""

    def __init__(self, frame: Frame, call_query: QueryCompiler) -> None:
        self._frame, self._call_query = frame, call_query
        self._facts = frame.module.facts
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
            return Code(self._frame.invariant(node, made.text), made.nullable, True)
        assert self._before is not None
        if made.text.isidentifier():
            return made
        if node not in self._before:
            self._before[node] = self._frame.temporary()
            self._lines.append(f"{self._before[node]} = {made.text}")
        return Code(self._before[node], made.nullable, True)

    def _is_same_in_loop(self, node: Expression) -> bool:
        """True if it is an operation on arguments, constants and one-row tables that cannot fail, or such a value."""
        inside = [*walk(node)]
        if isinstance(node, Argument | Literal) or any(each.type not in _COMPUTED for each in inside):
            return False
        return all(map(self._is_same, inside)) and (node in self.always or not self._may_overflow(node))

    def _is_same(self, node: Expression) -> bool:
        match node:
            case Argument() | Literal() | Binary() | Unary() | Cast():
                return True
            case Column(name=name):
                return self._frame.has_one_row(name.rpartition(".")[0])
            case ScalarQuery(query=query):
                tables = [self._frame.module.tables.get(str(source.relation)) for source in query.sources]
                one_row = all(table is not None and table.fixed == 1 for table in tables)
                plain = query == Query(query.sources, query.items) and isinstance(query.items[0], Column)
                return one_row and plain and not any(source.outer for source in query.sources)
        return False

    def _is_invariant(self, node: Expression) -> bool:
        """True if it is an operation on arguments and constants that cannot fail."""
        inside = [*walk(node)]
        plain = all(isinstance(each, Argument | Literal | Binary | Unary) for each in inside)
        numeric = all(each.type in _COMPUTED for each in inside) and any(isinstance(each, Argument) for each in inside)
        return plain and numeric and len(inside) > 1 and not self._may_overflow(node)

    def _value(self, node: Expression) -> Code:
        frame = self._frame
        match node:
            case Argument(name=name):
                names = [argument.name for argument in frame.module.program.arguments]
                return Code(frame.use(f"a{names.index(name)}"), not frame.module.program.ignore_nulls, True)
            case Column(name=name):
                return Code(frame.column(name), self._facts.of(node).nullable, True)
            case Literal(value=constant):
                return self._literal(constant)
            case GroupValue(position=position):
                return Code(frame.groups[position], atom=True)
            case CallValue(position=position):
                return Code(frame.calls[position], atom=True)
            case Oldest(position=position):
                name = frame.temporary()
                return Code(f"(None if ({name} := s.inwindow.oldest()) is None else {name}[{position}])")
            case ScalarQuery(query=query):
                return Code(self._call_query(query, frame, "value"), self._facts.of(node).nullable)
            case Exists(query=query):
                return Code(self._call_query(query, frame, "exists"), nullable=False)
            case InQuery(operand=operand, query=query):
                rows = self._call_query(query, frame, "rows")
                return Code(f"contained({self.value(operand).text}, {rows})")
            case Binary():
                return self._binary(node)
            case Unary():
                return self._unary(node)
            case InList():
                return self.value(any_equal(node))
            case Case():
                return self._case(node)
            case Cast():
                return self._cast(node)
            case Fitting(type=Type.INT, operand=operand):
                return self._strict([operand], f"narrow({{0}}, {str(node)!r})".format)
            case Fitting(operand=operand):
                return self.value(Cast(node.type, operand))
            case Call():
                return self._call(node)
            case PythonCall():
                name = frame.module.constant(python_function(node), "f")
                return Code(f"{name}({', '.join(self.value(each).text for each in node.arguments)})")
        return self._through_page(node)

    def _literal(self, constant: object) -> Code:
        if constant is None or isinstance(constant, bool | int | str):
            return Code(f"({constant!r})" if isinstance(constant, int) else repr(constant), constant is None, True)
        if isinstance(constant, float) and math.isfinite(constant):
            return Code(f"({constant!r})", False, True)
        return Code(self._frame.module.constant(constant), False, True)

    def _named(self, code: Code) -> tuple[str, str]:
        """Source that evaluates a value and keeps it, and source that repeats it."""
        if code.atom:
            return code.text, code.text
        name = self._frame.temporary()
        return f"({name} := {code.text})", name

    def _known(self, *operands: Expression, once: bool = False) -> tuple[list[str], list[tuple[str, str]]]:
        """Tests, in order, that the operands are not NULL; and of each, source that evaluates it after the tests, and
        source that repeats it, unless it is used `once`. An operand that may overflow is evaluated even if another one
        is NULL."""
        risky, tests, texts = [], [], []
        codes = list(map(self.value, operands))
        certain = not any(code.nullable for code in codes)
        for operand, code in zip(operands, codes, strict=True):
            if certain:
                texts.append((code.text, code.text) if once else self._named(code))
                continue
            risk = self._may_overflow(operand)
            first, again = (code.text, code.text) if once and not risk and not code.nullable else self._named(code)
            if risk:
                risky.append(f"({first} is not None)")
            elif code.nullable:
                tests.append(f"{first} is not None")
            else:
                texts.append((first, again))
                continue
            texts.append((again, again))
        return [" & ".join(risky), *tests] if risky else tests, texts

    def _strict(self, operands: tuple[Expression, ...] | list[Expression], form: Callable[..., str]) -> Code:
        """A value that is NULL if one of the operands is."""
        tests, texts = self._known(*operands, once=True)
        made = form(*(first for first, _ in texts))
        return Code(f"({made} if {' and '.join(tests)} else None)") if tests else Code(f"({made})", nullable=False)

    def _binary(self, node: Binary) -> Code:
        op, (left, right) = node.op, calls_last(node)
        if op in ("AND", "OR"):
            helper, late = ("both", "both_used") if op == "AND" else ("either", "either_used")
            texts = self.value(left).text, self.value(right).text
            if self._may_overflow(node) or calls_code(node):
                return Code(f"{late}(lambda: {texts[0]}, lambda: {texts[1]})")
            return Code(f"{helper}({texts[0]}, {texts[1]})")
        if op in COMPARISONS:
            if not same_kind(left.type, right.type):
                return self._through_page(node)
            tests, text = self._compared(op, node)
            return Code(f"({text} if {' and '.join(tests)} else None)") if tests else Code(f"({text})", False)
        if op == "||":
            return self._strict([left, right], lambda a, b: f"{a} + {b}")
        if op == "LIKE":
            return self._like(node)
        if node.type in _INSTANTS and left.type in _INSTANTS and right.type in _INSTANTS:
            sign = 1 if op == "+" else -1
            said = self._frame.module.constant(str(node))
            form = f"moved({{0}}, {{1}}, {sign}, {said}, {node.type.value!r})"
            return self._strict([left, right], form.format)
        if not (node.type.is_numeric and left.type.is_numeric and right.type.is_numeric):
            return self._through_page(node)
        return self._arithmetic(node)

    def _arithmetic(self, node: Binary) -> Code:
        op = node.op
        operands = [node.left, node.right]
        if op == "%":
            return self._remainder(node)
        if node.type is Type.REAL:
            return self._through_page(node)
        if node.type is Type.DOUBLE:
            # Python converts an integer beside a float itself
            operands = [unconverted(node.left, node.right), unconverted(node.right, node.left)]
        if op == "/":
            return self._quotient(*operands)
        if node.type is not Type.BIGINT:
            return self._strict(operands, f"{{0}} {op} {{1}}".format)
        return self._strict(operands, lambda a, b: self._fitting(node, f"{a} {op} {b}"))

    def _remainder(self, node: Binary) -> Code:
        divisor = node.right.value if isinstance(node.right, Literal) else None
        if isinstance(divisor, int) and divisor > 0 and node.left.type is Type.BIGINT:
            if self._facts.of(node.left).low >= 0:
                return self._strict([node.left], f"{{0}} % {divisor}".format)
            tests, ((first, again),) = self._known(node.left)
            made = f"{again} % {divisor} if {first} >= 0 else -(-{again} % {divisor})"
            return Code(f"(({made}) if {' and '.join(tests)} else None)") if tests else Code(f"({made})", False)
        return Code(self._strict([node.left, node.right], "remainder({0}, {1})".format).text)

    def _quotient(self, left: Expression, right: Expression) -> Code:
        if isinstance(right, Literal) and right.value:
            return self._strict([left, right], "{0} / {1}".format)
        tests, ((dividend, _), (first, again)) = self._known(left, right)
        return Code(f"({dividend} / {again} if {' and '.join([*tests, first])} else None)")

    def _fitting(self, node: Expression, text: str) -> str:
        """The value, if it fits a BIGINT."""
        low, high = self._facts.exceeds(node)
        if not low and not high:
            return text
        name, said = self._frame.temporary(), self._frame.module.constant(str(node))
        fits = f"{f'{-_MOST - 1} <= ' if low else ''}({name} := {text}){f' <= {_MOST}' if high else ''}"
        return f"({name} if {fits} else out_of_range({said}, 'BIGINT', {name}))"

    def _compared(self, op: str, node: Binary) -> tuple[list[str], str]:
        """Tests that the operands are not NULL, and the comparison after them."""
        tests, ((left, left_again), (right, right_again)) = self._known(node.left, node.right)
        if ALIKE.get(node.left.type, node.left.type) is not Type.DOUBLE or not needs_nan(op, node):
            return tests, f"{left} {COMPARISONS[op]} {right}"
        return tests, _WITH_NAN[op].format(left, right, left_again, right_again)

    def _unary(self, node: Unary) -> Code:
        operand = node.operand
        match node.op:
            case "NOT":
                return Code(f"inverted({self.value(operand).text})")
            case "IS NULL":
                return Code(f"({self.value(operand).text} is None)", False)
            case "IS NOT NULL":
                return Code(f"({self.value(operand).text} is not None)", False)
            case "-" if node.type is Type.BIGINT:
                return self._strict([operand], lambda text: self._fitting(node, f"-{text}"))
            case "-" if node.type is Type.DOUBLE:
                return self._strict([operand], "-{0}".format)
        return self._through_page(node)

    def _case(self, node: Case) -> Code:
        text = "None" if node.otherwise is None else self.value(node.otherwise).text
        nullable = node.otherwise is None or self.value(node.otherwise).nullable
        for condition, value in reversed(node.branches):
            made = self.value(value)
            text, nullable = f"({made.text} if {self.holds(condition)} else {text})", nullable or made.nullable
        return Code(text, nullable)

    def _cast(self, node: Cast) -> Code:
        operand = node.operand
        given, wanted = (ALIKE.get(type_, type_) for type_ in (operand.type, node.type))
        narrow = node.type in ALIKE and operand.type is not node.type
        if given is wanted and not narrow:
            return self.value(operand)
        match given, node.type:
            case Type.NULL, _:
                return self.value(operand)
            case Type.BIGINT, Type.DOUBLE:
                return self._strict([operand], "float({0})".format)
            case Type.BIGINT, Type.VARCHAR:
                return self._strict([operand], "str({0})".format)
            case Type.DOUBLE, Type.BIGINT:
                return Code(self._strict([operand], "truncated({0})".format).text)
            case Type.BIGINT, Type.INT:
                return Code(self._strict([operand], "shortened({0})".format).text)
        return self._through_page(node)

    def _call(self, node: Call) -> Code:
        arguments = node.arguments
        if node.function == "COALESCE":
            *some, last = map(self.value, arguments)
            text = last.text
            for code in reversed(some):
                first, again = self._named(code)
                text = f"({again} if {first} is not None else {text})"
            return Code(text, last.nullable)
        if node.function in ("GREATEST", "LEAST") and node.type is not Type.DOUBLE:
            return Code(f"{node.function.lower()}({', '.join(self.value(each).text for each in arguments)})")
        if node.function == "ABS" and node.type is Type.BIGINT:
            return self._strict(arguments, lambda text: self._fitting(node, f"abs({text})"))
        if node.function == "ABS" and node.type is Type.DOUBLE:
            return self._strict(arguments, "abs({0})".format)
        function = scalars.native(node)
        if function is None:
            return self._through_page(node)
        if all(isinstance(each, Literal) and each.value is not None for each in arguments):
            return self._literal(function(*(each.value for each in arguments if isinstance(each, Literal))))
        name = self._frame.module.constant(function, "f")
        return Code(self._strict(arguments, lambda *texts: f"{name}({', '.join(texts)})").text)

    def _like(self, node: Binary) -> Code:
        if not isinstance(node.right, Literal) or node.right.value is None:
            return self._through_page(node)
        name = self._frame.module.constant(scalars.like(str(node.right.value)), "f")
        return self._strict([node.left], f"{name}({{0}})".format)

    def _through_page(self, node: Expression) -> Code:
        operands = [child for child in node.children() if not isinstance(child, Literal)]
        name = self._frame.module.constant(scalars.through_page(node, operands), "f")
        return Code(f"{name}({', '.join(self.value(operand).text for operand in operands)})")

    # --- conditions -----------------------------------------------------------------------------------------------

    def holds(self, node: Expression) -> str:
        """Source that is true if the condition is true."""
        if isinstance(node, Binary) and node.op in ("AND", "OR") and self._may_overflow(node):
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
        if isinstance(node, Binary) and node.op in ("AND", "OR") and self._may_overflow(node):
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
        tests, text = self._compared(op, node)
        return f"({' and '.join([*tests, text])})"

    def _may_overflow(self, node: Expression) -> bool:
        """True if a value inside the expression may not fit its type."""
        return not all(map(self._facts.fits, walk(node)))

    def all_hold(self, conditions: Sequence[Expression]) -> str:
        """Source that is true if all conditions of WHERE are true; where one is not, the others are not used."""
        parts = sorted(conditions, key=lambda part: (calls_code(part), self._may_overflow(part)))
        tests = list(map(self.holds, parts))
        if sum(map(self._may_overflow, parts)) > 1:
            return f"all_hold({', '.join(f'lambda: {test}' for test in tests)})"
        return tests[0] if len(tests) == 1 else f"({' and '.join(tests)})"
