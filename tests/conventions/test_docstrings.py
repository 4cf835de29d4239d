"""The docstring of a function begins with what it does: a verb, as in "Return ...", not with a noun."""

from __future__ import annotations

import ast

import pytest

from tests.conventions.syntax_trees import nodes_of, tree_of

pytestmark = pytest.mark.unserialized

FOLDERS = ("packages/*/src", "plugins/*/src", "benchmarks", "docs", "examples", "tools")
NO_VERBS = {
    "A", "An", "The", "All", "Another", "Any", "As", "By", "Each", "Every", "From", "It", "No", "One",
    "That", "There", "These", "This", "True", "Two", "What", "When", "Where", "Whether", "Which",
}  # fmt: skip
"""Words that begin the name of a thing or a clause."""
VERBS_IN_S = {"Address", "Compress", "Discuss", "Pass", "Process"}
"""Other words in -s are plurals, or verbs about someone else, as in "Returns"."""
HELP = {"packages/gossamer/src/gossamer/cli/versions.py:gossamer"}
"""Functions whose docstrings are help texts about the program."""


def does_not_begin_with_a_verb(text):
    """Whether the first word is surely no verb. A docstring may also begin with an equation or with code."""
    first, _, rest = text.partition(" ")
    word = first.rstrip(",.:").removesuffix("'s")
    if not word.isalpha() or not word[0].isupper() or rest.startswith(("=", "is ", "and ", "@")):
        return False
    return word in NO_VERBS or (word.endswith("s") and word not in VERBS_IN_S)


def documented(tree):
    """The functions that say what they do: not properties, which are things, nor tests, which are facts."""
    for node in nodes_of(tree):
        if not isinstance(node, ast.FunctionDef) or node.name.startswith("test_"):
            continue
        is_property = any("property" in ast.unparse(each) for each in node.decorator_list)
        if not is_property and ast.get_docstring(node):
            yield node.name, ast.get_docstring(node)


def test_the_docstring_of_a_function_begins_with_a_verb(root):
    paths = [
        path for folder in FOLDERS for base in root.glob(folder) for path in base.rglob("*.py")
    ]
    assert len(paths) > 1000
    by_path = {
        f"{path.relative_to(root).as_posix()}:{name}"
        for path in (*paths, root / "noxfile.py")
        for name, text in documented(tree_of(path.read_text()))
        if does_not_begin_with_a_verb(text)
    }
    assert by_path == HELP


@pytest.mark.parametrize(
    ("text", "is_refused"),
    [
        ("The shape.", True), ("Returns a shape.", True), ("Return a shape.", False),
        ("A = B + C.", False), ("y[i] = x[i].", False), ("Process elements.", False),
    ],
)  # fmt: skip
def test_a_noun_and_a_verb_are_told_apart(text, is_refused):
    assert does_not_begin_with_a_verb(text) == is_refused
