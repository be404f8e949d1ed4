"""Digests of values: identifiers that are the same in every process, release of Python and release of Millstream.

A digest is the hash of a value's canonical form: types by their registered names, fields by name, sets and dicts
sorted. Fields that have their default are left out, so that a later release can add fields, and so are those that are
not compared: equal values have equal digests.

>>> digest({"b": 2, "a": (1, None)}) == digest({"a": (1, None), "b": 2})
True
"""

from __future__ import annotations

import hashlib
from dataclasses import MISSING, Field
from types import NoneType
from typing import Any

import msgspec

from millstream.algebra.values import Kind, kind_of

_PLAIN = (NoneType, bool, float, str, bytes)
_pack = msgspec.msgpack.Encoder().encode


def digest(held: Any) -> str:
    """The digest of a value: 32 hexadecimal digits."""
    return hashlib.blake2b(_pack(_canonical(held)), digest_size=16).hexdigest()


def _canonical(held: Any) -> Any:
    kind = type(held)
    if kind in _PLAIN:
        return held
    if kind is int:
        return held if -(1 << 63) <= held < 1 << 63 else ["int", str(held)]
    if kind in (list, tuple):
        return [kind.__name__, *map(_canonical, held)]
    if kind in (set, frozenset):
        return ["set", *sorted(map(_canonical, held), key=_pack)]
    if kind is dict:
        return ["dict", *sorted(([_canonical(key), _canonical(item)] for key, item in held.items()), key=_pack)]
    if kind.__module__ == "datetime":
        return [kind.__name__, str(held)]
    return _canonical_kind(kind_of(kind), held)


def _canonical_kind(kind: Kind, held: Any) -> list[Any]:
    omitted = {part.name for part in kind.parts if not part.compare or _is_default(part, getattr(held, part.name))}
    taken = zip(kind.fields, kind.take(held), strict=True)
    return [kind.name, *([name, _canonical(item)] for name, item in sorted(taken) if name not in omitted)]


def _is_default(part: Field[Any], held: Any) -> bool:
    default = part.default if part.default_factory is MISSING else part.default_factory()
    return type(held) is type(default) and bool(held == default)
