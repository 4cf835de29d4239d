"""The docstring of a function begins with what it does: a verb, as in "Return ...", not with a noun. That of
a class or a property is a noun phrase, or "True if ...". That of a module or a value is not a clause."""

from __future__ import annotations

import ast
from itertools import pairwise

import pytest

from tests.conventions.syntax_trees import nodes_of, tree_of

pytestmark = pytest.mark.unserialized

FOLDERS = ("packages/*/src", "plugins/*/src", "benchmarks", "docs", "examples", "tools")
NO_VERBS = {
    "A", "An", "The", "All", "Another", "Any", "As", "By", "Each", "Every", "From", "It", "No", "One",
    "That", "There", "These", "This", "True", "Two", "What", "When", "Where", "Whether", "Which",
}  # fmt: skip
"""Words that begin the name of a thing or a clause."""
NO_NOUNS = {
    "How",
    "If",
    "Return",
    "Returns",
    "What",
    "When",
    "Where",
    "Whether",
    "Which",
    "Who",
    "Why",
}
"""Words that begin a clause, or tell what a function does."""
CLAUSES = {"How", "What", "Where", "Whether", "Which", "Who", "Whose", "Why"}
"""Words that begin a clause. A value may be a function, whose docstring is "Returns ..."."""
VERBS_IN_S = {"Address", "Compress", "Discuss", "Pass", "Process"}
"""Other words in -s are plurals, or verbs in the third person, as in "Returns"."""
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
    for node in nodes_of(tree, ast.FunctionDef):
        is_test = node.name.startswith("test_")
        if not is_test and not is_property(node) and ast.get_docstring(node):
            yield node.name, ast.get_docstring(node)


def is_generator(function):
    """Whether a call of a function returns a generator of what the function yields."""
    pending = list(ast.iter_child_nodes(function))
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Yield | ast.YieldFrom):
            return True
        if not isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Lambda):
            pending += ast.iter_child_nodes(node)
    return False


def is_property(function):
    return any("property" in ast.unparse(one) for one in function.decorator_list)


def generators(tree):
    """The functions whose calls return generators, with their docstrings. A decorator may change what a call
    returns."""
    for node in nodes_of(tree, ast.FunctionDef):
        if is_generator(node) and not node.decorator_list and ast.get_docstring(node):
            yield node.name, ast.get_docstring(node)


def things(tree):
    """The classes and properties that say what they are."""
    for node in nodes_of(tree, ast.ClassDef, ast.FunctionDef):
        is_one = isinstance(node, ast.ClassDef) or is_property(node)
        if is_one and ast.get_docstring(node):
            yield node.name, ast.get_docstring(node)


def described(tree):
    """The docstrings of a module and of its values: constants, types and fields."""
    if ast.get_docstring(tree):
        yield "the module", ast.get_docstring(tree)
    for node in nodes_of(tree, ast.Module, ast.ClassDef, ast.FunctionDef, ast.If):
        for value, text in pairwise(node.body):
            match value, text:
                case (
                    ast.Assign(targets=[target]) | ast.AnnAssign(target=target),
                    ast.Expr(value=ast.Constant(value=str(docstring))),
                ):
                    yield ast.unparse(target), docstring


def texts(root, search):
    """The docstrings that a search finds in all files, each with the place of its definition."""
    paths = [
        path for folder in FOLDERS for base in root.glob(folder) for path in base.rglob("*.py")
    ]
    assert len(paths) > 1000
    for path in (*paths, root / "noxfile.py"):
        for name, text in search(tree_of(path.read_text())):
            yield f"{path.relative_to(root).as_posix()}:{name}", text


def test_the_docstring_of_a_function_begins_with_a_verb(root):
    refused = {place for place, text in texts(root, documented) if does_not_begin_with_a_verb(text)}
    assert refused == HELP


def test_a_generator_yields(root):
    refused = {place for place, text in texts(root, generators) if text.startswith("Return")}
    assert refused == set()


def test_the_search_finds_generators():
    text = """
def a():
    'Return b.'
    for c in b:
        yield c
def d():
    'Return e.'
    def inner():
        yield 1
    return inner
"""
    assert [*generators(ast.parse(text))] == [("a", "Return b.")]


def test_the_docstring_of_a_class_or_property_is_a_noun_phrase(root):
    assert {place for place, text in texts(root, things) if text.split()[0] in NO_NOUNS} == set()


def test_the_docstring_of_a_module_or_a_value_is_not_a_clause(root):
    refused = {place for place, text in texts(root, described) if text.split()[0] in CLAUSES}
    assert refused == set()


def test_the_search_finds_modules_and_values():
    text = """'What it has.'
LIMIT: int = 3
'Why it stops.'
class A:
    'Where it is.'
    field: str
    'The name.'
    pair = a, b
    other: int
"""
    assert [*described(ast.parse(text))] == [
        ("the module", "What it has."), ("LIMIT", "Why it stops."), ("field", "The name."),
    ]  # fmt: skip


def test_the_search_finds_classes_and_properties():
    text = """
class A:
    'What it is.'
    @cached_property
    def b(self):
        'Return c.'
    def d(self):
        'Return e.'
"""
    assert {name: text.split()[0] in NO_NOUNS for name, text in things(ast.parse(text))} == {
        "A": True, "b": True,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "is_refused"),
    [
        ("The shape.", True), ("Returns a shape.", True), ("Return a shape.", False),
        ("A = B + C.", False), ("y[i] = x[i].", False), ("Process elements.", False),
    ],
)  # fmt: skip
def test_a_noun_and_a_verb_are_told_apart(text, is_refused):
    assert does_not_begin_with_a_verb(text) == is_refused
