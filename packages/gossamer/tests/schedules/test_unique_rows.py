"""If each row is stored once, its rows are processed in parallel, also after fusion with the loop above; if
rows may be stored twice, they are not.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from stepwise_schedules import require_schedule, step

from gossamer_ir.errors import ScheduleError
from gossamer_ir.nodes import Module
from gossamer_ir.script import parse_module
from gossamer_lower import lower_buffers, lower_iterations
from gossamer_schedule import ScheduleBuilder

ROWS = """
@T.prim_func
def rows(a: T.handle, y: T.handle, indptr: T.handle, indices: T.handle, m: T.int64, count: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 2})
    O = T.sp.dense_fixed(PARENTS)
    I = T.sp.compressed_varied(O, (m, count), (indptr, indices)FLAGS)
    D = T.sp.dense_fixed(m)
    A = T.sp.match_buffer(a, (O, I), "float32")
    Y = T.sp.match_buffer(y, (D,), "float32")
    with T.sp.iteration([O, I], "SS", "scale") as [o, i]:
        BODY
"""
ADD = "Y[i] = Y[i] + A[o, i]"


def module_of(stage: str, *, parents: str = "1", flags: str = "", body: str = ADD) -> Module:
    texts = {"PARENTS": parents, "FLAGS": flags, "BODY": body}
    text = ROWS
    for name, put in texts.items():
        text = text.replace(name, put)
    builder = ScheduleBuilder(parse_module(text)).sparse_fuse("scale", axes=("O", "I"))
    position = lower_iterations(builder.module)
    return position if stage == "position" else lower_buffers(position)


def case(rows: int, stored: list[int]) -> Any:
    a = np.arange(1, len(stored) + 1, dtype=np.float32)
    y = np.arange(rows, dtype=np.float32)
    expected = y.copy()
    np.add.at(expected, stored, a)
    arguments = {
        "a": a, "y": y, "indptr": np.array([0, len(stored)], np.int32), "m": rows,
        "indices": np.array(stored, np.int32), "count": len(stored),
    }  # fmt: skip
    return arguments, {"y": expected}


CASES = [case(0, []), case(5, []), case(1, [0]), case(9, [1, 2, 5, 8]), case(7, [*range(7)])]
FORMS = {
    "whole": (step("parallel", "o_i"),),
    "split": (step("split", "o_i", factors=(None, 3, 2)), step("parallel", "o_i_0")),
    "inner": (step("split", "o_i", factors=(None, 4)), step("parallel", "o_i_1")),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("stage", ["position", "loop"])
def test_unique_rows_run_in_parallel(form, stage):
    require_schedule(module_of(stage), CASES, **{stage: FORMS[form]})


REFUSED = {
    "a row may stand there twice": {"flags": ", unique=False"},
    "rows are in no order": {"flags": ", sorted=False"},
    "padding repeats a row": {"flags": ", padded=True"},
    "two parents may have the same row": {"parents": "2"},
    "there may be several parents": {"parents": "m"},
    "the next row is touched, too": {"body": "Y[i] = Y[(i + 1) % m] + A[o, i]"},
    "two rows make one": {"body": "Y[i // 2] = Y[i // 2] + A[o, i]"},
}


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("stage", ["position", "loop"])
def test_rows_that_may_conflict_do_not_run_in_parallel(name, form, stage):
    builder = ScheduleBuilder(module_of(stage, **REFUSED[name]))
    *before, (_, (loop,), _) = FORMS[form]
    for op, names, options in before:
        getattr(builder, op)(*names, **options)
    with pytest.raises(ScheduleError) as caught:
        builder.parallel(loop)
    assert caught.value.code in ("schedule.parallel.not_proved", "schedule.parallel.race")


@pytest.mark.parametrize("stage", ["position", "loop"])
def test_rows_that_may_conflict_are_accumulated(stage):
    stored = [0, 0, 2, 2, 2, 4]
    module = module_of(stage, flags=", unique=False")
    steps = (step("parallel", "o_i", accumulate="atomic"),)
    require_schedule(module, [case(5, stored), case(3, [])], **{stage: steps})
