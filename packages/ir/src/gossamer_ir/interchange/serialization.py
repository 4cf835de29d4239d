"""Serialization of modules and records as canonical JSON: one encoding per value, and no code is executed.

A module is `{"gossamer_ir":[major,minor],"stage":...,"functions":[...],"entry":...}`, a record is
`{"gossamer_ir":[major,minor],"record":"Schedule","value":{...}}`. Text may come from untrusted sources:
size and nesting are checked before decoding, and an unknown version, node or field is an error.
"""

from __future__ import annotations

import re
from functools import cache
from itertools import accumulate
from typing import Any, TypeVar

import msgspec

from gossamer_ir.core.annotations import COMPOSABLE, without_annotation
from gossamer_ir.errors import ArgumentError, ParseError, Place
from gossamer_ir.interchange.envelopes import RECORDS, VERSION, AnyRecord, ModuleText, RecordText
from gossamer_ir.interchange.records import (
    Intrinsic,
    Schedule,
    ScheduleReport,
    ScheduleSpace,
    Signature,
    Stats,
    Target,
)
from gossamer_ir.nodes import FormatDescription, Module
from gossamer_support.typed_calls import typed

READABLE_VERSIONS = ((0, 1),)
"""The versions that can be read."""

MAX_BYTES = 64 * 2**20
"""The greatest length of a text that can be read."""

MAX_NESTING = 512
"""The greatest nesting of objects and arrays. A node takes at most two levels."""

R = TypeVar(
    "R",
    ScheduleSpace,
    ScheduleReport,
    Schedule,
    Target,
    Stats,
    Signature,
    Intrinsic,
    FormatDescription,
)


class _WireHeader(msgspec.Struct, frozen=True):
    gossamer_ir: tuple[int, int]


@typed
def dumps(module: Module) -> bytes:
    """Return the canonical JSON of a module.

    Raises `ParseError` (`wire.depth`, `wire.size`) if it exceeds the limits of `loads`.

    >>> dumps(Module("flat", (), "main"))
    b'{"gossamer_ir":[0,1],"stage":"flat","functions":[],"entry":"main"}'
    """
    return _encode(ModuleText(VERSION, module.stage, module.functions, module.entry))


@typed
def loads(data: bytes | str) -> Module:
    """Return the module that `dumps` has written; raises `ParseError` (`wire.*`) for any other text.

    The result is well formed but not verified.

    >>> loads('{"gossamer_ir":[0,1],"stage":"flat","functions":[],"entry":"main"}').entry
    'main'
    """
    text: ModuleText = _decode_versioned(data, ModuleText)
    functions = text.functions
    # Older releases left this mark on lowered modules, where it has no meaning.
    if text.stage != "coordinate":
        functions = tuple(without_annotation(function, COMPOSABLE) for function in functions)
    return Module(text.stage, functions, text.entry)


@typed
def dumps_record(record: AnyRecord) -> bytes:
    """Return the canonical JSON of a record; raises `ParseError` if it exceeds the limits of `loads_record`.

    >>> dumps_record(Target("generic-cpu"))
    b'{"gossamer_ir":[0,1],"record":"Target","value":{"backend":"generic-cpu"}}'
    """
    name = RECORDS[type(record)]
    return _encode({"gossamer_ir": VERSION, "record": name, "value": record})


@typed
def loads_record(data: bytes | str, kind: type[R]) -> R:
    """Return the record that `dumps_record` has written, which must have the type `kind`.

    Raises `ParseError` (`wire.*`) for any other text.

    >>> loads_record(dumps_record(Target("generic-cpu")), Target)
    Target(backend='generic-cpu', options=())
    """
    if kind not in RECORDS:
        names = ", ".join(record.__name__ for record in RECORDS)
        raise ArgumentError(
            "wire.record",
            f"'{kind.__name__}' is not a record.",
            hint=f"Expected one of {names}.",
        )
    text: RecordText = _decode_versioned(data, RecordText)
    if text.record != RECORDS[kind]:
        raise ParseError(
            "wire.field",
            f"The text holds a record '{text.record}'; expected '{RECORDS[kind]}'.",
            place=("record",),
        )
    record: R = _decode(bytes(text.value), kind)
    return record


def _encode(value: object) -> bytes:
    try:
        data = _encoder().encode(value)
    except RecursionError:
        raise _depth_error() from None
    _require_limits(data)
    return data


def _decode(data: bytes, kind: Any) -> Any:
    try:
        return _decoder(kind).decode(data)
    except msgspec.ValidationError as error:
        message, place = _split_message(str(error))
        raise ParseError(
            "wire.field",
            f"The encoded module does not match the schema: {message}.",
            place=place,
            hint="Expected only nodes and fields of schema.json.",
        ) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ParseError("wire.syntax", f"The text is not JSON: {error}.") from None
    except RecursionError:
        raise _depth_error() from None


