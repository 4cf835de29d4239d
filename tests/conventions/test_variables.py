"""The names of variables: a number that only counts the items of a loop is called `number`, the iterator of a
block `iterator`; a dtype is not called `kind`, and only an index or a position `at`. A variable is named for
what it holds: nothing is called `found`, `given`, `known` or `own`."""

from __future__ import annotations

import ast
import re

import pytest

from tests.conventions.syntax_trees import nodes_of, tree_of

pytestmark = pytest.mark.unserialized

FOLDERS = ("packages", "benchmarks", "tools", "tests")

OTHER_WORDS = {"at", "count", "i", "idx", "index", "key", "n", "place", "pos", "position"}
"""Words for `number` that mean something else: an index selects an element of a buffer, a position is that
of an element in its fiber, and a place is a path into a module (docs/glossary.md)."""


def counters(tree):
    """The names of the numbers that `enumerate` adds to items."""
    for node in nodes_of(tree, ast.For, ast.comprehension):
        if isinstance(node.target, ast.Tuple):
            called = {call.func for call in ast.walk(node.iter) if isinstance(call, ast.Call)}
            if any(isinstance(name, ast.Name) and name.id == "enumerate" for name in called):
                yield ast.unparse(node.target.elts[0])


def _trees(root):
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*.py")):
            yield path.relative_to(root).as_posix(), tree_of(path.read_text())


def test_the_number_of_an_item_is_called_number(root):
    by_path = {path: {*counters(tree)} & OTHER_WORDS for path, tree in _trees(root)}
    assert {path: names for path, names in by_path.items() if names} == {}


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("for at, item in enumerate(items): ...", "at"),
        ("for place, item in reversed([*enumerate(items)]): ...", "place"),
        ("{item: row for row, item in enumerate(items)}", "row"),
    ],
)
def test_the_search_finds_the_number_of_an_item(text, name):
    assert [*counters(ast.parse(text))] == [name]


def dtypes_called_kind(tree):
    """The assignments and parameters by which a dtype is called `kind`: that word is for a group of dtypes,
    such as the integers, and for what kind of loop, iterator or statement something is."""
    for node in nodes_of(tree, ast.Assign, ast.arg):
        match node:
            case ast.Assign(targets=[ast.Name(id="kind")], value=value):
                calls = r"(\bparse_dtype|\bDType(\.parse)?|\bnp\.dtype)\([^()]*(\([^()]*\))?\)$|\.dtype$"
                is_dtype = re.search(calls, ast.unparse(value))
            case ast.arg(arg="kind", annotation=annotation) if annotation is not None:
                is_dtype = "DType" in ast.unparse(annotation).split(" | ")
            case _:
                continue
        if is_dtype:
            yield ast.unparse(node)


def test_a_dtype_is_called_dtype(root):
    by_path = {path: [*dtypes_called_kind(tree)] for path, tree in _trees(root)}
    assert {path: lines for path, lines in by_path.items() if lines} == {}


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("kind = DType.parse(text)", 1),
        ("kind = None if text is None else parse_dtype(dtype_of(text))", 1),
        ("kind = matrix.indptr.dtype", 1),
        ("def f(kind: DType | None): ...", 1),
        ("kind = DType.parse(text).kind", 0),
        ("def f(kind: LoopKind): ...", 0),
    ],
)
def test_the_search_finds_a_dtype_that_is_called_kind(text, count):
    assert len([*dtypes_called_kind(ast.parse(text))]) == count


WORDS_FOR_ANYTHING = {"found", "item", "it"}


def names_of_iterators(tree):
    """The names of iterators: of parameters, and of variables to which loops bind those of a block."""
    for node in nodes_of(tree, ast.arg, ast.For, ast.comprehension):
        match node:
            case ast.arg(arg=name, annotation=ast.Name(id="BlockIter")):
                yield name
            case (
                ast.For(target=ast.Name(id=name), iter=iters)
                | ast.comprehension(target=ast.Name(id=name), iter=iters)
            ):
                if re.search(r"\biters(\[.*\])?\)*$|\biters_of_init\(", ast.unparse(iters)):
                    yield name


def test_an_iterator_is_called_iterator(root):
    by_path = {
        path: {*names_of_iterators(tree)} & WORDS_FOR_ANYTHING for path, tree in _trees(root)
    }
    assert {path: names for path, names in by_path.items() if names} == {}


@pytest.mark.parametrize(
    "text",
    [
        "def f(item: BlockIter): ...",
        "for item in reversed(block.iters): ...",
        "{item.var for item in block.iters[1:]}",
        "any(item.kind == 'R' for item in iters_of_init(block))",
    ],
)
def test_the_search_finds_an_iterator(text):
    assert [*names_of_iterators(ast.parse(text))] == ["item"]


INDICES = {"Expr", "Node", "Range", "int", "tuple[Expr, ...]"}
"""The types of what is called `at`: the index of an access, or its indices. Offsets, addresses, and places in
a module or in the pipeline are called so."""


def types_of_at(tree):
    """The annotations of parameters that are called `at`, without None."""
    for node in nodes_of(tree, ast.arg):
        if node.arg == "at" and node.annotation is not None:
            yield from {*ast.unparse(node.annotation).split(" | ")} - {"None"}


def test_at_is_an_index(root):
    by_path = {
        path: {*types_of_at(tree)} - INDICES for path, tree in _trees(root) if "/src/" in path
    }
    assert {path: types for path, types in by_path.items() if types} == {}


def test_the_search_finds_the_type_of_at():
    text = "def f(at: Cursor | None): ...\ndef g(*, at: Expr | Range): ..."
    assert {*types_of_at(ast.parse(text))} == {"Cursor", "Expr", "Range"}


SAY_NOTHING = {"found", "given", "known", "own"}
"""Adjectives without a noun: what is found, given or known is left open."""
SOURCES = ("benchmarks", "docs", "examples", "packages", "plugins", "tests", "tools")


def adjectives(tree):
    """The parameters, variables and functions that are called by an adjective. A field may be: the object to
    which it belongs is the noun, as in `digit.known`."""
    fields = {
        stmt.target
        for node in nodes_of(tree, ast.ClassDef)
        for stmt in node.body
        if isinstance(stmt, ast.AnnAssign)
    }
    naming = (ast.FunctionDef, ast.arg, ast.Name, ast.MatchAs, ast.MatchStar)
    for node in nodes_of(tree, *naming):
        match node:
            case (
                ast.arg(arg=name)
                | ast.Name(id=name, ctx=ast.Store())
                | ast.MatchAs(name=str(name))
                | ast.MatchStar(name=str(name))
                | ast.FunctionDef(name=name)
            ) if name.lstrip("_") in SAY_NOTHING and node not in fields:
                yield name


def test_a_variable_is_named_for_what_it_holds(root):
    paths = (path for folder in SOURCES for path in sorted((root / folder).rglob("*.py")))
    by_path = {
        path.relative_to(root).as_posix(): {*adjectives(tree_of(path.read_text()))}
        for path in paths
    }
    assert {path: names for path, names in by_path.items() if names} == {}


def test_the_search_finds_variables_that_say_nothing():
    text = "def f(given): ...\nclass A:\n    known: int\nfor own in x:\n    found: int = 0\ndef _known(): ..."
    assert [*adjectives(ast.parse(text))] == ["_known", "given", "own", "found"]
