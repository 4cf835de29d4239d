"""A function that makes an error returns it; its annotation is the precise type, its name says "error"."""

from __future__ import annotations

import ast

import pytest

from tests.conventions.syntax_trees import nodes_of, tree_of

pytestmark = pytest.mark.unserialized

FOLDERS = ("packages/*/src", "plugins/*/src", "benchmarks", "tools", "examples", "docs")
RAISING = {
    "_raise_unsupported": "an entry of a table of emitters",
    "_raise_status": "errors of several types",
    "raise_status": "errors of several types",
    "fail": "ends a test",
    "skip": "ends a test",
}
SIGNALS = {"take_exception", "signal_exception", "call_exception"}
"""Functions that return what the handler of a signal or an emulated call raised, which can be anything."""


def functions(root):
    for folder in FOLDERS:
        for path in root.glob(f"{folder}/**/*.py"):
            for node in nodes_of(tree_of(path.read_text()), ast.FunctionDef):
                if node.returns is not None:
                    yield node.name, ast.unparse(node.returns), node


def test_functions_that_make_errors_return_them_with_their_type(root):
    wrong = []
    for name, returned, node in functions(root):
        is_constructor = any(ast.unparse(one) == "classmethod" for one in node.decorator_list)
        if returned.endswith("Error"):
            wrong += [] if "error" in name or is_constructor else [name]
        elif returned in ("Exception", "BaseException"):
            wrong += [name] if name not in SIGNALS else []
        elif returned == "NoReturn":
            wrong += [name] if name not in RAISING else []
    assert wrong == []


def test_the_functions_that_raise_exist(root):
    assert {name for name, _, _ in functions(root)} >= RAISING.keys() | SIGNALS