@cache
def _encoder() -> msgspec.json.Encoder:
    return msgspec.json.Encoder(order="deterministic")


@cache
def _decoder(kind: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(kind)


def _decode_versioned(data: bytes | str, kind: Any) -> Any:
    """Decode a text with a header, which must have a readable version."""
    _require_size(len(data))
    text = _to_bytes(data)
    _require_limits(text)
    try:
        decoded = _decode(text, kind)
    except ParseError:
        # If a text has another version, the error is the version, not the first field that is new.
        _require_readable(_version_of(text))
        raise
    _require_readable(decoded.gossamer_ir)
    return decoded


def _version_of(text: bytes) -> tuple[int, int]:
    try:
        header: _WireHeader = _decode(text, _WireHeader)
    except ParseError as error:
        if error.code != "wire.field":
            raise
        raise ParseError(
            "wire.version",
            "The text has no header 'gossamer_ir' with a version.",
            hint='Expected an object that begins with "gossamer_ir": [major, minor].',
        ) from None
    return header.gossamer_ir


def _require_readable(version: tuple[int, int]) -> None:
    if version not in READABLE_VERSIONS:
        versions = ", ".join(f"{major}.{minor}" for major, minor in READABLE_VERSIONS)
        raise ParseError(
            "wire.version",
            f"Version '{version[0]}.{version[1]}' of the language is not known.",
            hint=f"This release reads {versions}.",
        )


def _to_bytes(data: bytes | str) -> bytes:
    if not isinstance(data, str):
        return data
    try:
        return data.encode()
    except UnicodeEncodeError as error:
        raise ParseError("wire.syntax", f"The text is not Unicode: {error.reason}.") from None


def _require_limits(data: bytes) -> None:
    _require_size(len(data))
    # Few brackets cannot nest deeply, and most texts are of single records, which have few.
    if data.count(b"[") + data.count(b"{") > MAX_NESTING and nesting_of(data) > MAX_NESTING:
        raise _depth_error()


def _require_size(size: int) -> None:
    if size > MAX_BYTES:
        raise ParseError("wire.size", f"The text has {size} bytes; expected at most {MAX_BYTES}.")


def _depth_error() -> ParseError:
    return ParseError("wire.depth", f"The text nests deeper than {MAX_NESTING} objects and arrays.")


_STRING = rb'"(?:[^"\\]++|\\.)*+"?'
_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_NO_BRACKETS_OR_QUOTES = bytes(set(_NO_BRACKETS) - set(b'"'))
_DEPTH_CHANGE = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}
_PIECE = _STRING + rb"|[\[{]++|[\]}]++"
_SINGLE_STEP_BYTES = 1 << 20
"""The greatest size in bytes of a text whose nesting is found in one step. This is faster, but needs a
multiple of the size in memory."""


def nesting_of(data: bytes) -> int:
    """Return the nesting depth of objects and arrays in a JSON text, found without decoding it; any greater
    number if it exceeds `MAX_NESTING`.

    >>> nesting_of(b'{"a[[[": [[1], []]}')
    3
    """
    if len(data) > _SINGLE_STEP_BYTES:
        return _nesting_of_large(data)
    brackets = _outside_strings(data).translate(None, _NO_BRACKETS)
    return max(accumulate(map(_DEPTH_CHANGE.__getitem__, brackets), initial=0))


def _outside_strings(data: bytes) -> bytes:
    if b"\\" in data:
        return re.sub(_STRING, b"", data, flags=re.DOTALL)
    # Without escapes, every second piece between quotes is a string. Few strings have brackets. Only
    # the quotes of the others are left, which are removed before the text is split.
    quoted = data.translate(None, _NO_BRACKETS_OR_QUOTES).replace(b'""', b"")
    return b"".join(quoted.split(b'"')[::2])


def _nesting_of_large(data: bytes) -> int:
    depth = deepest = 0
    for piece in re.finditer(_PIECE, data, re.DOTALL):
        first = data[piece.start()]
        if first in _DEPTH_CHANGE:
            depth += _DEPTH_CHANGE[first] * (piece.end() - piece.start())
            deepest = max(deepest, depth)
            if deepest > MAX_NESTING:
                break
    return deepest


def _split_message(text: str) -> tuple[str, Place]:
    # Compiled here, where texts are wrong: an import of this module is part of a first call.
    match = re.fullmatch(r"(.*) - at `\$(.*)`", text, re.DOTALL)
    if match is None:
        return text, ()
    items = re.findall(r"\.(\w+)|\[(\d+)\]", match[2])
    return match[1], tuple(name if name else int(number) for name, number in items)
