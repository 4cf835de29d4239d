"""A public name of a class, a type or a constant means one thing in all packages."""

from __future__ import annotations

import ast
from collections import defaultdict

import pytest

pytestmark = pytest.mark.unserialized

ONE_IN_EACH = {
    "ACCESS_RULES": "a pass that changes how elements are addressed",
    "BASELINE": "the file of a baseline",
    "CONVERSION_CYCLES": "a model of a format",
    "ELEMENT_CYCLES": "a model of a format",
    "FILE_FORMAT": "the file of a file format",
    "FORMAT": "the file of a format",
    "METHODS": "the table of another compiler's names",
    "NAMES": "a folder whose files are listed by name",
    "PROGRAM": "the file of an operator",
    "SCRIPT": "the file of an operator",
    "SLOT_CYCLES": "a model of a format",
}
"""Names that several files have for the same reason: a loader, or a table of the kind, finds them there."""

SAME = {
    "Array": "an array of NumPy",
    "Compile": "the function that compiles a module",
    "HALVES": "dtypes of 16 bits",
    "LoopOrCondition": "what stands around a statement",
    "MAX_ITERATIONS": "the largest int64",
    "Options": "options of a case of the corpus",
    "SYMBOL": "the symbol of the function that runs a parallel region",
    "Statements": "statements of a body",
    "WEIGHT_ROUNDINGS": "roundings of a weight of attention",
    "WIDTH": "columns of output that is not shown in a terminal",
}
"""Names with one meaning and several definitions: one in each package, or in each plugin-like file, that may
not import the other."""


def defined_names(path):
    """The public classes, types and constants that a file defines; type variables have one letter."""
    for node in ast.parse(path.read_text()).body:
        match node:
            case ast.ClassDef(name=name):
                names = [name]
            case ast.Assign(targets=targets):
                names = [target.id for target in targets if isinstance(target, ast.Name)]
            case ast.AnnAssign(target=ast.Name(id=name)):
                names = [name]
            case _:
                names = []
        yield from (name for name in names if len(name) > 1 and not name.startswith("_"))


def test_each_public_name_means_one_thing(root):
    homes = defaultdict(set)
    for place in ("packages", "plugins"):
        for path in root.glob(f"{place}/*/src/**/*.py"):
            for name in defined_names(path):
                homes[name].add(path.relative_to(root).as_posix())
    repeated = {name: sorted(paths) for name, paths in homes.items() if len(paths) > 1}
    unknown = {name: paths for name, paths in repeated.items() if name not in ONE_IN_EACH | SAME}
    assert unknown == {}
    assert (ONE_IN_EACH | SAME).keys() - repeated.keys() == set()
