"""Scalar expressions, by precedence climbing.

From loosest to tightest: OR · AND · NOT · comparison, IS, IN, LIKE, BETWEEN · || · + - · * / % · unary minus · ::

The grammar does not use sqlglot's parser, which keeps no positions of literals and operators, does not report what it
expected, and accepts constructs without a meaning here (adjacent strings, CASE without WHEN).
"""

from __future__ import annotations

from dataclasses import replace

from millstream.algebra.type_names import ONE_OF
from millstream.lang import ast
from millstream.lang.aggregate import ast as body
from millstream.lang.cursor import RESERVED, Cursor
from millstream.lang.durations import interval
from millstream.lang.over import over_clause
from millstream.lang.tokens import Kind, Token

COMPARISONS = ("=", "<>", "<", "<=", ">", ">=")
EXTRACT_PARTS = ("YEAR", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND", "EPOCH")
MODES = ("RECENT", "CHRONICLE")


LEVELS = {"OR": 1, "AND": 2, "||": 5, "+": 6, "-": 6, "*": 7, "/": 7, "%": 7} | dict.fromkeys(COMPARISONS, 4)
_NEGATION, _PREDICATE, _OPERAND = 3, 4, 5
_TESTS = ("BETWEEN", "IN", "LIKE")
_LEAST_BIGINT = str(1 << 63)
"""The digits of the least BIGINT: out of range without the sign."""


def expression(cursor: Cursor) -> ast.Expr:
    return _climb(cursor, 1)


def expressions(cursor: Cursor) -> tuple[ast.Expr, ...]:
    """Parse one or more expressions, separated by commas."""
    return cursor.listed(expression)


def _climb(cursor: Cursor, level: int) -> ast.Expr:
    """Parse an expression whose operators all bind at least as tightly as the level."""
    with cursor.nested():
        if level <= _NEGATION and (token := cursor.accept("NOT")):
            made: ast.Expr = ast.Unary("NOT", _climb(cursor, _NEGATION), **token.place)
        else:
            made = _signed(cursor)
        while True:
            token = cursor.token
            word = token.upper if token.kind is Kind.WORD else token.text if token.kind is Kind.SYMBOL else ""
            found = LEVELS.get(word)
            if found is not None and found >= level:
                cursor.advance()
                made = ast.Binary(word, made, _climb(cursor, found + 1), **token.place)
            elif level <= _PREDICATE and _at_predicate(cursor):
                made = _predicate(cursor, made)
            else:
                return made


def _at_predicate(cursor: Cursor) -> bool:
    """True if a test that is not a plain operator follows: IS, [NOT] IN, or a function between its arguments."""
    if cursor.at_any("IS", *_TESTS) or (cursor.at("NOT") and cursor.ahead().upper in _TESTS):
        return True
    return cursor.ahead().is_symbol("(") and cursor.token.kind is Kind.WORD and cursor.at_name()


def _predicate(cursor: Cursor, operand: ast.Expr) -> ast.Expr:
    token = cursor.token
    if cursor.accept("IS"):
        return _is(cursor, operand, token)
    negated = cursor.accept("NOT") is not None
    if cursor.at_any(*_TESTS):
        made = _test(cursor, operand, cursor.advance())
        return ast.Unary("NOT", made, **token.place) if negated else made
    name = cursor.name("a function")
    cursor.expect_symbol("(")
    return ast.Function(name, (operand, *_arguments(cursor, token)), **token.place)


def _is(cursor: Cursor, operand: ast.Expr, token: Token) -> ast.Expr:
    negated = cursor.accept("NOT") is not None
    here = token.place
    if cursor.accept("NULL"):
        return ast.Unary("IS NOT NULL" if negated else "IS NULL", operand, **here)
    if not cursor.at_any("TRUE", "FALSE"):
        cursor.fail("NULL, TRUE or FALSE after IS")
    # IS TRUE is never NULL, unlike = TRUE
    value = ast.Constant(cursor.advance().upper == "TRUE", **here)
    test = ast.Binary("=", operand, value, **here)
    made = ast.Function("coalesce", (test, ast.Constant(False, **here)), **here)
    return ast.Unary("NOT", made, **here) if negated else made


def _test(cursor: Cursor, operand: ast.Expr, token: Token) -> ast.Expr:
    here = token.place
    if token.upper == "BETWEEN":
        low = _climb(cursor, _OPERAND)
        cursor.expect("AND")
        return ast.Between(operand, low, _climb(cursor, _OPERAND), **here)
    if token.upper == "LIKE":
        made = ast.Binary("LIKE", operand, _climb(cursor, _OPERAND), **here)
        if cursor.at("ESCAPE"):
            cursor.not_yet("LIKE with ESCAPE", hint="_ matches any one character, also _ and % themselves")
        return made
    cursor.expect_symbol("(")
    if (query := _subquery(cursor)) is not None:
        return body.InQuery(operand, query, **here)
    options = expressions(cursor)
    cursor.expect_symbol(")")
    return ast.InList(operand, options, **here)


def _subquery(cursor: Cursor) -> ast.Query | None:
    """Parse a subquery, if one follows, and the closing parenthesis."""
    if not cursor.at("SELECT"):
        return None
    if cursor.subquery is None:
        cursor.not_yet("a subquery inside an expression", hint="put it in FROM and join with it")
    found = cursor.subquery(cursor)
    cursor.expect_symbol(")")
    return found


def _signed(cursor: Cursor) -> ast.Expr:
    token = cursor.accept_symbol("-", "+")
    if token is None:
        made = _primary(cursor)
        while found := cursor.accept_symbol("::"):
            made = ast.Cast(made, type_name(cursor), **found.place)
        return made
    if token.text == "-" and cursor.token.kind is Kind.NUMBER and cursor.token.text == _LEAST_BIGINT:
        cursor.advance()
        return ast.Constant(-(1 << 63), **token.place)
    with cursor.nested():
        operand = _signed(cursor)
    if token.text == "+":
        return operand
    match operand:
        case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
            return ast.Constant(-number, **token.place)
    return ast.Unary("-", operand, **token.place)


def _primary(cursor: Cursor) -> ast.Expr:
    token = cursor.token
    here = token.place
    match token.kind:
        case Kind.NUMBER:
            return ast.Constant(_number(cursor, cursor.advance()), **here)
        case Kind.STRING:
            return ast.Constant(cursor.advance().text, **here)
        case Kind.SYMBOL if token.text == "(":
            cursor.advance()
            if (query := _subquery(cursor)) is not None:
                return body.Subquery(query, **here)
            made = expression(cursor)
            cursor.expect_symbol(")")
            return made
        case Kind.SYMBOL if token.text == "[":
            if cursor.ahead().kind in (Kind.WORD, Kind.QUOTED) and cursor.ahead(2).is_symbol("]"):
                cursor.error("M1090", "names in brackets: not available", hint='write them in double quotes: "name"')
            cursor.error("M1090", "arrays: not available", hint="a column for each value")
        case Kind.WORD | Kind.QUOTED:
            return _word(cursor)
    return cursor.fail("an expression")


def _number(cursor: Cursor, token: Token) -> int | float:
    if token.text.isdigit():
        value = int(token.text) if len(token.text) <= 19 else 1 << 64
        if value >= 1 << 63:
            cursor.error("M1003", f"{token.text} is out of range for BIGINT", token=token)
        return value
    made = float(token.text)
    if made in (float("inf"), float("-inf")):
        cursor.error("M1003", f"{token.text} is out of range for DOUBLE", token=token)
    return made


def _word(cursor: Cursor) -> ast.Expr:
    token = cursor.token
    here = token.place
    after = cursor.ahead()
    called, dotted = after.is_symbol("("), after.is_symbol(".")
    match token.upper:
        case "NULL" | "TRUE" | "FALSE":
            cursor.advance()
            return ast.Constant({"NULL": None, "TRUE": True, "FALSE": False}[token.upper], **here)
        case "CASE" if not dotted:
            return _case(cursor)
        case "INTERVAL" if after.kind in (Kind.STRING, Kind.NUMBER) or (after.text == "-" and not dotted):
            return interval(cursor)
        case "TIMESTAMP" | "DATE" if after.kind is Kind.STRING:
            cursor.advance()
            return ast.TypedConstant(token.upper, cursor.advance().text, **here)
        case "CAST" if called:
            return _cast(cursor)
        case "EXTRACT" if called:
            return _extract(cursor)
        case "SEQ" if called:
            return _sequence(cursor)
        case "EVENT" if after.upper in ("SEQ", "AND", "OR", "NOT"):
            cursor.not_yet("event patterns (EVENT)", hint="SEQ(a, b) MODE RECENT pairs two streams")
        case "EXISTS" if called:
            return _exists(cursor)
        case "OLDEST" if called and cursor.in_body:
            return _oldest(cursor)
    if called and token.upper not in RESERVED:
        return _function(cursor)
    if not cursor.at_name():
        cursor.fail("an expression")
    parts, quoted = [cursor.name("a column")], cursor.text[token.start] == '"'
    while cursor.accept_symbol("."):
        parts.append(cursor.name("a column"))
    if cursor.at_symbol("[") and cursor.ahead().kind in (Kind.STRING, Kind.QUOTED) and cursor.ahead(2).is_symbol("]"):
        hint = f"a column of a stream: {parts[-1]}.{cursor.ahead().text}; a value has no fields"
        cursor.error("M1090", "fields in brackets: not available", hint=hint)
    return ast.Name(tuple(parts), quoted, **here)


def _exists(cursor: Cursor) -> ast.Expr:
    token = cursor.token
    if cursor.subquery is None:
        cursor.not_yet("EXISTS", hint="put the subquery in FROM and join with it")
    cursor.advance()
    cursor.expect_symbol("(")
    found = _subquery(cursor)
    return cursor.fail("SELECT") if found is None else body.Exists(found, **token.place)


def _oldest(cursor: Cursor) -> ast.Expr:
    token = cursor.advance()
    with cursor.like("oldest().x"):
        cursor.expect_symbol("(")
        cursor.expect_symbol(")")
        name = cursor.name("a column of inwindow") if cursor.accept_symbol(".") else None
    return body.Oldest(name, **token.place)


def _case(cursor: Cursor) -> ast.Expr:
    token = cursor.expect("CASE")
    operand = None if cursor.at("WHEN") else expression(cursor)
    branches = []
    while cursor.accept("WHEN"):
        condition = expression(cursor)
        cursor.expect("THEN")
        branches.append((condition, expression(cursor)))
    if not branches:
        cursor.fail("WHEN")
    otherwise = expression(cursor) if cursor.accept("ELSE") else None
    cursor.expect("END")
    return ast.Case(operand, tuple(branches), otherwise, **token.place)


def _cast(cursor: Cursor) -> ast.Expr:
    token = cursor.expect("CAST")
    cursor.expect_symbol("(")
    operand = expression(cursor)
    with cursor.like("CAST(x AS BIGINT)"):
        cursor.expect("AS")
    target = type_name(cursor)
    if cursor.token.kind is Kind.WORD and cursor.token.upper not in RESERVED:
        cursor.fail("')'", hint=f"a type is {ONE_OF}")
    cursor.expect_symbol(")")
    return ast.Cast(operand, target, **token.place)


def type_name(cursor: Cursor) -> ast.TypeName:
    """Parse a type; its length or precision is accepted and ignored: values are not truncated."""
    token = cursor.token
    if token.kind is not Kind.WORD:
        cursor.fail("a type such as BIGINT or VARCHAR")
    cursor.advance()
    name = token.upper
    if name == "DOUBLE":
        cursor.accept("PRECISION")
    if name in ("CHARACTER", "CHAR"):
        cursor.accept("VARYING")
    if cursor.accept_symbol("("):
        cursor.integer("a length")
        if cursor.accept_symbol(","):
            cursor.integer("a scale")
        cursor.expect_symbol(")")
    if name == "TIMESTAMP":
        _ = cursor.accept("WITHOUT", "TIME", "ZONE") or cursor.accept("WITH", "TIME", "ZONE")
    return ast.TypeName(name, **token.place)


def _extract(cursor: Cursor) -> ast.Expr:
    token = cursor.expect("EXTRACT")
    cursor.expect_symbol("(")
    part = cursor.choice(EXTRACT_PARTS, f"one of {', '.join(EXTRACT_PARTS)}")
    cursor.expect("FROM")
    operand = expression(cursor)
    cursor.expect_symbol(")")
    return ast.Extract(part, operand, **token.place)


def _sequence(cursor: Cursor) -> ast.Expr:
    token = cursor.expect("SEQ")
    names = cursor.names("a stream or its alias")
    with cursor.like("SEQ(a, b) MODE RECENT"):
        cursor.expect("MODE")
    return ast.SequenceTest(names, cursor.choice(MODES, "RECENT or CHRONICLE"), **token.place)


def _function(cursor: Cursor) -> ast.Expr:
    token = cursor.token
    name = cursor.name("a function")
    here = token.place
    cursor.expect_symbol("(")
    if name == "trim" and cursor.at_any("BOTH", "LEADING", "TRAILING"):
        cursor.not_yet("TRIM of one side or of other characters", hint="TRIM(x) removes blanks on both sides")
    star, distinct = cursor.accept_symbol("*") is not None, False
    arguments: tuple[ast.Expr, ...] = ()
    if star:
        cursor.expect_symbol(")")
    elif cursor.accept("DISTINCT"):
        arguments, distinct = _some_arguments(cursor, token), True
    else:
        arguments = _arguments(cursor, token)
    within, filtered = _within_group(cursor), _filter(cursor)
    made = ast.Function(name, arguments, distinct, star, within, filtered, **here)
    return with_over(cursor, made) if at_over(cursor) else made


def at_over(cursor: Cursor) -> bool:
    return cursor.at("OVER")


def with_over(cursor: Cursor, function: ast.Function) -> ast.Function:
    """Parse `OVER (…)` behind a function."""
    return replace(function, over=over_clause(cursor, expression))


def _within_group(cursor: Cursor) -> ast.Expr | None:
    if not (cursor.at("WITHIN") and cursor.ahead().upper == "GROUP"):
        return None
    cursor.expect("WITHIN")
    cursor.expect("GROUP")
    cursor.expect_symbol("(")
    cursor.expect("ORDER")
    cursor.expect("BY")
    made = expression(cursor)
    if cursor.at("DESC"):
        cursor.not_yet("WITHIN GROUP in descending order", hint="PERCENTILE_CONT(1 - p) in ascending order")
    cursor.accept("ASC")
    cursor.expect_symbol(")")
    return made


def _filter(cursor: Cursor) -> ast.Expr | None:
    if not (cursor.at("FILTER") and cursor.ahead().is_symbol("(")):
        return None
    cursor.expect("FILTER")
    cursor.expect_symbol("(")
    cursor.expect("WHERE")
    made = expression(cursor)
    cursor.expect_symbol(")")
    return made


def _arguments(cursor: Cursor, function: Token) -> tuple[ast.Expr, ...]:
    """Parse the arguments, if any, and the closing parenthesis."""
    if cursor.accept_symbol(")"):
        return ()
    if (query := _subquery(cursor)) is not None:
        return (body.Subquery(query, **query.place),)
    cursor.accept("ALL")
    return _some_arguments(cursor, function)


def _some_arguments(cursor: Cursor, function: Token) -> tuple[ast.Expr, ...]:
    """Parse one or more arguments and the closing parenthesis; SUBSTRING separates them by FROM and FOR."""
    found = [expression(cursor)]
    while cursor.accept_symbol(",") or cursor.accept("FROM") or cursor.accept("FOR"):
        found.append(expression(cursor))
    if cursor.at("ORDER") and cursor.ahead().upper == "BY":
        cursor.not_yet("ORDER BY inside an aggregate", hint="leave it out: tuples are taken in the order of time")
    if cursor.at("AS") and function.upper in ("TRY_CAST", "SAFE_CAST"):
        hint = "CAST, which gives NULL if the value does not fit"
        cursor.error("M1090", f"{function.upper}: not available", token=function, hint=hint)
    cursor.expect_symbol(")")
    return tuple(found)
