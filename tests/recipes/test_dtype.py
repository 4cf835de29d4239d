"""The recipe "Add a dtype" in docs/extending is complete: a new dtype needs the entries that it lists and
nothing else, and no other code names a dtype that is computed in another one."""

from __future__ import annotations

import ast

import numpy as np
import pytest

import gossamer as gs
from gossamer.targets.resolve_target import registry
from gossamer_generic_cpu.backend import GenericCpu
from gossamer_ir.core import encodings
from gossamer_ir.core.bfloat16 import decode_bfloat16, encode_bfloat16
from gossamer_ir.core.dtypes import NUMBERS, SCALARS, DType, ScalarType
from gossamer_ir.interpret import run
from gossamer_ir.script import parse_module, print_module
from gossamer_ir.script.parser.expressions.calls import CALL_PARSERS
from gossamer_llvm.values import half_precision
from tests.conventions.syntax_trees import nodes_of, tree_of
from tests.fuzzing.oracle import arithmetic
from tests.fuzzing.programs import buffers
from tests.recipes.recipe_pages import listed_files

pytestmark = pytest.mark.unserialized

NARROW = tuple(name for name in SCALARS if DType(name).computed_in != name)
"""The dtypes that are computed in another one."""
TRUNCATED = "coarse16"
"""A new dtype: the upper half of a float32, toward zero, where bfloat16 is rounded to the nearest."""
PLACES = ("packages/*/src", "plugins/*/src", "tools", "tests/fuzzing")


def truncated(value):
    bits = np.asarray(value, np.float32).view(np.uint32) & np.uint32(0xFFFF0000)
    return np.asarray(bits, np.uint32).view(np.float32)[()]


def truncated_bits(bits, _single):
    return bits.op("lshr", 16)


@pytest.fixture
def entries(monkeypatch):
    """The entries of the new dtype, in the order of the recipe."""
    scalar = ScalarType("float", 16, "uint16", 8, float.fromhex("0x1.fep127"), "float32")
    monkeypatch.setitem(SCALARS, TRUNCATED, scalar)
    encoding = encodings.Encoding(truncated, decode_bfloat16, encode_bfloat16)
    monkeypatch.setitem(encodings.ENCODINGS, TRUNCATED, encoding)
    widened = half_precision.HALF_CONVERSIONS["bfloat16"].widened
    conversion = half_precision.HalfConversion(widened, truncated_bits)
    monkeypatch.setitem(half_precision.HALF_CONVERSIONS, TRUNCATED, conversion)
    # The capabilities are made from `SCALARS` at import, and the registry keeps those of a loaded backend.
    words = GenericCpu.capabilities | {f"dtype.{TRUNCATED}"}
    monkeypatch.setattr(GenericCpu, "capabilities", words)
    monkeypatch.setattr(registry.backend(GenericCpu.name), "capabilities", words)
    # Made from `SCALARS` at import, as the parsers of all other dtypes are.
    cast = CALL_PARSERS["bfloat16"]
    monkeypatch.setitem(CALL_PARSERS, TRUNCATED, type(cast)(cast.func, TRUNCATED))


TEXT = """
@T.prim_func
def scaled(x: T.handle, y: T.handle, z: T.handle, n: T.int64):
    T.stage("loop")
    X = T.match_buffer(x, (n,), "coarse16")
    Y = T.match_buffer(y, (n,), "coarse16")
    Z = T.match_buffer(z, (n,), "float64")
    for i in T.serial(n):
        with T.block("b"):
            vi = T.axis.spatial(n, i)
            Y[vi] = -T.exp(X[vi] * T.coarse16(3.140625)) + T.coarse16(vi)
    for i in T.serial(n):
        with T.block("c"):
            vi = T.axis.spatial(n, i)
            Z[vi] = T.max(T.float64(Y[vi]), T.float64(T.min_value("coarse16")))
"""
VALUES = np.array([0.0, -0.0, 1.0, -1.5, 0.4375, 2.0, 40.0, -40.0, np.inf, -np.inf] * 3, np.float32)


def arguments():
    stored = encode_bfloat16(VALUES)
    return {"x": stored, "y": np.zeros_like(stored), "z": np.zeros(len(VALUES)), "n": len(VALUES)}


