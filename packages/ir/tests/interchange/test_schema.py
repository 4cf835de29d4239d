"""The JSON schema in the repository agrees with the nodes; differences are classified by compatibility."""

import json

import pytest

from gossamer_ir.interchange.schema import SCHEMA_FILE, SchemaChange, changes, schema


def test_the_stored_schema_is_that_of_the_nodes():
    frozen = json.loads(SCHEMA_FILE.read_text(encoding="utf-8"))
    assert changes(frozen, schema()) == (), (
        "raise the version, run: python -m tools.generate schema"
    )


def test_every_reference_of_the_schema_resolves():
    document = schema()

    def references(shape):
        if isinstance(shape, dict):
            for key, value in shape.items():
                if key == "$ref":
                    yield value
                else:
                    yield from references(value)
        elif isinstance(shape, list):
            for item in shape:
                yield from references(item)

    names = {reference.removeprefix("#/$defs/") for reference in references(document)}
    assert names - document["$defs"].keys() == set()
    assert {"Expr", "Stmt", "Iteration", "FormatDescription"} <= names


def schema_of(**fields):
    required = [name for name, shape in fields.items() if "default" not in shape]
    return {"$defs": {"Node": {"type": "object", "properties": fields, "required": required}}}


TEXT, OPTIONAL = {"type": "string"}, {"type": "string", "default": "x"}
ENUM = {"enum": ["add", "mul"]}
WIDER = {"enum": ["add", "max", "mul"]}
CASES = {
    "nothing": (schema_of(a=TEXT), schema_of(a=TEXT), []),
    "a new node": ({"$defs": {}}, schema_of(), [("addition", "Node")]),
    "a node less": (schema_of(), {"$defs": {}}, [("breaking", "Node")]),
    "a new field with a default": (schema_of(), schema_of(a=OPTIONAL), [("addition", "Node.a")]),
    "a new field": (
        schema_of(),
        schema_of(a=TEXT),
        [("breaking", "Node.a")],
    ),
    "a field less": (schema_of(a=TEXT), schema_of(), [("breaking", "Node.a")]),
    "a default less": (schema_of(a=OPTIONAL), schema_of(a=TEXT), [("breaking", "Node.a")]),
    "a wider choice": (schema_of(a=ENUM), schema_of(a=WIDER), [("addition", "Node.a")]),
    "a narrower choice": (schema_of(a=WIDER), schema_of(a=ENUM), [("breaking", "Node.a")]),
    "a wider union": (
        schema_of(a=TEXT),
        schema_of(a={"anyOf": [{"type": "null"}, TEXT]}),
        [("addition", "Node.a")],
    ),
    "a wider list": (
        schema_of(a={"type": "array", "items": ENUM}),
        schema_of(a={"type": "array", "items": WIDER}),
        [("addition", "Node.a")],
    ),
    "a wider definition": (
        {"$defs": {"Op": {"anyOf": [{"$ref": "#/$defs/A"}]}}},
        {"$defs": {"Op": {"anyOf": [{"$ref": "#/$defs/A"}, {"$ref": "#/$defs/B"}]}}},
        [("addition", "Op")],
    ),
}


@pytest.mark.parametrize(("old", "new", "expected"), CASES.values(), ids=CASES)
def test_a_difference_is_classified(old, new, expected):
    assert changes(old, new) == tuple(SchemaChange(kind, where) for kind, where in expected)
