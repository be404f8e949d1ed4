"""The binary encoding of values: the one format of logs, checkpoints, shared memory and messages between processes.

| value | written as |
|---|---|
| None, bool, int, float, str, bytes | themselves, in msgpack |
| list, tuple, dict, set, frozenset | a tag and the items |
| date, datetime, time, timedelta | a tag and ISO text, or days, seconds and microseconds |
| numpy arrays and scalars | a tag, the type, the shape and the bytes |
| Polars frames, series and types | a tag and an Arrow IPC stream |
| registered by `@value` | a number and the fields; a table at the beginning maps numbers to names |

The set of types is closed. Decoding creates no other types, and neither imports nor calls anything that is not
registered; only packages whose entry points provide sources are imported. A registered type and its fields are
identified by stable names. A missing field takes its default, so that a later release can add fields; an unknown field
is refused.

The data begins with a format number and a checksum. Other formats, pickles and damaged data raise InputError.

>>> decode(encode({"k": [(1, 2.5), {"a"}]}))
{'k': [(1, 2.5), {'a'}]}
"""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Callable, Iterable
from dataclasses import MISSING, Field, dataclass, field, fields, is_dataclass
from datetime import date, datetime, time, timedelta, timezone
from enum import Enum
from functools import cache, cached_property
from operator import attrgetter
from types import NoneType
from typing import Any, TypeVar, dataclass_transform

import msgspec
import numpy as np
import polars as pl

from millstream.errors import InputError

FORMAT = 7
"""The format of all stored data; increase it when older data would be misread. Format 1 was pickles; in format 2 sums
of integers had no high halves; in formats 3 to 5 not all parts of a checkpoint named each other; in format 6 windows
were two lengths."""
HINT = "Restore it from a copy of the checkpoint, or start with another checkpoint folder."
_OTHER_RELEASE = "Use the release of Millstream that wrote it, or start with another checkpoint folder."
_MAGIC = b"mill"
_HEAD = struct.Struct("<4sHI")
"""The magic bytes, the format, and the checksum of the rest."""

Class = TypeVar("Class", bound=type)
Record = TypeVar("Record")
Take = Callable[[Any], Iterable[Any]]


@cache
def fields_of(kind: type) -> tuple[str, ...]:
    """The names of the fields of a dataclass, none of another type; planners ask for them often."""
    return tuple(part.name for part in fields(kind)) if is_dataclass(kind) else ()


@dataclass(frozen=True)
class Kind:
    """A registered type: its stable name, the names of its fields unless it is a dataclass, and a function that takes
    their values from an object unless they are its attributes."""

    name: str
    type: type
    own_fields: tuple[str, ...]
    own_take: Take | None

    @cached_property
    def parts(self) -> tuple[Field[Any], ...]:
        """The fields of a dataclass; empty for any other type."""
        return tuple(part for part in fields(self.type) if part.init) if is_dataclass(self.type) else ()

    @cached_property
    def fields(self) -> tuple[str, ...]:
        return self.own_fields or tuple(part.name for part in self.parts)

    @cached_property
    def take(self) -> Take:
        names = self.fields
        if self.own_take is not None or len(names) > 1:
            return self.own_take or attrgetter(*names)
        return lambda held: [getattr(held, name) for name in names]

    def constructor(self, names: tuple[str, ...]) -> Callable[..., Any]:
        """The function that creates an object from the values of these fields."""
        known = self.fields
        if names == known and not any(part.kw_only for part in self.parts):
            return self.type
        if unknown := set(names) - set(known):
            raise ValueError(f"'{self.name}' has an unknown field '{min(unknown)}'")
        optional = {part.name for part in self.parts if (part.default, part.default_factory) != (MISSING, MISSING)}
        if missing := set(known) - set(names) - optional:
            raise ValueError(f"'{self.name}' lacks the field '{min(missing)}'")
        return lambda *held: self.type(**dict(zip(names, held, strict=True)))


