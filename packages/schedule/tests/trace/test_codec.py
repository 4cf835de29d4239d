"""Each primitive, written as JSON and as Python and read again, makes the same module.

The calls are those in the docstrings; `OPTIONS` has calls with arguments that no docstring shows.
"""

from __future__ import annotations

import pytest
from docstring_calls import all_calls

from gossamer_ir.interchange.serialization import dumps, loads
from gossamer_ir.script import T
from gossamer_schedule import ScheduleBuilder
from gossamer_schedule.definition.arguments import INTRINSICS
from gossamer_testkit import examples

IN_FOURS = ScheduleBuilder(examples.MATMUL).split("l", factors=(None, 4)).module
ROWS = {"block": "csrmm", "scope": "local"}
OPTIONS = [
    ("fission", (examples.STAGED, ("i",), {"after": "j"})),
    ("loop_partition", (examples.MATMUL, ("l",), {"points": (2, "k // 8 * 8")})),
    ("pipeline", (examples.STAGED, ("i",), {"stages": 3})),
    ("reindex", (examples.SPMM, ("csrmm",), {"buffer": "B", "order": ("vk", "vj")})),
    ("reindex_cache_read", (examples.SPMM, (), ROWS | {"buffer": "B", "order": ("vk", "vj")})),
    ("reindex_cache_write", (examples.SPMM, (), ROWS | {"buffer": "C", "order": ("vk", "vi")})),
    ("rfactor", (IN_FOURS, ("j",), {"axis": 1})),
    ("sample_categorical", (examples.MATMUL, ("tile",), {"candidates": (2, 4), "weights": (1, 3)})),
    ("split", (examples.MATMUL, ("l",), {"factors": (None, "4 * T.vscale()")})),
    ("unsafe_parallel", (examples.MATMUL, ("j",), {"weight": "j + 1", "grain": 4})),
    ("unsafe_vectorize", (IN_FOURS, ("l_1",), {"remainder": "masked"})),
    ("vectorize", (IN_FOURS, ("l_1",), {"remainder": "masked"})),
    ("vectorize", (examples.MATMUL, ("l",), {"lanes": "native"})),
    ("vectorize", (examples.MATMUL, ("l",), {"lanes": 2 * T.vscale()})),
]
CALLS = [*all_calls(), *OPTIONS]


@pytest.mark.parametrize(("op", "call"), CALLS, ids=[op for op, _ in CALLS])
def test_a_step_is_the_same_as_json_and_as_python(op, call):
    module, args, keywords = call
    options = dict(keywords)
    intrinsics = options.pop(INTRINSICS, ())
    builder = ScheduleBuilder(module, intrinsics=intrinsics)
    getattr(builder, op)(*args, **options)
    again = ScheduleBuilder.from_json(module, builder.to_json(), intrinsics=intrinsics)
    assert (again.module, again.trace) == (builder.module, builder.trace)

    names: dict = {}
    exec(builder.to_python(), names)
    written = names["schedule"](ScheduleBuilder(module, intrinsics=intrinsics))
    assert (written.module, written.trace) == (builder.module, builder.trace)
    assert loads(dumps(builder.module)) == builder.module
