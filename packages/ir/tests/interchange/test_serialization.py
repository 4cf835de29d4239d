"""Encoding and decoding of modules: canonical, strict, with limits that are checked before decoding."""

import contextlib
import re
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

from gossamer_ir import nodes
from gossamer_ir.errors import ParseError
from gossamer_ir.interchange import serialization
from gossamer_ir.nodes import Const, For, Function, Let, Module, Unary, Var
from gossamer_ir.traversal.walk import walk

SAMPLES = sorted((Path(__file__).parents[1] / "samples").glob("*.json"))
MODULES = [path for path in SAMPLES if "-record-" not in path.name]
ADDED = re.compile(rb',"(reducers":\[\]|nontemporal":false)')
"""Fields of functions and of stores that were added later, with their defaults."""

HEADER = '"gossamer_ir":[0,1]'


def module_of(*body, stage="loop"):
    return Module(stage, (Function("f", (), body),), "f")


def nested(depth):
    value = Const("int64", "1")
    for _ in range(depth):
        value = Unary("neg", value)
    return module_of(Let(Var("x", "int64"), value))


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.name)
def test_a_frozen_sample_of_every_version_stays_loadable_and_canonical(path):
    module = serialization.loads(path.read_bytes())
    assert module.stage in path.name or "every" in path.name
    written = serialization.dumps(module) + b"\n"
    assert ADDED.sub(b"", written) == ADDED.sub(b"", path.read_bytes())
    assert serialization.loads(serialization.dumps(module).decode()) == module


def test_the_samples_hold_every_kind_of_node():
    present = {
        type(node).__name__
        for path in MODULES
        for node in walk(serialization.loads(path.read_bytes()))
    }
    kinds = {
        name
        for name, kind in vars(nodes).items()
        if isinstance(kind, type) and issubclass(kind, nodes.Node) and kind is not nodes.Node
    }
    assert kinds - present == {"FormatDescription", "IndexMap"}


@pytest.mark.parametrize("text", ["-0.0", "0.0", "nan", "inf", "-inf", "1e-45", "3.4028235e+38"])
def test_special_values_survive(text):
    module = module_of(Let(Var("x", "float32"), Const("float32", text)))
    assert serialization.loads(serialization.dumps(module)).functions[0].body[0].value.text == text


def test_equal_modules_have_equal_bytes_even_if_a_string_is_another_object():
    kind = "".join(["ser", "ial"])
    zero = Const("int64", "0")
    plain, built = For("i", zero, zero, ()), For("i", zero, zero, (), kind=kind)
    assert plain == built
    assert serialization.dumps(module_of(plain)) == serialization.dumps(module_of(built))


def test_annotations_keep_the_types_of_their_values():
    annotations = (("flag", True), ("count", 1), ("big", 2**70), ("text", 'quote " \\ [ é'))
    module = Module("loop", (Function("f", (), (), annotations=annotations),), "f")
    loaded = serialization.loads(serialization.dumps(module)).functions[0].annotations
    assert loaded == annotations
    assert [type(value) for _, value in loaded] == [bool, int, int, str]


REFUSED = {
    "empty text": ("", "wire.syntax"),
    "not JSON": ("nonsense", "wire.syntax"),
    "cut off": ("{" + HEADER + ',"stage":"flat"', "wire.syntax"),
    "a string without end": ('{"gossamer_ir', "wire.syntax"),
    "trailing garbage": (
        "{" + HEADER + ',"stage":"flat","functions":[],"entry":"f"} x',
        "wire.syntax",
    ),
    "not UTF-8": (b'{"gossamer_ir":[0,1],"stage":"\xff"}', "wire.syntax"),
    "a lone surrogate": ('{"\ud800":1}', "wire.syntax"),
    "no header": ('{"stage":"flat","functions":[],"entry":"f"}', "wire.version"),
    "no object": ("[]", "wire.version"),
    "a version as text": ('{"gossamer_ir":"0.1"}', "wire.version"),
    "a later version": ('{"gossamer_ir":[0,2],"stage":"flat","new":1}', "wire.version"),
    "a later major version": ('{"gossamer_ir":[1,0]}', "wire.version"),
    "an unknown stage": ("{" + HEADER + ',"stage":"fog","functions":[],"entry":"f"}', "wire.field"),
    "an unknown field": (
        "{" + HEADER + ',"stage":"flat","functions":[],"entry":"f","x":1}',
        "wire.field",
    ),
    "a missing field": ("{" + HEADER + ',"stage":"flat","functions":[]}', "wire.field"),
    "too deep": ("[" * 100_000, "wire.depth"),
    "too deep after a string": ('{"a\\"[":' + '{"a":' * 600, "wire.depth"),
}