_by_type: dict[type, Kind] = {}
_by_name: dict[str, Kind] = {}


def value(name: str, *, fields: tuple[str, ...] = (), take: Take | None = None) -> Callable[[Class], Class]:
    """Register a dataclass, a named tuple or an enum under a name that never changes. Any other class needs the names
    of its fields, in the order of its constructor's parameters, and `take` if they are not its attributes."""

    def register(type_: Class) -> Class:
        own_fields = fields
        if issubclass(type_, Enum):
            own_fields = ("value",)
        elif issubclass(type_, tuple):
            own_fields = type_._fields  # type: ignore[attr-defined]
        held = _by_name.get(name)
        if held is not None:  # a dataclass with slots is created twice
            if (held.type.__module__, held.type.__name__) != (type_.__module__, type_.__name__):
                raise TypeError(f"two types of values are called '{name}': {held.type} and {type_}")
            del _by_type[held.type]
        _by_name[name] = _by_type[type_] = Kind(name, type_, own_fields, take)
        return type_

    return register


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def record(name: str) -> Callable[[type[Record]], type[Record]]:
    """Create a frozen dataclass with slots and register it under a name that never changes."""
    return lambda type_: value(name)(dataclass(frozen=True, slots=True)(type_))


_importers: list[Callable[[], object]] = []


def where_unknown(importer: Callable[[], object]) -> None:
    """Call `importer`, which imports the types of other packages, before an unknown name is refused."""
    _importers.append(importer)


def _sought(name: str) -> Kind | None:
    for importer in _importers:
        importer()
    return _by_name.get(name)


def kind_of(type_: type) -> Kind:
    """The registration of a type; raise TypeError if it has none."""
    kind = _by_type.get(type_)
    if kind is None:
        raise TypeError(f"{type_.__module__}.{type_.__qualname__} is not a type of values")
    return kind


def encode(held: Any) -> bytes:
    """Encode a value; raise TypeError if its type is not supported."""
    try:
        body = _Writer().write(held)
    except OverflowError:
        body = _Writer(exact=True).write(held)
    return _HEAD.pack(_MAGIC, FORMAT, zlib.crc32(body)) + body


def decode(data: bytes | bytearray | memoryview, what: str = "a value") -> Any:
    """Decode a value; `what` names it in errors."""
    body = checked(data, what)
    try:
        table, held = _UNPACK(body)
        return _Reader(table).read(held)
    except (Exception, pl.exceptions.PanicException) as error:
        if isinstance(error, InputError):
            raise
        raise InputError("M5023", f"{what} cannot be read", detail=f"{error}.", hint=_OTHER_RELEASE) from error


def checked(data: bytes | bytearray | memoryview, what: str) -> memoryview:
    """The body of an encoded value; raise InputError if it is of another format, or damaged."""
    view = memoryview(data)
    if len(view) < _HEAD.size or view[:4] != _MAGIC:
        raise unversioned(what)
    _, found, checksum = _HEAD.unpack_from(view)
    check_format(found, what)
    body = view[_HEAD.size :]
    if zlib.crc32(body) != checksum:
        raise InputError("M5023", f"{what} is damaged", detail="Its checksum is wrong.", hint=HINT)
    return body


def check_format(found: object, what: str) -> None:
    """Raise InputError unless `found` is the current format; None: no format was found."""
    if found is None:
        raise unversioned(what)
    if found != FORMAT:
        message = f"{what} has format {found}"
        raise InputError(
            "M5020", message, detail=f"This release reads and writes format {FORMAT}.", hint=_OTHER_RELEASE
        )


def unversioned(what: str) -> InputError:
    detail = f"It has no header of format {FORMAT}: it is damaged, or no file of Millstream's."
    return InputError("M5022", f"{what} has an unknown format", detail=detail, hint=HINT)


# --- writing ----------------------------------------------------------------------------------------------------------

