"""Identifiers: names of nodes are told from nodes, and of two words for one thing only one is used."""

from __future__ import annotations

import ast
import re

import pytest

from tests.conventions.syntax_trees import nodes_of, tree_of

pytestmark = pytest.mark.unserialized

FOLDERS = ("packages", "plugins", "benchmarks", "tools", "examples", "docs", "tests/fuzzing")

NODES = {"axis", "block", "buffer", "iteration", "iterator", "loop", "module", "reducer", "var"}
"""Words for a node (`module`: also for a module of Python)."""

TEXTS = {"str", "str | None", "Name", "Name | None", "Label", "Label | None"}
"""The annotations of a name."""

TAKE_NAMES = (
    "/cli/",
    "gossamer_schedule/builder.py",
    "gossamer_schedule/cursor/find.py",
    "gossamer_schedule/rules/steps/",
    "schedule/tests/definition/test_plugin_primitive.py",
    "schedule/tests/nests/test_block_nest.py",
)
"""Options of commands; what takes the arguments of a primitive, which are handles or names; and a test whose
blocks are texts."""

IN_FULL = {"ctx": "context", "dim": "dimension", "dims": "dimensions"}
SHORT = {
    "expression": "expr",
    "expressions": "exprs",
    "iterators": "iters",
    "statement": "stmt",
    "statements": "stmts",
    "variable": "var",
    "variables": "vars",
}
"""Words of the nodes `Expr`, `Stmt`, `Var` and `BlockIter`, whose fields are `var`, `vars` and `iters`."""

WORDS = IN_FULL | SHORT

OF_OTHERS = {
    "edge_dim": "a parameter whose name is that of PyG's layer",
    "Statement": "a claim in the tests of the prover",
    "embed_dim": "a parameter whose name is that of PyTorch's layer",
    "ctx": "a parameter whose name torch passes",
    "Variable": "a variable in a text of random programs",
    "split_variable": "the file of the function, whose name is a sentence",
    "variables": "of an environment",
}
"""Names with one of the words that are not of nodes, with the reasons."""

STORED = {
    "least_bytes": "a field of measurements in the folder `results` of the benchmarks",
    "least_cpu_ms": "a field of them too",
}
"""Names of limits that begin with `least` or `most`, with the reasons."""


def names_like_nodes(tree):
    """The parameters and variables of functions that are annotated as names and named as nodes. A pass,
    a primitive and a query of the schedule builder (`typed`) take handles or names."""
    for function in nodes_of(tree, ast.FunctionDef):
        if not _takes_names(function):
            arguments = function.args
            every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
            annotated = [(argument.arg, argument.annotation) for argument in every]
            annotated += [
                (node.target.id, node.annotation)
                for node in function.body
                if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
            ]
            yield from (
                name
                for name, annotation in annotated
                if name in NODES and annotation is not None and ast.unparse(annotation) in TEXTS
            )


def _takes_names(function):
    return function.name.startswith("test_") or any(
        re.search("pass|primitive|^typed$", ast.unparse(d)) for d in function.decorator_list
    )


def bound_names(tree):
    """The names that a file gives to parameters, variables, functions and classes. Those of tests are
    sentences, and those of environment variables are constants."""
    naming = (ast.FunctionDef, ast.ClassDef, ast.arg, ast.Name, ast.MatchAs)
    for node in nodes_of(tree, *naming):
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                pass
            case ast.arg(arg=name) | ast.Name(id=name, ctx=ast.Store()):
                pass
            case ast.MatchAs(name=str(name)):
                pass
            case _:
                continue
        if not re.match("test_|Test|[A-Z_]+_VARIABLES?$", name):
            yield name


def words_of(name):
    return {word.lower() for word in re.findall("[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name)}


def limits_in_words(tree):
    """The names that begin with `least` or `most`: those of limits begin with `min` or `max`, as the
    constants do."""
    for name in bound_names(tree):
        if re.match("_*(least|most)_", name.lower()):
            yield name


def _names_by_path(root, search):
    by_path = {
        path.relative_to(root).as_posix(): sorted({*search(tree_of(path.read_text()))})
        for folder in FOLDERS
        for path in (root / folder).rglob("*.py")
    }
    return {path: names for path, names in by_path.items() if names}


def test_a_name_of_a_node_ends_in_name(root):
    by_path = _names_by_path(root, names_like_nodes)
    assert {p: n for p, n in by_path.items() if not any(path in p for path in TAKE_NAMES)} == {}


def test_one_of_two_words_is_used(root):
    def search(tree):
        return (name for name in bound_names(tree) if words_of(name) & WORDS.keys())

    by_path = _names_by_path(root, search)
    assert {p: n for p, n in by_path.items() if {*n} - OF_OTHERS.keys()} == {}
    assert {name for names in by_path.values() for name in names} == OF_OTHERS.keys()


def test_limits_are_named_min_and_max(root):
    by_path = _names_by_path(root, limits_in_words)
    assert {name for names in by_path.values() for name in names} == STORED.keys()


def test_a_variable_is_named_for_what_it_is(root):
    by_path = _names_by_path(root, lambda tree: {*bound_names(tree)} & {"each"})
    assert [path for path in by_path if "/src/" in path] == []


@pytest.mark.parametrize("text", ["def f(loop: str): ...", "def f():\n    buffer: Name = g()"])
def test_the_search_finds_a_name_that_is_named_as_a_node(text):
    assert [*names_like_nodes(ast.parse(text))] in (["loop"], ["buffer"])
    assert [
        *names_like_nodes(ast.parse(text.replace("str", "For").replace("Name", "Buffer")))
    ] == []
    assert [*names_like_nodes(ast.parse(f"@typed\n{text}"))] == []


def test_the_search_finds_words_in_all_names():
    text = "class AVariable: ...\ndef b_statement(ctx):\n    dims = 0\ndef test_statement(): ..."
    words = {word for name in bound_names(ast.parse(text)) for word in words_of(name)}
    assert words & WORDS.keys() == {"variable", "statement", "ctx", "dims"}


def test_the_search_finds_limits_in_words():
    text = "def _most_lanes(least_bits, at_most, least): ...\nMOST_BYTES: int = 1\nmost_mb = 2"
    limits = {"_most_lanes", "least_bits", "MOST_BYTES", "most_mb"}
    assert {*limits_in_words(ast.parse(text))} == limits
