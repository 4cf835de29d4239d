"""The recipe "Add a PyTorch operator" in docs/extending: each operator is documented and tested, and each
function that torch calls has a shape for compiled models, a gradient, and a kernel for GPUs. PyTorch need not
be installed."""

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
"""The exports of the package besides operators: operands, and functions that make them or an operator."""
REGISTERED = {"new_result", "gradients"}
ON_GPUS = {"device_kernel", "runs_anywhere"}
"""By which of two ways a function has a kernel for tensors on a GPU."""
OF_INDICES = {"_arrays_of_edges", "_arrays_of_loops", "_arrays_of_pairs", "_index_tensor"}
"""Functions of index tensors only, which have no gradients."""


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


def test_each_function_that_torch_calls_has_a_shape_and_a_gradient_also_on_gpus(root):
    """So that a model which uses it is compiled and trained."""
    registered = {}
    for path in (root / PACKAGE).rglob("*.py"):
        registered |= registrations(tree_of(path.read_text()))
    assert {"sparse_product", "row_softmax", *OF_INDICES} <= registered.keys()
    expected = {name: REGISTERED - {"gradients"} for name in OF_INDICES}
    assert {
        name: words
        for name, words in registered.items()
        if words - ON_GPUS != expected.get(name, REGISTERED) or len(words & ON_GPUS) != 1
    } == {}


def registrations(tree):
    """The functions under `torch_operator` or torch's own decorator, and what each is registered with."""
    return {
        node.name: {keyword.arg for keyword in decorator.keywords}
        for node in nodes_of(tree, ast.FunctionDef)
        for decorator in node.decorator_list
        if isinstance(decorator, ast.Call)
        and ast.unparse(decorator.func) in ("torch_operator", "torch.library.custom_op")
    }


def test_a_function_without_a_shape_or_a_gradient_is_found():
    text = "@torch_operator('f', new_result=new_f)\ndef f(x):\n    return x\n"
    assert registrations(ast.parse(text)) == {"f": {"new_result"}}