_PACK = msgspec.msgpack.Encoder().encode
_UNPACK = msgspec.msgpack.Decoder().decode
_PLAIN = frozenset({NoneType, bool, int, float, str, bytes})
_KEYS = frozenset({str, int})
(
    _BIG, _LIST, _LIST_OF, _TUPLE, _TUPLE_OF, _DICT, _DICT_OF, _PAIRS, _SET, _SET_OF, _FROZEN, _FROZEN_OF,
    _DATE, _DATETIME, _TIME, _TIMEDELTA, _ARRAY, _NUMBER, _FRAME, _HEIGHT, _SERIES, _TYPE,
) = range(22)  # fmt: skip
_REGISTERED = 32
"""The tag of the first entry of the table."""


class _Writer:
    """With `exact`, integers may have any size."""

    def __init__(self, *, exact: bool = False) -> None:
        self.plain, self.keys = (_PLAIN - {int}, frozenset({str})) if exact else (_PLAIN, _KEYS)
        self.table: list[tuple[str, ...]] = []
        self._known: dict[type, tuple[int, Take]] = {}

    def write(self, held: Any) -> bytes:
        return _PACK((self.table, self.pack(held)))  # packing fills the table

    def pack(self, held: Any) -> Any:
        type_ = type(held)
        if type_ in self.plain:
            return held
        known = self._known.get(type_)
        if known is None:
            if (writer := _WRITERS.get(type_)) is not None:
                return writer(self, held)
            if isinstance(held, np.generic):
                return [_NUMBER, held.dtype.str, held.tobytes()]
            if isinstance(held, pl.DataType):
                return [_TYPE, _stream(pl.DataFrame({"": pl.Series([], dtype=held)}))]
            known = self._enter(kind_of(type_))
        tag, take = known
        parts = take(held)
        return [tag, *parts] if self.plain.issuperset(map(type, parts)) else [tag, *map(self.pack, parts)]

    def _enter(self, kind: Kind) -> tuple[int, Take]:
        self._known[kind.type] = known = _REGISTERED + len(self.table), kind.take
        self.table.append((kind.name, *kind.fields))
        return known

    def items(self, plain: int, mixed: int, held: Iterable[Any]) -> list[Any]:
        """Pack items; plain ones as one list, which is not inspected when it is read."""
        return [plain, held] if self.plain.issuperset(map(type, held)) else [mixed, *map(self.pack, held)]


