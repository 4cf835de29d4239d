"""The recipe "Add a pass" in docs/extending is complete: a file, a line in the list of a pipeline, and the
generators that the recipe names are enough for the pipeline, `gossamer opt` and the documents."""

from __future__ import annotations

import re
import sys
from importlib import import_module

import pytest

from gossamer_ir.errors import InternalError
from gossamer_ir.script import parse_module, print_module
from gossamer_lower import lower_to_flat
from gossamer_lower.lowering_pass import listed_records
from gossamer_lower.pass_order import require_order
from gossamer_lower.passes import ORDERED_PASSES
from gossamer_lower.pipelines.pass_manager import PassManager
from gossamer_lower.pipelines.pipeline_step import PipelineStep
from gossamer_testkit.examples import program
from gossamer_testkit.show import body_text
from tests.recipes.recipe_pages import recipe
from tests.recipes.repository_copy import copy_repository

pytestmark = pytest.mark.unserialized

NAME = "remove_overwritten_stores"
EARLIER, LATER = "unswitch_uniform_conditions", "insert_bounds_checks"
FILE = '''\
"""Removes stores of values that the next statement overwrites."""

from __future__ import annotations

from gossamer_ir.nodes import Module, Stmt, Store
from gossamer_ir.traversal.buffer_uses import buffers_accessed
from gossamer_lower.lowering_pass import lowering_pass, map_functions
from gossamer_lower.statements.point_visitor import PointVisitor
from gossamer_lower.statements.rebuild import with_body


@lowering_pass(
    takes=("loop",),
    without=("blocks",),
    before={"insert_bounds_checks": "a store that is gone needs no check"},
)
def remove_overwritten_stores(module: Module) -> Module:
    """Remove each store that the next statement overwrites.

    >>> from gossamer_testkit.examples import program
    >>> from gossamer_testkit.show import body_text
    >>> before = program("Y[0] = 1.0; Y[0] = X[0]".replace("; ", chr(10)))
    >>> print(body_text(remove_overwritten_stores(before)))
    Y[0] = X[0]
    """
    return map_functions(
        module, lambda function: with_body(function, _Remover(function).body(function.body))
    )


class _Remover(PointVisitor):
    """Removes the stores of one function."""

    def body(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        pairs = zip(body, (*body[1:], None), strict=True)
        return super().body(tuple(stmt for stmt, later in pairs if not _is_lost(stmt, later)))


def _is_lost(stmt: Stmt, later: Stmt | None) -> bool:
    match stmt, later:
        case Store(predicate=None), Store(predicate=None):
            is_same = (stmt.buffer, stmt.indices) == (later.buffer, later.indices)
            return is_same and stmt.buffer not in buffers_accessed(later.value, *later.indices)
    return False
'''
TEXT = """\
@T.prim_func
def doubled(x: T.handle, y: T.handle, n: T.int64):
    T.stage("loop")
    X = T.match_buffer(x, (n,), "float32")
    Y = T.match_buffer(y, (n,), "float32")
    for i in T.serial(n):
        Y[i] = T.float32(7)
        Y[i] = X[i] * T.float32(2)
        Y[i] = Y[i] + X[i]
"""


@pytest.fixture(scope="module")
def followed(root, tmp_path_factory):
    """A copy of the repository after the recipe."""
    copy = copy_repository(root, tmp_path_factory.mktemp("copy"), package="lower")
    copy.write(f"loops/{NAME}.py", FILE)
    copy.insert("pipelines/flat_passes.py", f"    {NAME},\n", after=f"    {EARLIER},")
    (generators,) = re.findall(
        r"`python -m tools\.generate ([\w ]+)` \|", recipe(root, "Add a pass")
    )
    # The page of accepted programs takes longest, and no code reads it.
    names = generators.split()
    names.remove("accepted")
    assert [name.rpartition("/")[2] for name in copy.generate(*names)] == [
        "flat_passes.py", "flat_steps.py", "__init__.py", "__init__.py", "README.md", "architecture.md"
    ]  # fmt: skip
    return copy


