"""The table of package borders that `nox -s wire` encodes and decodes is complete."""

from __future__ import annotations

import ast
import functools
import importlib
import inspect
import re
import subprocess
import sys
from typing import Protocol

import numpy as np
import pytest

from gossamer_backend import Artifact
from gossamer_formats import Decomposition
from gossamer_ir.core.build import index
from gossamer_ir.interchange.records import Schedule, Signature, Stats, Step, Target
from gossamer_ir.nodes import InRange, Module, Monotone
from tests.conventions.syntax_trees import nodes_of, tree_of
from tests.pytest_plugins.wire import BORDERS, CROSSED, Border, forced, through

DATA = re.compile(
    r"\b(Module|Target|Trace|Schedule|ScheduleReport|ScheduleSpace|Stats|Signature|Intrinsic|FormatDescription|Artifact|Machine)\b"
)
DATA_OF_BACKEND = {"Artifact"}
"""Data types of the backend whose methods are not borders, because the values themselves cross borders."""
FOR_USERS = {(Decomposition, "asformat"), (None, "python_kernel")}
"""Functions that only users and plugins call which gossamer does not require: no package converts a matrix in
parts, and native code needs no `python_kernel`."""
FOR_TORCH = {(None, "machine_for")}
"""Functions of `gossamer` that only `gossamer_torch` imports, whose tests do not serialize: the same record
crosses at `ValidatingBackend.machine`."""
BASE = ("gossamer_support", "gossamer_ir", "gossamer_machine", "gossamer_heuristics")
PROPERTIES = (property, functools.cached_property)


def imports_across_borders(distributions):
    """The objects that a package imports from another one, each with the module that it is imported from."""
    for distribution in distributions:
        for path in distribution.source.rglob("*.py"):
            for node in nodes_of(tree_of(path.read_text()), ast.ImportFrom):
                if node.level == 0:
                    package = node.module.partition(".")[0]
                    if package.startswith("gossamer") and package not in (
                        distribution.package,
                        *BASE,
                    ):
                        yield from ((node.module, alias.name) for alias in node.names)


def carries_data(function):
    for inside in ("fget", "func"):
        function = getattr(function, inside, function)
    function = inspect.unwrap(function)
    annotations = getattr(function, "__annotations__", {})
    return any(DATA.search(str(annotation)) for annotation in annotations.values())


def members(cls):
    """Public methods and properties, and the constructor."""
    for name, value in vars(cls).items():
        is_public = not name.startswith("_") or name == "__init__"
        if is_public and (inspect.isfunction(value) or isinstance(value, PROPERTIES)):
            yield name, value


def is_protocol(cls):
    return Protocol in cls.__bases__


def borders_of(home, name):
    """The parts of an imported object that the table must contain; protocols stand for their
    implementations."""
    crossed = getattr(importlib.import_module(home), name)
    if inspect.isclass(crossed) and name not in DATA_OF_BACKEND and not is_protocol(crossed):
        return {(crossed, member) for member, value in members(crossed) if carries_data(value)}
    if inspect.isfunction(crossed) or hasattr(crossed, "cache_info"):
        return {(None, name)} if carries_data(crossed) else set()
    return set()


def listed():
    for border in BORDERS:
        owner, _, name = border.name.rpartition(".")
        yield (getattr(importlib.import_module(border.home), owner) if owner else None, name)


@pytest.mark.unserialized  # other tests of the sources parse the same files
def test_every_border_of_the_code_is_in_the_table(distributions):
    needed = set().union(
        *(borders_of(*crossing) for crossing in imports_across_borders(distributions))
    )
    assert needed >= FOR_USERS | FOR_TORCH
    assert len(needed) > 15
    missing = [
        f"{owner.__name__ if owner else ''}.{name}"
        for owner, name in needed - FOR_USERS - FOR_TORCH - set(listed())
    ]
    assert missing == [], "tests/pytest_plugins/wire.py has a table of borders; these are not in it"


def test_the_table_has_every_border_once():
    assert len(set(BORDERS)) == len(BORDERS)
    by_caller = {(border.package, *names) for border, names in zip(BORDERS, listed(), strict=True)}
    assert len(by_caller) == len(BORDERS)


def test_the_backend_of_each_plugin_is_in_the_table(distributions):
    backends = [
        member
        for distribution in distributions
        if distribution.folder.parent.name == "plugins"
        for member in vars(importlib.import_module(f"{distribution.package}.backend")).values()
        if inspect.isclass(member) and hasattr(member, "api_version") and not is_protocol(member)
    ]
    assert len(backends) > 1
    for backend in backends:
        data = {(backend, name) for name, value in members(backend) if carries_data(value)}
        assert data
        assert data <= set(listed())


SIGNATURE = Signature("f", (), (), ())
VALUES = [
    Module("flat", (), "main"),
    Target("toy", (("cpu", "any"),)),
    Schedule(loop=(Step("unroll", {"loop": "i"}),)),
    (Step("unroll", {"loop": "i"}), Step("vectorize", {"loop": "j"})),
    Stats(rows=3, columns=2, nnz=1, longest_row=1, empty_rows=2),
    Artifact("toy", "1.0", "toy", SIGNATURE, b"code"),
    [Target("toy")],
    (InRange("X", index(0), index(9)), Monotone("X")),
]


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_data_goes_through_bytes(value):
    decoded = through(value)
    assert decoded == value
    assert decoded is not value


@pytest.mark.parametrize("value", [None, "text", 3, (), {"a": 1}, np.arange(3), (np.arange(3), 1)])
def test_what_is_not_data_stays_as_it_is(value):
    assert through(value) is value


def test_a_call_is_forced_through_bytes_there_and_back():
    border, seen = Border("a", "b", "c", "d"), []
    target = Target("toy")
    crossing = forced((border,), lambda value, number: seen.append((value, number)) or target)
    assert crossing(target, number=3) == target
    assert seen == [(target, 3)]
    assert seen[0][0] is not target
    assert CROSSED.pop(border) == 2


def test_a_run_that_crosses_no_border_fails_and_says_so(root, tmp_path):
    (tmp_path / "test_nothing.py").write_text("def test_nothing(): pass\n")
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "tests.pytest_plugins.wire",
        "-p",
        "no:cacheprovider",
    ]
    done = subprocess.run(
        [*command, str(tmp_path)], cwd=root, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (1, "")
    assert "1 passed" in done.stdout
    assert done.stdout.count("No test crosses") == len(BORDERS)


def test_a_call_crosses_the_border_of_its_caller():
    borders = [Border(caller, "c", "gossamer_c.d", "e") for caller in ("a", "b")]
    crossing = forced(borders, lambda target: target)
    for caller, counts in (("gossamer_b.x", [0, 2]), ("gossamer_c", [0, 0]), ("test", [2, 0])):
        call = eval("lambda function, target: function(target)", {"__name__": caller})
        assert call(crossing, Target("toy")) == Target("toy")
        assert [CROSSED.pop(border, 0) for border in borders] == counts