def _pack_int(_: _Writer, held: int) -> Any:
    if -(1 << 63) <= held < 1 << 63:
        return held
    return [_BIG, held.to_bytes(held.bit_length() // 8 + 1, "little", signed=True)]


def _pack_dict(writer: _Writer, held: dict[Any, Any]) -> list[Any]:
    if not writer.keys.issuperset(map(type, held)):
        return [_PAIRS, *(writer.pack(item) for pair in held.items() for item in pair)]
    if writer.plain.issuperset(map(type, held.values())):
        return [_DICT, held]
    return [_DICT_OF, {key: writer.pack(item) for key, item in held.items()}]


def _pack_time(tag: int, held: datetime | time) -> list[Any]:
    if not isinstance(held.tzinfo, timezone | NoneType):
        raise TypeError(f"a time in the zone {held.tzinfo} is not a value")
    return [tag, held.isoformat(), held.fold]


def _pack_array(_: _Writer, held: np.ndarray[Any, Any]) -> list[Any]:
    if held.dtype.hasobject or held.dtype.names is not None:
        raise TypeError(f"an array of {held.dtype} is not a value")
    return [_ARRAY, held.dtype.str, held.shape, held.tobytes()]


def _pack_frame(_: _Writer, held: pl.DataFrame) -> list[Any]:
    return [_FRAME, _stream(held)] if held.width else [_HEIGHT, held.height]


def _stream(frame: pl.DataFrame) -> bytes:
    if pl.Object in frame.dtypes:
        raise TypeError("a column of Python objects is not a value")
    buffer = io.BytesIO()
    frame.write_ipc_stream(buffer, compression="uncompressed")
    return buffer.getvalue()


_WRITERS: dict[type, Callable[[_Writer, Any], Any]] = {
    int: _pack_int,
    list: lambda writer, held: writer.items(_LIST, _LIST_OF, held),
    tuple: lambda writer, held: writer.items(_TUPLE, _TUPLE_OF, held),
    set: lambda writer, held: writer.items(_SET, _SET_OF, held),
    frozenset: lambda writer, held: writer.items(_FROZEN, _FROZEN_OF, held),
    dict: _pack_dict,
    date: lambda _, held: [_DATE, held.isoformat()],
    datetime: lambda _, held: _pack_time(_DATETIME, held),
    time: lambda _, held: _pack_time(_TIME, held),
    timedelta: lambda _, held: [_TIMEDELTA, held.days, held.seconds, held.microseconds],
    np.ndarray: _pack_array,
    pl.DataFrame: _pack_frame,
    pl.Series: lambda _, held: [_SERIES, held.name, _stream(held.alias("").to_frame())],
}


# --- reading ----------------------------------------------------------------------------------------------------------


class _Reader:
    def __init__(self, table: list[list[str]]) -> None:
        self._constructors: dict[int, Callable[..., Any]] = {}
        for tag, (name, *names) in enumerate(table, start=_REGISTERED):
            kind = _by_name.get(name) or _sought(name)
            if kind is None:
                raise ValueError(f"unknown type of values '{name}'")
            self._constructors[tag] = kind.constructor(tuple(names))

    def read(self, held: Any) -> Any:
        if type(held) is not list:
            if type(held) not in _PLAIN:
                raise ValueError("an item without a tag")
            return held
        construct = self._constructors.get(held[0])
        if construct is None:
            return _READERS[held[0]](self, *held[1:])
        return construct(*self.all(held[1:]))

    def all(self, held: Iterable[Any]) -> list[Any]:
        return [item if type(item) is not list else self.read(item) for item in held]


def _frame(data: bytes) -> pl.DataFrame:
    return pl.read_ipc_stream(io.BytesIO(data))


_READERS: dict[int, Callable[..., Any]] = {
    _BIG: lambda _, data: int.from_bytes(data, "little", signed=True),
    _LIST: lambda _, held: list(held),
    _LIST_OF: lambda reader, *held: reader.all(held),
    _TUPLE: lambda _, held: tuple(held),
    _TUPLE_OF: lambda reader, *held: tuple(reader.all(held)),
    _SET: lambda _, held: set(held),
    _SET_OF: lambda reader, *held: set(reader.all(held)),
    _FROZEN: lambda _, held: frozenset(held),
    _FROZEN_OF: lambda reader, *held: frozenset(reader.all(held)),
    _DICT: lambda _, held: dict(held),
    _DICT_OF: lambda reader, held: {key: reader.read(item) for key, item in held.items()},
    _PAIRS: lambda reader, *held: dict(zip(reader.all(held[::2]), reader.all(held[1::2]), strict=True)),
    _DATE: lambda _, text: date.fromisoformat(text),
    _DATETIME: lambda _, text, fold: datetime.fromisoformat(text).replace(fold=fold),
    _TIME: lambda _, text, fold: time.fromisoformat(text).replace(fold=fold),
    _TIMEDELTA: lambda _, *held: timedelta(*held),
    _ARRAY: lambda _, type_, shape, data: np.frombuffer(data, dtype=np.dtype(type_)).reshape(shape).copy(),
    _NUMBER: lambda _, type_, data: np.frombuffer(data, dtype=np.dtype(type_))[0],
    _FRAME: lambda _, data: _frame(data),
    _HEIGHT: lambda _, height: pl.DataFrame(height=height),
    _SERIES: lambda _, name, data: _frame(data).to_series().alias(name),
    _TYPE: lambda _, data: _frame(data).dtypes[0],
}
