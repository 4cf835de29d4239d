"""A function `require_...` only checks; `required_...` returns what it has found, or refuses. A function
`check_...` records what is wrong. It does not raise it, nor does it call a function that only raises."""

from __future__ import annotations

import ast

import pytest

from tests.conventions.syntax_trees import nodes_of, tree_of

pytestmark = pytest.mark.unserialized

FOLDERS = ("packages/*/src", "plugins/*/src", "benchmarks", "tools", "examples", "docs")


def misnamed(tree):
    """The functions whose name promises a value, or none, and whose annotation says otherwise."""
    functions = [*nodes_of(tree, ast.FunctionDef)]
    raising = names_that_only_raise(functions)
    return [
        function.name
        for function in functions
        if (function.name.lstrip("_").startswith("require_") and returns_value(function))
        or (function.name.lstrip("_").startswith("required_") and not returns_value(function))
        or (is_check(function) and function.name in raising)
    ]


def is_check(function):
    """Whether a function is named after what it checks, or is the check of a module."""
    return function.name.lstrip("_").startswith("check_") or function.name == "_check"


def names_that_only_raise(functions):
    """The names of functions of a module that return nothing, and raise or call one that only raises."""
    candidates = [function for function in functions if promises_nothing(function)]
    names = {function.name for function in candidates if raises(function)}
    while True:
        delegating = {
            function.name
            for function in candidates
            if any(name in names or refuses(name) for name in called_names(function))
        }
        if delegating <= names:
            return names
        names |= delegating


def returns_value(function):
    """Whether the annotation of a function promises a value."""
    return function.returns is not None and ast.unparse(function.returns) not in (
        "None",
        "NoReturn",
    )


def promises_nothing(function):
    """Whether the annotation of a function says that it returns nothing."""
    return function.returns is not None and not returns_value(function)


def raises(function):
    """Whether a function raises errors."""
    return any(isinstance(node, ast.Raise) for node in ast.walk(function))


def refuses(name):
    """Whether a function of this name, in any module, raises for what is wrong."""
    return name.lstrip("_").startswith(("require_", "refuse"))


def called_names(function):
    """The names of functions and methods that a function calls for their effect."""
    for node in ast.walk(function):
        match node:
            case ast.Expr(value=ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name))):
                yield name


def verdicts(tree):
    """The functions that return a verdict, but for the two that make a plain one."""
    for node in nodes_of(tree, ast.FunctionDef):
        match node:
            case ast.FunctionDef(name=name, returns=ast.Name(id="Verdict")):
                if name not in ("profitable_verdict", "unprofitable_verdict"):
                    yield name


def test_only_functions_named_required_return_a_value(root):
    by_path = {
        path.relative_to(root).as_posix(): misnamed(tree_of(path.read_text()))
        for folder in FOLDERS
        for path in root.glob(f"{folder}/**/*.py")
    }
    assert {path: names for path, names in by_path.items() if names} == {}


def test_a_function_that_returns_a_verdict_is_named_so(root):
    by_path = {
        name
        for path in root.glob("packages/schedule/src/**/*.py")
        for name in verdicts(tree_of(path.read_text()))
    }
    assert by_path != set()
    assert {name for name in by_path if not name.endswith("verdict")} == set()


def test_the_search_finds_all_kinds():
    text = """
def require_a() -> int: ...
def _required_b() -> None: ...
def require_c() -> None: ...
def check_d() -> None: raise E
def check_e() -> str: raise E
def check_g() -> None: errors.require_c()
def check_h() -> None: check_d()
def _check_i(): check_g()
def _check() -> None: refuse(1)
def check_j() -> None: report(check_e())
def f() -> Verdict: ...
"""
    misnamed_checks = ["check_d", "check_g", "check_h", "_check"]
    assert misnamed(ast.parse(text)) == ["require_a", "_required_b", *misnamed_checks]
    assert [*verdicts(ast.parse(text))] == ["f"]