def test_the_pipeline_runs_a_new_pass(followed):
    assert "7.0" in print_module(lower_to_flat(parse_module(TEXT)))
    (followed.folder / "program.txt").write_text(TEXT)
    lowered = followed.gossamer("opt", "program.txt", "--verify-each", "--pass", "lower_to_flat")
    assert "7.0" not in lowered
    calls = f"""
import doctest
from pathlib import Path
import numpy as np
import gossamer as gs
from gossamer_lower import {NAME}
from gossamer_lower.loops import {NAME} as home
print(doctest.testmod(home))
kernel = gs.compile(Path("program.txt").read_text())
y = np.zeros(5, np.float32)
kernel(np.arange(5, dtype=np.float32), y, 5)
print(y.tolist())
"""
    assert followed.run("-c", calls).splitlines() == [
        "TestResults(failed=0, attempted=4)",
        "[0.0, 3.0, 6.0, 9.0, 12.0]",
    ]


def test_a_new_pass_is_listed_and_documented(followed):
    assert f"  {NAME} " in followed.gossamer("opt", "--list")
    readme = (followed.folder / "packages/lower/README.md").read_text()
    sentence = "Remove each store that the next statement overwrites"
    assert f"| `{NAME}` | loop | {sentence} |" in readme
    assert f"| `{NAME}` before `{LATER}` | a store that is gone needs no check |" in readme
    assert f"`{NAME}`" in (followed.folder / "docs/architecture.md").read_text()


@pytest.fixture
def new_pass(tmp_path, monkeypatch):
    """A function that returns the pass of a text, which this process imports."""
    monkeypatch.syspath_prepend(tmp_path)

    def import_pass(text):
        sys.modules.pop(NAME, None)
        (tmp_path / f"{NAME}.py").write_text(text)
        return getattr(import_module(NAME), NAME)

    yield import_pass
    sys.modules.pop(NAME, None)


def records_with(function, *, after):
    """Return the records of all passes, with that of a new one after another."""
    names = [other.__name__ for other in ORDERED_PASSES]
    place = names.index(after) + 1
    return listed_records([*ORDERED_PASSES[:place], function, *ORDERED_PASSES[place:]])


def test_the_list_refuses_a_new_pass_at_a_place_that_it_does_not_allow(new_pass):
    function = new_pass(FILE)
    require_order(records_with(function, after=EARLIER))
    message = f"listed after '{LATER}', but must run before it: a store that is gone needs no"
    with pytest.raises(InternalError, match=message):
        require_order(records_with(function, after=LATER))
    message = f"'{NAME}' takes a module without blocks, but no pass that is listed before it"
    with pytest.raises(InternalError, match=message):
        require_order(records_with(function, after="expand_reducers"))


def test_the_list_refuses_a_new_pass_that_declares_no_order(new_pass):
    function = new_pass(re.sub(r"    before=.*\n", "", FILE))
    with pytest.raises(InternalError, match="declares neither `after` nor `before`"):
        require_order(records_with(function, after=EARLIER))


def test_the_list_refuses_a_new_pass_without_the_decorator(new_pass):
    function = new_pass(re.sub(r"@lowering_pass\(\n(    .*\n)*\)\n", "", FILE))
    with pytest.raises(InternalError, match=f"'{NAME}' is listed as a pass, but has no decorator"):
        records_with(function, after=EARLIER)


def test_the_pass_manager_runs_and_verifies_a_new_pass(new_pass):
    steps = (PipelineStep(NAME, NAME),)
    manager = PassManager(steps=steps, is_verifying=True)
    module = program("for i in T.serial(n):\n    Y[i] = 7.0\n    Y[i] = X[i]")
    new_pass(FILE)
    assert body_text(manager.run(module)) == "for i in T.serial(n):\n    Y[i] = X[i]"
    new_pass(FILE.replace("if not _is_lost(stmt, later)", "if later is None"))
    let = program("for i in T.serial(n):\n    a = X[i]\n    Y[i] = a")
    message = f"The pass '{NAME}' returned a wrong module: The variable 'a' is not defined"
    with pytest.raises(InternalError, match=message):
        manager.run(let)
