"""The JSON schema of serialized text, kept in `schema.json`, and the classification of its changes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec

from gossamer_ir.interchange.envelopes import RECORDS, VERSION, ModuleText
from gossamer_ir.nodes import AnyBuffer, Axis, Expr, Fact, IterationAxis, Stmt

SCHEMA_FILE = Path(__file__).with_name("schema.json")


_UNIONS: dict[str, Any] = {
    "Expr": Expr,
    "Stmt": Stmt,
    "IterationAxis": IterationAxis,
    "Axis": Axis,
    "Fact": Fact,
    "AnyBuffer": AnyBuffer,
}


def schema() -> dict[str, Any]:
    """Return the JSON Schema of all serialized text: `Module` and the records."""
    texts = {"Module": ModuleText} | {name: kind for kind, name in RECORDS.items()}
    shapes, components = msgspec.json.schema_components(
        (*texts.values(), *_UNIONS.values()), ref_template="#/$defs/{name}"
    )
    unions = dict(zip(_UNIONS, shapes[len(texts) :], strict=True))
    named = {name: _shorten(shape, {}) for name, shape in unions.items()}
    definitions = {name: _shorten(shape, unions) for name, shape in components.items()}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "gossamer_ir",
        "version": list(VERSION),
        "texts": dict(zip(texts, shapes[: len(texts)], strict=True)),
        "$defs": dict(sorted((named | definitions).items())),
    }


def _shorten(shape: Any, unions: Mapping[str, Any]) -> Any:
    """Return the shape with unions replaced by references, without descriptions, and with sorted
    alternatives.

    Inlined unions would repeat at every field; docstrings and the order of alternatives do not affect
    what can be read.
    """
    for name, union in unions.items():
        if shape == union:
            return {"$ref": f"#/$defs/{name}"}
    if isinstance(shape, (list, tuple)):
        return [_shorten(item, unions) for item in shape]
    if not isinstance(shape, dict):
        return shape
    short = {key: _shorten(item, unions) for key, item in shape.items() if key != "description"}
    if "anyOf" in short:
        short["anyOf"].sort(key=_encode)
    return short


def _encode(shape: Any) -> bytes:
    return msgspec.json.encode(shape, order="deterministic")


class SchemaChange(msgspec.Struct, frozen=True):
    """One difference between two schemas. After an `addition` old text can still be read and means the same
    (increase the minor version); after a `breaking` change it cannot (increase the major version)."""

    kind: Literal["addition", "breaking"]
    where: str


def changes(old: Mapping[str, Any], new: Mapping[str, Any]) -> tuple[SchemaChange, ...]:
    """Return the differences between two results of `schema`, classified.

    >>> changes({"$defs": {}}, {"$defs": {"Barrier": {}}})
    (SchemaChange(kind='addition', where='Barrier'),)
    """
    before, after = old["$defs"], new["$defs"]
    differences = [SchemaChange("breaking", name) for name in before if name not in after]
    differences += [SchemaChange("addition", name) for name in after if name not in before]
    for name in before:
        if name in after:
            differences += _object_changes(name, before[name], after[name])
            differences += _shape_changes(
                name, _without_fields(before[name]), _without_fields(after[name])
            )
    return tuple(differences)


def _object_changes(
    name: str, old: Mapping[str, Any], new: Mapping[str, Any]
) -> Iterator[SchemaChange]:
    before, after = old.get("properties", {}), new.get("properties", {})
    required = set(new.get("required", ())) - set(old.get("required", ()))
    for field in sorted(before.keys() | after.keys()):
        if field not in before:
            kind: Literal["addition", "breaking"] = "breaking" if field in required else "addition"
            yield SchemaChange(kind, f"{name}.{field}")
        elif field not in after:
            yield SchemaChange("breaking", f"{name}.{field}")
        else:
            yield from _shape_changes(f"{name}.{field}", before[field], after[field])


def _without_fields(shape: Mapping[str, Any]) -> dict[str, Any]:
    return {key: item for key, item in shape.items() if key not in ("properties", "required")}


def _shape_changes(where: str, old: Any, new: Any) -> Iterator[SchemaChange]:
    if old != new:
        is_wider = _choices(old) < _choices(new)
        yield SchemaChange("addition" if is_wider else "breaking", where)


def _choices(shape: Any) -> frozenset[str]:
    """Return the alternatives of a field, as a set of texts: a field that accepts more has a larger set."""
    if not isinstance(shape, Mapping):
        return frozenset({str(shape)})
    if "enum" in shape:
        return frozenset(f"enum {value}" for value in shape["enum"])
    if "anyOf" in shape:
        return frozenset().union(*map(_choices, shape["anyOf"]))
    if shape.get("type") == "array" and isinstance(shape.get("items"), Mapping):
        return frozenset(f"array {choice}" for choice in _choices(shape["items"]))
    return frozenset({_encode(shape).decode()})
