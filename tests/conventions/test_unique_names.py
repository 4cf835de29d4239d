"""A public name of a class, a function, a type or a constant means one thing in all packages, benchmarks and
tools."""

from __future__ import annotations

import ast
import re
from collections import defaultdict

import pytest

from tests.conventions.syntax_trees import nodes_of, tree_of

pytestmark = pytest.mark.unserialized

ONE_IN_EACH = {
    "ACCESS_RULES": "a pass that changes how elements are addressed",
    "BASELINE": "the file of a baseline",
    "CONVERSION_CYCLES": "a model of a format",
    "ELEMENT_CYCLES": "a model of a format",
    "FILE_FORMAT": "the file of a file format",
    "FORMAT": "the file of a format",
    "MIN_FILL": "a model of a format",
    "METHODS": "the table of another compiler's names",
    "NAMES": "a folder whose files are listed by name",
    "PARSED": "the generated file of an operator",
    "PROGRAM": "the file of an operator",
    "SCRIPT": "the file of an operator",
    "SLOT_CYCLES": "a model of a format",
    "estimated_seconds": "the file of a part of a benchmark",
    "files": "the generator of a file",
    "gossamer_backends": "a hook and its implementation in a plugin",
    "gossamer_intrinsics": "a hook and its implementation in a plugin",
    "main": "what a command of its own runs",
    "checked_operands": "the file of an operator",
    "prepare": "the file of a contender, and the function of the public API",
    "sources": "the file of programs of the corpus",
}
"""Names that several files have for the same reason: a loader, or a table of the kind, finds them there."""

SAME = {
    "WEIGHT_ROUNDINGS": "roundings of a weight of attention, for the tests and for the command line",
    "add": "a sum: of expressions, of values of LLVM",
    "attention": "the operator and its oracle",
    "attention_bound": "the rounding error of the operator, for the tests and for the command line",
    "floordiv": "a quotient: of expressions, of values of LLVM, of floats",
    "floormod": "a remainder: of values of LLVM, of floats",
    "mul": "a product: of expressions, of values of LLVM",
    "sddmm": "the operator and its oracle",
    "spmm": "the operator and its oracle",
    "spmv": "the operator and its oracle",
    "sub": "a difference: of expressions, of values of LLVM",
}
"""Names with one meaning and several definitions: one in each package, or in each plugin-like file, that may
not import the other."""

NAMED_FROM_OUTSIDE = (
    "gossamer/cli/commands",
    "gossamer_schedule/primitives",
    "gossamer_testkit/corpus/oracles",
)
"""Folders whose functions have the names of commands, of steps of schedules and of programs."""


def defined_names(path):
    """The public classes, functions, types and constants that a file defines; type variables have one
    letter."""
    is_free = not any(f"/src/{folder}/" in path.as_posix() for folder in NAMED_FROM_OUTSIDE)
    for node in tree_of(path.read_text()).body:
        match node:
            case ast.ClassDef(name=name):
                names = [name]
            case ast.FunctionDef(name=name) if is_free:
                names = [name]
            case ast.Assign(targets=targets):
                names = [target.id for target in targets if isinstance(target, ast.Name)]
            case ast.AnnAssign(target=ast.Name(id=name)):
                names = [name]
            case _:
                names = []
        yield from (name for name in names if len(name) > 1 and not name.startswith("_"))


def files_of(root):
    """The files of packages and plugins, benchmarks and tools, each with whether it is of a distribution."""
    for pattern in ("packages/*/src/**/*.py", "plugins/*/src/**/*.py"):
        yield from ((path, True) for path in root.glob(pattern))
    for pattern in ("benchmarks/**/*.py", "tools/**/*.py"):
        yield from ((path, False) for path in root.glob(pattern))


def names_imported(root):
    """The names that files of benchmarks and tools import from each other."""
    for path, is_distributed in files_of(root):
        imports = [] if is_distributed else nodes_of(tree_of(path.read_text()), ast.ImportFrom)
        for node in imports:
            if node.module.startswith(("benchmarks", "tools")):
                yield from (alias.name for alias in node.names)


def test_each_public_name_means_one_thing(root):
    homes, imported = defaultdict(set), set(names_imported(root))
    for path, is_distributed in files_of(root):
        for name in defined_names(path):
            # A constant of a script is its own; the constants of a distribution that are, begin with "_".
            if is_distributed or name in imported or not name.isupper():
                homes[name].add(path.relative_to(root).as_posix())
    repeated = {name: sorted(paths) for name, paths in homes.items() if len(paths) > 1}
    unknown = {name: paths for name, paths in repeated.items() if name not in ONE_IN_EACH | SAME}
    assert unknown == {}
    assert (ONE_IN_EACH | SAME).keys() - repeated.keys() == set()


def terms_of(glossary):
    """The terms of the glossary, in small letters."""
    rows = [line.split("|")[1] for line in glossary.splitlines() if line.startswith("| ")]
    return {term.strip().lower() for row in rows for term in row.split(",")}


def private_types(tree):
    """The private classes and types that a file defines, each with its words."""
    for node in tree.body:
        match node:
            case ast.ClassDef(name=name) | ast.AnnAssign(target=ast.Name(id=name)):
                if re.match("_[A-Z]", name) and not name.isupper():
                    yield name, " ".join(re.findall("[A-Z][a-z]*", name)).lower()


def test_a_private_type_is_not_called_by_a_term_of_the_glossary(root):
    terms = terms_of((root / "docs/glossary.md").read_text())
    assert "place" in terms
    by_path = {
        path.relative_to(root).as_posix(): name
        for path, _ in files_of(root)
        for name, words in private_types(tree_of(path.read_text()))
        if words in terms
    }
    assert by_path == {}


def test_the_search_finds_private_types():
    text = "_Place: TypeAlias = int\nclass _RowPanel: ...\nclass Axis: ...\n_AXES: int = 3"
    assert dict(private_types(ast.parse(text))) == {"_Place": "place", "_RowPanel": "row panel"}


AXES = {"Axis", "DenseFixed", "IteratedAxis", "IterationAxis"}
"""The types of `axes`: those of a function, or of one iteration."""

NAMES_OF_AXES = ("gossamer_ir/nodes.py", "/primitives/coordinate/", "/rules/steps/")
"""The files in which `axes` are names: the nodes, and the primitives with the functions that record them."""


def annotations_of(name, tree):
    """The annotations of parameters and fields of this name."""
    for node in nodes_of(tree, ast.arg, ast.AnnAssign):
        match node:
            case ast.arg(arg=arg_name, annotation=annotation) if annotation is not None:
                pass
            case ast.AnnAssign(target=ast.Name(id=arg_name), annotation=annotation):
                pass
            case _:
                continue
        if arg_name == name:
            yield ast.unparse(annotation)


def test_axes_are_a_collection_of_axes(root):
    by_path = {
        annotation
        for folder in ("packages", "plugins", "benchmarks", "tools")
        for path in (root / folder).rglob("*.py")
        if "tests" not in path.parts
        if not any(end in path.as_posix() for end in NAMES_OF_AXES)
        for annotation in annotations_of("axes", tree_of(path.read_text()))
    }
    assert {
        annotation.partition("[")[2].split(",")[0].rstrip("]") for annotation in by_path
    } <= AXES
