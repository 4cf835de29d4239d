"""The recipe "Add a math function" in docs/extending is complete: a new function of integers and one of
floats need the entries that it lists and nothing else, and no other code names several functions."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

import gossamer as gs
from gossamer_ir.core import math_functions
from gossamer_ir.core.math_functions import FUNCTIONS, INSTRUCTIONS, MathFunction, instructions_with
from gossamer_ir.interpret import run
from gossamer_ir.interpret.expressions import math_values
from gossamer_ir.script import parse_module, print_module
from gossamer_ir.script.parser.expressions.calls import CALL_PARSERS
from gossamer_ir.transform.differentiation import derivatives
from gossamer_llvm.values import operations as instructions
from gossamer_lower.math import function_table
from gossamer_lower.math.calls import call_lowering
from tests.conventions.syntax_trees import tree_of
from tests.fuzzing.oracle import arithmetic
from tests.fuzzing.programs import expressions
from tests.recipes.recipe_pages import listed_files, named_together, path_of, sources

pytestmark = pytest.mark.unserialized

TITLE = "Add a math function"
PARITY, CUBE = "bit_parity", "cube"
"""New functions: of integers, whether the number of set bits is odd; and of floats, the third power."""


@pytest.fixture
def entries(monkeypatch):
    """The entries of the new functions, in the order of the recipe."""
    parity = MathFunction(PARITY, 1, "integers", counts_bits=True)
    for record in (parity, MathFunction(CUBE, 1)):
        monkeypatch.setitem(FUNCTIONS, record.name, record)
        # Made from `FUNCTIONS` at import, as the parsers of all other functions are.
        parser = CALL_PARSERS["exp"]
        monkeypatch.setitem(CALL_PARSERS, record.name, partial(parser.func, record.name))
    monkeypatch.setitem(
        math_values._BY_LANE, PARITY, lambda x: np.int64(math_values._popcount(x) & 1)
    )
    monkeypatch.setitem(math_values._NUMPY, CUBE, lambda x: x * x * x)
    lowered = {PARITY: lambda x: x.code.call("popcount", x) & 1, CUBE: lambda x: x * x * x}
    for name, value in lowered.items():
        monkeypatch.setitem(function_table._VALUES, name, value)
    # Made from the table at import.
    monkeypatch.setattr(call_lowering, "LOWERED", frozenset(function_table._VALUES))


TEXT = """
@T.prim_func
def applied(x: T.handle, y: T.handle, a: T.handle, b: T.handle, n: T.int64):
    T.stage("loop")
    X = T.match_buffer(x, (n,), "int32")
    Y = T.match_buffer(y, (n,), "int32")
    A = T.match_buffer(a, (n,), "float32")
    B = T.match_buffer(b, (n,), "float32")
    for i in T.serial(n):
        with T.block("b"):
            vi = T.axis.spatial(n, i)
            Y[vi] = T.bit_parity(X[vi])
            B[vi] = T.cube(A[vi])
"""


def arguments():
    x, a = np.arange(-20, 20, dtype=np.int32), np.linspace(-3, 3, 40, dtype=np.float32)
    return {"x": x, "y": np.zeros_like(x), "a": a, "b": np.zeros_like(a), "n": len(x)}


def test_new_functions_are_read_and_printed(entries):
    module = parse_module(TEXT)
    assert parse_module(print_module(module)) == module
    assert f"T.{PARITY}(" in print_module(module)


def test_new_functions_are_interpreted_and_compiled(entries):
    module, interpreted, called = parse_module(TEXT), arguments(), arguments()
    run(module, interpreted)
    gs.compile(module)(**called)
    odd = np.bitwise_count(called["x"].view(np.uint32)) % 2
    for result in (interpreted, called):
        np.testing.assert_array_equal(result["y"], odd)
        np.testing.assert_array_equal(result["b"], result["a"] * result["a"] * result["a"])


OF_FLOATS = {name for name, function in FUNCTIONS.items() if function.operands != "integers"}
TABLES = [
    (math_functions, FUNCTIONS, {*FUNCTIONS}),
    (math_values, math_values.MATH_FUNCTIONS, {*FUNCTIONS}),
    (
        function_table,
        function_table.LOWERED & {*FUNCTIONS},
        {*FUNCTIONS} - instructions_with(()),
    ),
    # A rounding, which is computed with integers.
    (instructions, {*instructions.CALL_INTRINSICS, "tf32"}, INSTRUCTIONS),
    (
        derivatives,
        {*derivatives.DERIVATIVES_OF_FUNCTIONS, *derivatives.FUNCTIONS_WITHOUT_DERIVATIVE},
        OF_FLOATS,
    ),
    (arithmetic, {*arithmetic._CALLED, *arithmetic._OF_BITS, "tf32"} & {*FUNCTIONS}, {*FUNCTIONS}),
    # Random programs have a square root besides, and other instructions by themselves.
    (expressions, {*expressions._FUNCTIONS} - {"sqrt"}, OF_FLOATS - INSTRUCTIONS),
]
"""The tables with an entry for each function, and the functions."""
PLACES = ("tools/**/*.py", "tests/fuzzing/**/*.py")


@pytest.mark.parametrize(("module", "table", "names"), TABLES)
def test_a_table_has_each_function_and_is_in_the_recipe(root, module, table, names):
    assert {*table} == names
    name = module.__name__
    path = f"{name.replace('.', '/')}.py" if name.startswith("tests.") else path_of(name)
    assert path in listed_files(root, TITLE)


def test_all_code_that_names_several_functions_is_in_the_recipe(root):
    paths = [*sources(root), *(path for place in PLACES for path in root.glob(place))]
    files = {
        path.relative_to(root).as_posix()
        for path in paths
        if [*named_together(tree_of(path.read_text()), FUNCTIONS)]
    }
    assert len(files) > 5
    assert files - listed_files(root, TITLE) == set()
