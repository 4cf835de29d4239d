"""Fields and properties that are true or false are predicates: `is_scalable`, `has_rows`, `uses_stats`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from tests.conventions.syntax_trees import nodes_of, tree_of

pytestmark = pytest.mark.unserialized

OF_SCRIPTS = {"nontemporal", "padded", "scalable", "sorted", "unique"}
"""Words of scripts and of dtypes, which the fields of nodes and of records about them repeat."""


def truths(tree: ast.Module) -> Iterator[str]:
    """Yield the names of fields and properties that are a bool."""
    for node in nodes_of(tree, ast.ClassDef):
        for member in node.body:
            match member:
                case ast.AnnAssign(target=ast.Name(name), annotation=ast.Name("bool")):
                    yield name
                case ast.FunctionDef(
                    name=name, returns=ast.Name("bool"), decorator_list=decorators
                ):
                    if any("property" in ast.unparse(decorator) for decorator in decorators):
                        yield name


def is_predicate(name: str) -> bool:
    """Return whether a name begins with a verb in the third person, or has `is` after its subject."""
    words = name.strip("_").split("_")
    return words[0].endswith("s") or words[0] in ("are", "can") or "is" in words


@pytest.mark.parametrize(
    ("name", "is_one"),
    [("is_scalable", True), ("a_is_shared", True), ("uses_stats", True), ("stable", False)],
)
def test_a_predicate_has_a_verb(name, is_one):
    assert is_predicate(name) == is_one


def test_fields_and_properties_that_are_true_or_false_are_predicates(root):
    names = {
        (name, path.relative_to(root).as_posix())
        for pattern in ("packages/*/src/**/*.py", "plugins/*/src/**/*.py")
        for path in root.glob(pattern)
        for name in truths(tree_of(path.read_text()))
    }
    assert len(names) > 150
    assert {(name, path) for name, path in names if not is_predicate(name)} == {
        (name, path) for name, path in names if name in OF_SCRIPTS
    }
