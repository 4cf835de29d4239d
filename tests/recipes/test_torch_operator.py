"""The recipe "Add a PyTorch operator" in docs/extending: each operator is documented and tested, and each
function that torch calls has a shape for compiled models, and a gradient. PyTorch need not be installed."""

from __future__ import annotations

import ast
import re

import pytest

from tests.conventions.syntax_trees import nodes_of, tree_of

pytestmark = pytest.mark.unserialized

PACKAGE = "packages/torch/src/gossamer_torch"
NOT_CALLED = {
    "RelationalMatrix",
    "SparseMatrix",
    "custom_op",
    "from_edge_index",
    "to_sparse_matrix",
}
"""What the package exports besides operators: operands, and what makes them or an operator."""
REGISTRATIONS = {"register_fake", "register_autograd"}


@pytest.fixture(scope="module")
def operators(request):
    """The file of each operator, by its name."""
    folder = request.config.rootpath / PACKAGE
    imports = {
        name.name: folder.parent / f"{node.module.replace('.', '/')}.py"
        for node in tree_of((folder / "__init__.py").read_text()).body
        if isinstance(node, ast.ImportFrom) and node.module != "__future__"
        for name in node.names
    }
    assert imports.keys() >= NOT_CALLED
    return {name: path for name, path in imports.items() if name not in NOT_CALLED}


def test_an_operator_is_in_a_file_of_its_name_and_checks_its_types(operators, root):
    assert len(operators) > 5
    for name, path in operators.items():
        assert path == root / PACKAGE / "operators" / f"{name}.py"
        (function,) = (
            node
            for node in tree_of(path.read_text()).body
            if isinstance(node, ast.FunctionDef) and node.name == name
        )
        assert [ast.unparse(decorator) for decorator in function.decorator_list] == ["typed"]


def test_an_operator_is_in_the_table_of_the_documents(operators, root):
    page = (root / "docs/torch.md").read_text()
    table = page[page.index("\n## Operators\n") : page.index("\n## Operators of your own")]
    assert {*re.findall(r"^\| `(\w+)\(", table, re.MULTILINE)} == operators.keys()


def test_an_operator_has_tests(operators, root):
    tests = (root / "packages/torch/tests/operators").glob("test_*.py")
    called = {name for path in tests for name in re.findall(r"\bgt\.(\w+)\(", path.read_text())}
    assert operators.keys() - called == set()


def test_each_function_that_torch_calls_has_a_shape_and_a_gradient(root):
    """So that a model which uses it is compiled and trained."""
    missing, all_names = {}, set()
    for path in (root / PACKAGE).rglob("*.py"):
        names, registered = registrations(tree_of(path.read_text()))
        all_names |= names
        missing |= {name: REGISTRATIONS - registered.get(name, set()) for name in names}
    assert {"sparse_product", "row_softmax"} <= all_names
    assert {name: lacking for name, lacking in missing.items() if lacking} == {}


def registrations(tree):
    """The functions under `torch.library.custom_op`, and what is registered for each of them."""
    names = {
        node.name
        for node in nodes_of(tree)
        if isinstance(node, ast.FunctionDef)
        and any("torch.library.custom_op" in ast.unparse(item) for item in node.decorator_list)
    }
    registered = {}
    for node in nodes_of(tree):
        if isinstance(node, ast.Attribute) and node.attr in REGISTRATIONS:
            registered.setdefault(ast.unparse(node.value), set()).add(node.attr)
    return names, registered


def test_a_function_without_a_shape_or_a_gradient_is_found():
    text = (
        "@torch.library.custom_op('gossamer::f', mutates_args=())\ndef f(x):\n    return x\n\n"
        "@f.register_fake\ndef _(x):\n    return x\n"
    )
    assert registrations(ast.parse(text)) == ({"f"}, {"f": {"register_fake"}})
