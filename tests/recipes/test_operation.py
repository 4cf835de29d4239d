"""The recipe "Add an operation" in docs/extending is complete: each table of all operations is in it, and has
an entry for each. All other code that names several is right for a new one."""

from __future__ import annotations

import ast
from typing import get_args

import numpy as np
import pytest

from gossamer_ir.core import integers, operations
from gossamer_ir.interpret.expressions import operators
from gossamer_ir.nodes import AtomicOp, BinaryOp, CompareOp, ReduceOp, UnaryOp
from gossamer_ir.script.parser.expressions import calls, expression_parsers
from gossamer_ir.script.printer import expressions as printer
from gossamer_llvm.values import operations as instructions
from gossamer_lower.math import function_table
from gossamer_testkit.corpus.oracles import elementwise_results, program_results
from tests.conventions.syntax_trees import tree_of
from tests.fuzzing.lowered import evaluator
from tests.fuzzing.oracle import arithmetic
from tests.recipes.other_types import wrong_comments
from tests.recipes.recipe_pages import listed_files, named_together, path_of

pytestmark = pytest.mark.unserialized

BINARY, UNARY, REDUCERS = ({*get_args(literal)} for literal in (BinaryOp, UnaryOp, ReduceOp))
OPERATIONS = BINARY | UNARY
DIVISIONS = operations.DIVISIONS
_DEFINED_FOR = {
    "any": {"int", "float", "bool"},
    "numbers": {"int", "float"},
    "floats": {"float"},
    "integers": {"int"},
    "bools": {"bool"},
    "bits": {"int", "bool"},
}
"""The kinds of dtypes for which operations of these operands are defined."""


NAMED_ALIKE = (
    "packages/torch/src/gossamer_torch/",
    "packages/formats/src/gossamer_formats/arithmetic/",
)
"""The folders whose reductions and aggregations of users have names of operations, but are none."""


def operations_of(kind):
    """The operations of two operands that are defined for a kind of dtypes."""
    return {op for op, of in operations.BINARY_KINDS.items() if kind in _DEFINED_FOR[of.operands]}


CALLED = {*calls.CALL_PARSERS} & BINARY
"""The operations that may be written as calls."""
TABLES = [
    (operations, operations.BINARY_KINDS, BINARY),
    (operators, operators.BINARY, BINARY),
    (printer, {*printer._INFIX, *CALLED}, BINARY),
    (expression_parsers, {*expression_parsers.BINARY_OPS.values(), *CALLED, "and", "or"}, BINARY),
    (integers, {*integers.UNBOUNDED, "div", "and", "or"}, BINARY),
    (function_table, function_table.LOWERED & BINARY, DIVISIONS),
    (operations, operations.UNARY_OPERANDS, UNARY),
    (operators, operators.UNARY, UNARY),
    (printer, printer._UNARY, UNARY),
    (expression_parsers, {*expression_parsers.UNARY_OPS.values()}, UNARY),
    (instructions, instructions.UNARY_INSTRUCTIONS, UNARY),
    (instructions, instructions.BINARY_EMITTERS["int"], operations_of("int")),
    (instructions, instructions.BINARY_EMITTERS["uint"], operations_of("int")),
    (instructions, instructions.BINARY_EMITTERS["float"], operations_of("float") - DIVISIONS),
    (instructions, instructions.BINARY_EMITTERS["bool"], operations_of("bool")),
    (operations, operations.REDUCERS, REDUCERS),
    (program_results, program_results._REDUCERS, REDUCERS),
]
"""The tables with an entry for each operation, and the operations. Items that are added to a table are
written in another way, or have no integers."""
ORACLES = [
    (elementwise_results.ROWS, OPERATIONS | {*get_args(CompareOp)}),
    ({**arithmetic._BINARY, **arithmetic._INTEGER, **arithmetic._UNARY}, OPERATIONS),
    ({*evaluator.OPERATORS, "div", "shl", "shr"}, BINARY),
]
"""The oracles of programs, and the operations that they must know. The evaluator of lowered programs
shifts by a function of its own, and random programs of the later stages do not divide floats."""


@pytest.mark.parametrize(("module", "table", "names"), TABLES)
def test_a_table_has_each_operation_and_is_in_the_recipe(root, module, table, names):
    assert {*table} == names
    assert path_of(module.__name__) in listed_files(root, "Add an operation")


@pytest.mark.parametrize(("table", "names"), ORACLES)
def test_an_oracle_knows_each_operation(table, names):
    assert names - {*table} == set()


def test_a_reducer_is_an_operation_with_a_neutral_element():
    assert REDUCERS <= BINARY
    assert {*get_args(AtomicOp)} <= REDUCERS
    for op in REDUCERS:
        dtype = {"bools": "bool"}.get(operations.REDUCERS[op].operands, "int16")
        values = np.array([0, 1] if dtype == "bool" else [-7, 0, 9], dtype)
        neutral = operations.REDUCERS[op].identity(operations.DType(dtype))
        combined = operators.BINARY[op](np.array(neutral, dtype), values)
        assert np.array_equal(combined, values), op


def test_all_other_code_that_names_operations_says_what_it_does_with_others(root):
    """It is in a file of the list "Add an operation", or below a comment `# Other operations: ...`, or names
    reductions that are no operations."""
    listed = listed_files(root, "Add an operation")

    def groups_in(path, text):
        name = path.relative_to(root).as_posix()
        is_skipped = name in listed or name.startswith(NAMED_ALIKE)
        return set() if is_skipped else {*named_together(tree_of(text), OPERATIONS)}

    assert wrong_comments(root, "operations", groups_in) == []


def test_folders_with_reductions_of_users_name_them_together(root):
    for folder in NAMED_ALIKE:
        texts = [path.read_text() for path in (root / folder).rglob("*.py")]
        assert any([*named_together(tree_of(text), OPERATIONS)] for text in texts), folder


@pytest.mark.parametrize(
    "text",
    [
        'OPS = ("add", "mul")',
        'def f(op):\n    return op in {"min", "max"}',
        'class A:\n    TABLE = {"add": 1, "sub": 2}',
        'def f(op):\n    return 1 if op == "add" else 2 if op != "sub" else 3',
        'def f(x):\n    match x:\n        case Binary(op="shl" | "shr"):\n            return 1',
        'def f(op):\n    match op:\n        case "add":\n            return 1\n        case "sub":\n'
        "            return 2",
    ],
)
def test_operations_that_are_named_together_are_found(text):
    assert len([*named_together(ast.parse(text), OPERATIONS)]) == 1


@pytest.mark.parametrize(
    "text",
    [
        'def f(op):\n    return op == "add" or op in ("add",)',
        'def f(x, y):\n    return Binary("add", x, Binary("mul", x, y))',
    ],
    ids=["one operation", "construction"],
)
def test_what_names_one_operation_or_makes_some_is_right_for_a_new_one(text):
    assert [*named_together(ast.parse(text), OPERATIONS)] == []