def expected():
    """The result: each operation in float32, with its lower half cut off."""
    with np.errstate(over="ignore"):
        powers = truncated(np.exp(truncated(VALUES * np.float32(3.140625)).astype(np.float64)))
    return truncated(-powers + truncated(np.arange(len(VALUES))))


def test_a_new_dtype_is_read_and_printed(entries):
    module = parse_module(TEXT)
    assert parse_module(print_module(module)) == module
    assert f"T.{TRUNCATED}(" in print_module(module)
    assert DType.parse(f"{TRUNCATED}x8") == DType(TRUNCATED, 8)


@pytest.mark.parametrize("target", ["generic-cpu", "generic-cpu:cpu=x86-64-v3"])
def test_a_new_dtype_is_interpreted_and_compiled(entries, target):
    module, interpreted, called = parse_module(TEXT), arguments(), arguments()
    run(module, interpreted)
    np.testing.assert_array_equal(decode_bfloat16(interpreted["y"]), expected())
    np.testing.assert_array_equal(
        interpreted["z"], np.maximum(expected(), -SCALARS[TRUNCATED].largest)
    )
    gs.compile(module, target=target)(**called)
    np.testing.assert_array_equal(called["y"], interpreted["y"])
    np.testing.assert_array_equal(called["z"], interpreted["z"])


def test_each_dtype_that_numpy_lacks_has_an_encoding():
    lacking = {name for name, item in SCALARS.items() if item.stored_as not in (None, name)}
    assert encodings.ENCODINGS.keys() == lacking
    for name, encoding in encodings.ENCODINGS.items():
        stored = encoding.encode(encoding.round(np.float64(1.5)))
        assert stored.dtype == SCALARS[name].stored_as
        assert stored.itemsize * 8 == SCALARS[name].bits
        assert encoding.decode(stored) == 1.5


def test_each_dtype_that_is_computed_in_float32_has_conversions():
    assert half_precision.HALF_CONVERSIONS.keys() == {*NARROW}
    assert {DType(name).computed_in for name in NARROW} == {"float32"}


def test_each_dtype_of_numbers_is_compiled_and_drawn():
    """Random programs use all of them, and so do kernels."""
    assert {f"dtype.{name}" for name in NUMBERS} <= GenericCpu.capabilities
    assert {*arithmetic.FLOATS, *arithmetic.INTEGERS} == {*NUMBERS}
    assert {*buffers.DTYPES} == {*NUMBERS, "bool"}
    floats = {name: SCALARS[name].significant_bits for name in arithmetic.FLOATS}
    assert floats == arithmetic.SIGNIFICANT


def test_all_code_that_names_a_narrow_dtype_is_in_the_recipe(root):
    listed = listed_files(root, "Add a dtype")
    by_path = {
        path.relative_to(root).as_posix()
        for place in PLACES
        for folder in root.glob(place)
        for path in folder.rglob("*.py")
        if names_a_narrow_dtype(tree_of(path.read_text()))
    }
    encodings_files = {
        f"packages/ir/src/gossamer_ir/core/{name}.py" for name in encodings.ENCODINGS
    }
    assert by_path - listed - encodings_files == set()
    tables = ("core/dtypes.py", "core/encodings.py")
    assert {f"packages/ir/src/gossamer_ir/{name}" for name in tables} <= by_path


def names_a_narrow_dtype(tree):
    """Whether a constant that is not a docstring has the name of such a dtype as a word, or a name has it as
    a part."""
    documents = {id(node.value) for node in nodes_of(tree, ast.Expr)}
    texts = (node for node in nodes_of(tree, ast.Constant) if isinstance(node.value, str))
    if any(id(node) not in documents and {*node.value.split()} & {*NARROW} for node in texts):
        return True
    names = {node.id for node in nodes_of(tree, ast.Name)}
    names |= {node.attr for node in nodes_of(tree, ast.Attribute)}
    return any(narrow in name for name in names for narrow in NARROW)


@pytest.mark.parametrize(
    ("text", "is_found"),
    [
        ('if dtype == "bfloat16":\n    pass', True),
        ('WORDS = "int8 float16".split()', True),
        ("round_bfloat16(1)", True),
        ("np.float16(1)", True),
        ('"""About bfloat16."""', False),
        ("dtype = 'float32'", False),
    ],
)
def test_code_that_names_a_narrow_dtype_is_found(text, is_found):
    assert names_a_narrow_dtype(ast.parse(text)) == is_found
