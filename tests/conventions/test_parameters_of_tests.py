"""Parameters of tests have an order: processes that share the tests of a run must collect them alike, and the
order of a set differs between processes."""

from __future__ import annotations

import ast

import pytest

from tests.conventions.syntax_trees import nodes_of, tree_of

pytestmark = pytest.mark.unserialized

FOLDERS = ("packages/*/tests", "plugins/*/tests", "tests")
SET_OPERATORS = (ast.Sub, ast.BitAnd, ast.BitXor)
"""Operators of sets only: `|` merges dicts, which have an order."""
SET_TYPES = ("set", "frozenset")


def is_set(value, constants):
    """Whether an expression is a set, as far as its file shows."""
    match value:
        case ast.Set() | ast.SetComp():
            return True
        case ast.BinOp(op=operator):
            return isinstance(operator, SET_OPERATORS)
        case ast.Call(func=ast.Name(id=name)):
            return name in SET_TYPES
        case ast.Name(id=name):
            return name in constants and is_set(constants.pop(name), constants)
    return False


def unordered(tree):
    """The lines of a file in which tests are parametrized by a set."""
    constants = {
        target.id: node.value
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    return [
        node.lineno
        for node in nodes_of(tree, ast.Call)
        if isinstance(node.func, ast.Attribute)
        and node.func.attr == "parametrize"
        and len(node.args) > 1
        and is_set(node.args[1], dict(constants))
    ]


def test_parameters_are_not_sets(root):
    paths = (path for folder in FOLDERS for path in root.glob(f"{folder}/**/*.py"))
    lines = [f"{path}:{line}" for path in paths for line in unordered(tree_of(path.read_text()))]
    assert lines == []


@pytest.mark.parametrize(
    ("values", "is_refused"),
    [
        ("TABLE.keys() - {1}", True),
        ("{1, 2}", True),
        ("NAMES", True),
        ("sorted(TABLE.keys() - {1})", False),
        ("[*TABLE]", False),
    ],
)
def test_sets_are_found(values, is_refused):
    text = f'NAMES = frozenset("ab")\n@pytest.mark.parametrize("x", {values})\ndef test_f(x): ...\n'
    assert bool(unordered(ast.parse(text))) == is_refused
