"""An absent value is None, not an empty text: no field of a class has an empty text as its default, no
function that returns a text returns an empty one instead of nothing, and no missing value becomes one."""

from __future__ import annotations

import ast

import pytest

from tests.conventions.syntax_trees import nodes_of, tree_of

pytestmark = pytest.mark.unserialized

FOLDERS = ("packages", "plugins", "benchmarks", "tools")

TEXTS = {
    "hint": "appended to an error: no hint adds nothing to the text",
    "data_layout": "the text of LLVM, which is empty for the default",
    "status": "written into the text of a function when it begins",
    "exit": "written into the text of a function when it begins",
}
"""Fields that hold a text, which may be empty."""

TEXT_SUFFIXES = ("_text", "_suffix", "_hint")
"""The ends of the names of functions that return a part of a text, which may be empty."""


def empty_fields(tree):
    """The names of the fields of classes whose default is an empty text."""
    return {
        stmt.target.id
        for node in nodes_of(tree, ast.ClassDef)
        for stmt in node.body
        if isinstance(stmt, ast.AnnAssign) and _may_be_empty(stmt.value)
    }


def empty_results(tree):
    """The names of the functions that are annotated with `str` and return an empty text: as it is, as a case
    of an expression, or by a variable."""
    return {
        node.name
        for node in nodes_of(tree, ast.FunctionDef)
        if not node.name.endswith(TEXT_SUFFIXES)
        and isinstance(node.returns, ast.Name)
        and node.returns.id == "str"
        and any(_may_be_empty(value) for value in _returned(node))
    }


def _returned(function):
    values = [node.value for node in ast.walk(function) if isinstance(node, ast.Return)]
    names = {value.id for value in values if isinstance(value, ast.Name)}
    assigned = (
        (node.target if isinstance(node, ast.AnnAssign) else node.targets[0], node.value)
        for node in ast.walk(function)
        if isinstance(node, (ast.Assign, ast.AnnAssign))
    )
    kept = (value for name, value in assigned if isinstance(name, ast.Name) and name.id in names)
    return [*values, *kept]


def _may_be_empty(value):
    match value:
        case ast.Constant(value=""):
            return True
        case ast.IfExp():
            return _may_be_empty(value.body) or _may_be_empty(value.orelse)
        case ast.BoolOp():
            return _may_be_empty(value.values[-1])
    return False


def _names_by_path(root, search):
    by_path = {
        path.relative_to(root).as_posix(): search(tree_of(path.read_text()))
        for folder in FOLDERS
        for path in (root / folder).rglob("*.py")
        if "tests" not in path.parts
    }
    return {path: names for path, names in by_path.items() if names}


def empty_values(tree):
    """The lines with an empty text as the default of `next` or `getattr`, in an attribute, or alone in a
    tuple."""
    for node in nodes_of(tree, ast.Call, ast.Assign, ast.Tuple):
        match node:
            case ast.Call(func=ast.Name(id="next" | "getattr"), args=[*_, ast.Constant(value="")]):
                yield node.lineno
            case ast.Assign(targets=[*targets], value=ast.Constant(value="")):
                yield from (
                    target.lineno for target in targets if isinstance(target, ast.Attribute)
                )
            case ast.Tuple(elts=[ast.Constant(value="")]):
                yield node.lineno


def test_a_field_or_a_result_that_is_absent_is_none(root):
    by_path = _names_by_path(
        root, lambda tree: (empty_fields(tree) - TEXTS.keys()) | empty_results(tree)
    )
    assert by_path == {}


def test_a_value_that_is_absent_is_none(root):
    assert _names_by_path(root, lambda tree: set(empty_values(tree))) == {}


@pytest.mark.parametrize(
    "text",
    ['next(x, "")', 'getattr(x, "y", "")', 'self.x = ""', 'self.x = self.y = ""', 'x or ("",)'],
)
def test_the_search_finds_an_empty_value(text):
    assert {*empty_values(ast.parse(text))} == {1}
    assert {*empty_values(ast.parse(text.replace('""', '"a"')))} == set()


def test_the_search_finds_an_empty_text():
    text = 'class A:\n    name: str = ""\n    other: str = "a"\n    hint: str | None = None\n'
    assert empty_fields(ast.parse(text)) == {"name"}


@pytest.mark.parametrize(
    "body",
    ['return ""', 'return x if x else ""', 'return x or ""', 'y: str = "" if x else x\n return y'],
)
def test_the_search_finds_an_empty_result(body):
    assert empty_results(ast.parse(f"def name(x) -> str:\n {body}")) == {"name"}
    assert empty_results(ast.parse(f"def name_text(x) -> str:\n {body}")) == set()
    assert empty_results(ast.parse(f"def name(x) -> str | None:\n {body}")) == set()