@pytest.mark.parametrize(("text", "code"), REFUSED.values(), ids=REFUSED)
def test_what_is_not_a_module_is_refused_by_code(text, code):
    with pytest.raises(ParseError) as caught:
        serialization.loads(text)
    assert caught.value.code == code


BODIES = {
    "an unknown node": ('{"type":"Teleport"}', ("functions", 0, "body", 0, "type")),
    "an unknown field": ('{"type":"VScale","x":1}', ("functions", 0, "body", 0, "type")),
    "an unknown operator": (
        '{"type":"If","condition":{"type":"Unary","op":"sqrt"},"then_body":[]}',
        ("functions", 0, "body", 0, "condition", "op"),
    ),
    "a number for a name": (
        '{"type":"Store","buffer":1,"indices":[],"value":{"type":"VScale"}}',
        ("functions", 0, "body", 0, "buffer"),
    ),
}


@pytest.mark.parametrize(("body", "place"), BODIES.values(), ids=BODIES)
def test_a_field_error_has_its_place(body, place):
    function = '{"type":"Function","name":"f","params":[],"body":[' + body + "]}"
    with pytest.raises(ParseError) as caught:
        serialization.loads(
            "{" + HEADER + ',"stage":"flat","functions":[' + function + '],"entry":"f"}'
        )
    assert caught.value.code == "wire.field"
    assert caught.value.diagnostics[0].place == place


def test_a_long_text_is_refused_before_it_is_decoded(monkeypatch):
    monkeypatch.setattr(serialization, "MAX_BYTES", 1000)
    with pytest.raises(ParseError, match=r"wire\.size"):
        serialization.loads("[" * 1001)
    with pytest.raises(ParseError, match=r"wire\.size"):
        serialization.loads("é" * 501)


def test_nesting_of_200_nodes_passes_and_more_is_refused_by_both_directions():
    module = nested(200)
    assert serialization.loads(serialization.dumps(module)) == module
    for depth in (600, 5000):
        with pytest.raises(ParseError, match=r"wire\.depth"):
            serialization.dumps(nested(depth))


def test_hostile_strings_are_scanned_in_linear_time():
    text = b'"' + b'\\"' * 500_000
    assert serialization.nesting_of(text) == 0
    assert serialization.nesting_of(b'{"a":"]]]","b":[[]]}') == 3


def depth_by_characters(text):
    depth = deepest = 0
    is_string = is_escaped = False
    for character in text:
        if is_string:
            is_string = is_escaped or character != '"'
            is_escaped = character == "\\" and not is_escaped
        else:
            is_string = character == '"'
            depth += (character in "[{") - (character in "]}")
            deepest = max(deepest, depth)
    return deepest


@pytest.mark.parametrize("largest", [0, 1000], ids=["in pieces", "in one step"])
def test_the_nesting_of_any_characters_is_that_of_a_scan_by_characters(monkeypatch, largest):
    monkeypatch.setattr(serialization, "_SINGLE_STEP_BYTES", largest)
    random = Random(0)
    for alphabet in ('["]', '[]{}"x', '[]"\\', '[{"\\x'):
        for length in range(100):
            text = "".join(random.choices(alphabet, k=length))
            assert serialization.nesting_of(text.encode()) == depth_by_characters(text), text


def test_no_recursion_error_leaks_from_a_deep_stack():
    def descend(depth):
        return serialization.loads(data) if depth == 0 else descend(depth - 1)

    data = serialization.dumps(nested(200))
    with contextlib.suppress(ParseError):  # from Python 3.12 on C code has a limit of its own
        assert descend(sys.getrecursionlimit() - 200) == nested(200)


def test_bytes_are_the_same_in_another_process():
    path = MODULES[0]
    code = (
        "import pathlib, sys; from gossamer_ir.interchange import serialization; "
        "data = pathlib.Path(sys.argv[1]).read_bytes(); "
        "sys.stdout.buffer.write(serialization.dumps(serialization.loads(data)) + b'\\n')"
    )
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, check=True)
    assert ADDED.sub(b"", done.stdout) == ADDED.sub(b"", path.read_bytes())


def test_a_damaged_text_is_loaded_or_refused_and_nothing_else():
    data = MODULES[0].read_bytes()
    for cut in range(0, len(data) - 2, 41):
        for byte in (b"?", b'"', b"\xff", b"9", b"]"):
            with contextlib.suppress(ParseError):
                assert isinstance(serialization.loads(data[:cut] + byte + data[cut + 1 :]), Module)


def test_every_code_in_the_source_is_pinned_by_a_test():
    source = Path(serialization.__file__).read_text()
    tests = "".join(path.read_text() for path in Path(__file__).parent.glob("test_*.py"))
    pinned = set(re.findall(r"wire\\?\.([a-z]+)\"", tests))
    assert set(re.findall(r'"wire\.([a-z]+)"', source)) == pinned
