"""The source of a function or class, as far as its identity goes: what it does, not how it is registered."""

from __future__ import annotations

import ast
import inspect
import textwrap
from types import CodeType
from typing import Any

from millstream.algebra.identity import digest


def source_digest(code: Any, *declared: Any) -> str:
    """Return a digest of the source of a function or class, without its decorators, and of what was declared with it.

    Where Python keeps no source, as for code run by `exec`, it is the digest of the compiled code.
    """
    return digest((source_of(code), declared))


def source_of(code: Any) -> Any:
    """Return the source, or the parts of the compiled code."""
    try:
        written = inspect.getsource(code)
        methods = [inspect.getsource(each) for each in _methods(code)]
    except (OSError, TypeError):
        return _compiled(code)
    if any(method not in written for method in methods):  # Python has found another class of that name
        return "".join(methods), _compiled(code)
    text = textwrap.dedent(written)
    try:
        first = ast.parse(text).body[0]
    except SyntaxError:  # a lambda in the middle of an expression
        return text
    return "\n".join(text.splitlines()[first.lineno - 1 :])


def _methods(code: Any) -> list[Any]:
    """The functions of a class itself."""
    return [item for item in vars(code).values() if _is_code(item)] if isinstance(code, type) else []


def _compiled(code: Any) -> Any:
    if isinstance(code, type):
        own = {name: _compiled(item) for name, item in vars(code).items() if _is_code(item)}
        return [*own.items()]
    compiled = getattr(getattr(code, "__func__", code), "__code__", None)
    return repr(code) if compiled is None else _parts(compiled)


def _is_code(item: Any) -> bool:
    return inspect.isfunction(item) or isinstance(item, staticmethod | classmethod)


def _parts(compiled: CodeType) -> tuple[Any, ...]:
    constants = tuple(_parts(item) if isinstance(item, CodeType) else repr(item) for item in compiled.co_consts)
    return compiled.co_code, constants, compiled.co_names, compiled.co_varnames
