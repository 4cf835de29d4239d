"""The recipe "Add a primitive" in docs/extending is complete: a file and the generators that the recipe names
are enough for calls, builders, traces, rules, `gossamer opt` and the documents."""

from __future__ import annotations

import re

import pytest

from tests.recipes.recipe_pages import recipe
from tests.recipes.repository_copy import copy_repository

pytestmark = pytest.mark.unserialized

NAME = "reverse_loop"
FILE = '''\
"""`reverse_loop`: run the iterations of a loop in the opposite order."""

from __future__ import annotations

from msgspec.structs import replace

from gossamer_ir.core.build import ONE, add, index_var, sub
from gossamer_ir.nodes import Function
from gossamer_ir.traversal.substitute import substitute_body
from gossamer_schedule.cursor.cursor_at import Cursor
from gossamer_schedule.cursor.find import find_loop
from gossamer_schedule.cursor.requirements import LOOP_STAGES, require_serial, require_zero_start
from gossamer_schedule.definition.change import Change
from gossamer_schedule.definition.primitive import primitive
from gossamer_schedule.legality.races import require_no_race


@primitive(stages=LOOP_STAGES)
def reverse_loop(root: Cursor[Function], loop: str, *, function: str | None = None) -> Change:
    """Run the iterations of a serial loop from the last one to the first one.

    The result's name is that of the loop.

    Raises `ScheduleError` with a code `schedule.reverse_loop.*`:

    * `.race`, `.not_proved`: an iteration reads or writes what another one writes

    >>> from gossamer_testkit.examples import SCALE
    >>> from gossamer_testkit.show import body_text
    >>> print(body_text(reverse_loop(SCALE, "i").module))
    for i in T.serial(n):
        with T.block("scale"):
            vi = T.axis.spatial(n, n - 1 - i)
            Y[vi] = X[vi] * 2.0
    """
    cursor = find_loop(root, loop=loop)

    require_serial(cursor)
    require_zero_start(cursor)
    require_no_race(cursor)

    last = sub(cursor.node.extent, ONE)
    body = substitute_body(cursor.node.body, {loop: sub(last, index_var(loop))})

    return Change(cursor.replace_with((replace(cursor.node, body=body),)), (loop,))
'''
GENERATED = [
    "trace/primitive_table.py",
    "trace/fluent_primitives.py",
    "rules/steps/step_recorder.py",
    "__init__.py",
]
"""The files of the package that follow from the folder of primitives."""
TEXT = """\
@T.prim_func
def shifted(x: T.handle, y: T.handle):
    T.stage("loop")
    X = T.match_buffer(x, (9,), "int64")
    Y = T.match_buffer(y, (9,), "int64")
    for i in T.serial(8):
        Y[i] = X[i + 1]
    for j in T.serial(8):
        Y[j + 1] = Y[j]
"""
USES = f"""
import doctest
from pathlib import Path
import numpy as np
import gossamer as gs
from gossamer_ir.errors import ScheduleError
from gossamer_ir.script import parse_module
from gossamer_schedule import PRIMITIVES, {NAME}, replay
from gossamer_schedule.internal_api import trace_from_json
from gossamer_schedule.primitives.loops import {NAME} as home
from gossamer_schedule.rules.steps.step_recorder import StepRecorder

print(doctest.testmod(home))
assert PRIMITIVES["{NAME}"] is {NAME}
module = parse_module(Path("program.txt").read_text())
builder = gs.schedule(module)
assert builder.{NAME}("i").names == ("i",)
called = {NAME}(module, "i")
trace = trace_from_json(builder.to_json())
assert called.module == builder.module == replay(module, trace) != module
steps = []
StepRecorder(steps.append).{NAME}("i")
assert (*steps,) == trace
try:
    builder.{NAME}("j")
except ScheduleError as error:
    print(error.code)
x, y = np.arange(9), np.zeros(9, np.int64)
gs.compile(builder)(x, y)
print(y.tolist())
"""


@pytest.fixture(scope="module")
def followed(root, tmp_path_factory):
    """A copy of the repository after the recipe."""
    copy = copy_repository(root, tmp_path_factory.mktemp("copy"), package="schedule")
    copy.write(f"primitives/loops/{NAME}.py", FILE)
    (copy.folder / "program.txt").write_text(TEXT)
    return copy


@pytest.fixture(scope="module")
def generated(root, followed):
    """The files that the generators of the recipe have changed."""
    text = recipe(root, "Add a primitive")
    (names,) = re.findall(r"`python -m tools\.generate ([\w ]+)` writes five files", text)
    return {*followed.generate(*names.split())}


def test_the_generators_write_the_five_files_of_the_recipe(root, generated):
    package = "packages/schedule"
    files = {f"{package}/src/gossamer_schedule/{file}" for file in GENERATED}
    assert generated == {*files, f"{package}/README.md"}
    assert all(f"`{file}`" in recipe(root, "Add a primitive") for file in generated)


def test_a_new_primitive_is_called_recorded_replayed_and_compiled(followed, generated):
    assert followed.run("-c", USES).splitlines() == [
        "TestResults(failed=0, attempted=3)",
        f"schedule.{NAME}.race",
        str([1, 1, 1, 1, 1, 1, 1, 1, 1]),
    ]


def test_a_new_primitive_is_listed_and_documented(followed, generated):
    step = f'{NAME}(loop="i")'
    assert "Y[7 - i] = " in followed.gossamer("opt", "program.txt", "--pass", step)
    assert f"  {NAME}(loop, function=...)\n" in followed.gossamer("opt", "--list")
    readme = (followed.folder / "packages/schedule/README.md").read_text()
    sentence = "Run the iterations of a serial loop from the last one to the first one"
    assert f"| `{NAME}(loop)` | position, loop | {sentence} |" in readme
