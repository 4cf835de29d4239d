"""Regression tests: schedule steps that once changed the meaning of a program with sparse axes. Each is now
rejected, or correct.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from gossamer_ir.interchange.records import Step
from gossamer_ir.script import parse_module
from tests.fuzzing.checks.disagreements import Verdict, verdict_of
from tests.fuzzing.programs.program import Program
from tests.fuzzing.schedules.sequences import kept
from tests.regressions.refusals import refusals
from tests.regressions.sparse_programs import (
    ALLOCATED,
    ATTACHED,
    BESIDE,
    COPIED,
    FIBERS,
    FIVE,
    FOUR,
    FUSED,
    GATHERED,
    INDEXED,
    MEETING,
    MODULO,
    MORE_ROWS,
    NESTED,
    OFFSETS_ALONE,
    OTHER_ROWS,
    PADDED,
    PADDED_ROW,
    PARTLY_KNOWN,
    PARTS,
    PRODUCTS,
    RAGGED,
    ROWS,
    SLOTTED,
    STORED,
    SUMMED,
    SUMS,
    TWOFOLD,
    UNSIZED,
)

pytestmark = pytest.mark.no_error_examples

I32 = np.int32

IN_PARTS = (
    Step("prefetch", {"block": "step", "buffer": "X_data", "loop": "j", "distance": 1}),
    Step("split", {"loop": "j", "factors": (None, 3)}),
)
"""A loop whose body is more than a nest gets a condition when it is split."""

CASES = {
    "an init stays before all iterations of a reduction whose loop is lifted out of its block": (
        RAGGED,
        {"y": np.full(3, 7, I32), "indptr_j": np.array([0, 2, 2, 3], I32), "n0": 3, "n1": 3},
        {"position": (Step("lift_loop", {"loop": "j"}),)},
        "schedule.lift_loop.init",
    ),
    "an init of one element for all outer iterations does not become an assignment in each": (
        BESIDE,
        {"y": np.full(2, 7, I32), "z": np.zeros(6, I32), "n0": 3, "n1": 2},
        {
            "coordinate": (
                Step("sparse_compute_at", {"iteration": "first", "into": "second", "var": "k"}),
            )
        },
        "schedule.sparse_compute_at.init",
    ),
    "no search starts after the last fiber": (
        SLOTTED,
        {
            "y": np.zeros(3, I32), "b": np.arange(6, dtype=I32),
            "indices_m": np.array([0, 1, 1, 2, 4, 5], I32), "n0": 3, "n1": 2,
        },
        {
            "loop": (
                Step("prefetch", {"block": "step", "buffer": "B_data", "loop": "k", "distance": 4}),
            )
        },
    ),
    "an element that a reduction selects is initialized where the rest of it is empty": (
        MEETING,
        {"y": np.full(2, 7, I32), "indptr_j": np.zeros(4, I32), "n0": 3, "n1": 3, "n2": 2},
        {"position": (Step("fuse", {"loops": ("k", "j")}),)},
        "schedule.fuse.not_proved",
    ),
    "parallel iterations do not share a cache": (
        ROWS,
        {"x": np.arange(3, dtype=I32), "y": np.zeros(12, I32), "n0": 3, "n1": 4},
        {
            "loop": (
                Step("parallel", {"loop": "i"}),
                Step("reindex_cache_read", {"block": "inner", "buffer": "X_data",
                                            "scope": "local"}),
            )
        },
        "schedule.reindex_cache_read.race",
    ),
    "an aligned loop over a fiber that does not exist has no iterations": (
        ATTACHED,
        {
            "x": np.array([True, False, True]), "y": np.zeros(3, I32),
            "indptr_j": np.array([0, 2, 3], I32), "n0": 2, "n1": 3, "n2": 3,
        },
        {"loop": (Step("align", {"loop": "j", "buffer": "Y_data", "lanes": 4}),)},
    ),
    "a loop over a buffer of bools can be aligned": (
        ATTACHED,
        {
            "x": np.array([True, False, True]), "y": np.zeros(3, I32),
            "indptr_j": np.array([0, 2, 3], I32), "n0": 2, "n1": 3, "n2": 3,
        },
        {"loop": (Step("align", {"loop": "j", "buffer": "X_data", "lanes": 2}),)},
    ),
    "an aligned loop evaluates only what the original loop does": (
        ATTACHED,
        {
            "x": np.array([True, False, True]), "y": np.zeros(3, I32),
            "indptr_j": np.array([0, 2, 3], I32), "n0": 2, "n1": 3, "n2": 3,
        },
        {
            "position": (Step("split", {"loop": "k", "factors": (None, 2)}),
                         Step("split", {"loop": "j", "factors": (2, None)})),
            "loop": (Step("align", {"loop": "j_1", "buffer": "Y_data", "lanes": 2}),),
        },
        "schedule.align.not_proved",
    ),
    "a parallel loop is passed the addresses that its alignment needs": (
        NESTED,
        {"x": np.arange(4, dtype=I32), "y": np.zeros(12, I32), "n0": 3, "n1": 4},
        {
            "loop": (Step("parallel", {"loop": "i"}),
                     Step("align", {"loop": "j", "buffer": "X_data", "lanes": 4})),
        },
    ),
    "conditions of an enclosing block hold at a prefetch": (
        RAGGED,
        {"y": np.full(3, 7, I32), "indptr_j": np.array([0, 2, 2, 3], I32), "n0": 3, "n1": 3},
        {
            "loop": (Step("prefetch", {"block": "outer", "buffer": "J_indptr", "loop": "i",
                                       "distance": 1}),)
        },
    ),
    "a parallel loop keeps the facts about its arrays": (
        PRODUCTS,
        {
            "x": np.zeros(5, I32), "indptr_j": np.array([0, 2, 2, 3], I32),
            "indptr_l": np.array([0, 1, 1, 4], I32), "offsets": np.array([0, 2, 2, 5], I32),
            "n0": 3, "n1": 3,
        },
        {"position": (Step("parallel", {"loop": "l"}),)},
    ),
    "a guard of a buffer that a loop allocates stays in the loop": (
        GATHERED,
        {"x": np.arange(4, dtype=I32), "y": np.zeros(12, I32), "n0": 3, "n1": 4},
        {
            "loop": (
                Step("cache_read", {"block": "step", "buffer": "X_data", "scope": "local"}),
                Step("cache_read", {"block": "step", "buffer": "X_data_local", "scope": "local"}),
                Step("compute_at", {"block": "step_X_data_local_local", "loop": "i"}),
            )
        },
    ),
    "a copy of a copy ends where the fibers of the tile do that it moves into": (
        FIBERS,
        {
            "x": np.arange(7, dtype=I32), "y": np.zeros(7, I32),
            "indptr_j": np.array([0, 3, 3, 4], I32), "indices_j": np.array([0, 1, 4, 2], I32),
            "indptr_k": np.array([0, 1, 1, 3, 7], I32), "n0": 3, "n1": 5, "n2": 4, "n3": 7,
        },
        {
            "position": (
                Step("cache_write", {"block": "step", "buffer": "Y", "scope": "local"}),
                Step("cache_write", {"block": "step_Y_local", "buffer": "Y", "scope": "global"}),
                Step("split", {"loop": "j_c", "factors": (None, 2)}),
                Step("reverse_compute_at", {"block": "step_Y_local_Y_global", "loop": "j_c_0"}),
            )
        },
    ),
    "the region that an inner block consumes is expressed in loop variables": (
        SUMMED,
        {
            "x": np.arange(3, dtype=I32), "y": np.full(3, 7, I32),
            "indptr_j": np.array([0, 2, 2, 3], I32), "n0": 3, "n1": 3,
        },
        {
            "loop": (
                Step("cache_read", {"block": "step", "buffer": "X_data", "scope": "local"}),
                Step("split", {"loop": "j", "factors": (None, 4)}),
                Step("blockize", {"loop": "j_0"}),
                Step("compute_at", {"block": "step_X_data_local", "loop": "i"}),
            )
        },
    ),
    "prefetches in a moved block use the variables of its new loops": (
        TWOFOLD,
        {
            "x": np.arange(6, dtype=I32), "y": np.zeros(6, I32), "w": np.arange(3, dtype=I32),
            "z": np.zeros(3, I32), "n0": 3, "n1": 2,
        },
        {
            "loop": (
                Step("prefetch", {"block": "inner", "buffer": "X_data", "loop": "j",
                                  "distance": 1}),
                Step("reindex_cache_read", {"block": "outer", "buffer": "W_data",
                                            "scope": "global"}),
                Step("reverse_compute_at", {"block": "outer", "loop": "i_c"}),
            )
        },
    ),
    "no prefetch is indexed by a buffer that each iteration allocates": (
        INDEXED,
        {
            "p": np.array([2, 0, 1], I32), "x": np.arange(3, dtype=I32), "y": np.zeros(6, I32),
            "n0": 3, "n1": 2,
        },
        {
            "loop": (
                Step("cache_read", {"block": "step", "buffer": "P_data", "scope": "local"}),
                Step("compute_at", {"block": "step_P_data_local", "loop": "j"}),
                Step("prefetch", {"block": "step", "buffer": "X_data", "loop": "i",
                                  "distance": 1}),
            )
        },
        "schedule.prefetch.changing",
    ),
    "a cache is copied where the reduction ends, not where one of its loops does": (
        PARTS,
        {"x": np.zeros(0, I32), "y": np.full(2, 7, I32), "n0": 2, "n1": 0, "n2": 3},
        {"loop": (*IN_PARTS, Step("cache_write", {"block": "step", "buffer": "Y_data",
                                                  "scope": "local"}))},
    ),
    "an init stays outside of all loops of its reduction": (
        PARTS,
        {"x": np.arange(1, 5, dtype=I32), "y": np.zeros(2, I32), "n0": 2, "n1": 4, "n2": 3},
        {"loop": (*IN_PARTS, Step("decompose_reduction", {"block": "step", "loop": "i"}))},
        "schedule.decompose_reduction.too_deep",
    ),
    "an init leaves all loops of its reduction": (
        PARTS,
        {"x": np.arange(1, 5, dtype=I32), "y": np.zeros(2, I32), "n0": 2, "n1": 4, "n2": 3},
        {"loop": (*IN_PARTS, Step("decompose_reduction", {"block": "step", "loop": "j_0"}))},
    ),
    "the weight of a loop that also runs an init is that of its iterations": (
        SUMMED,
        {
            "x": np.arange(3, dtype=I32), "y": np.full(3, 7, I32),
            "indptr_j": np.array([0, 2, 2, 3], I32), "n0": 3, "n1": 3,
        },
        {
            "position": (
                Step("split", {"loop": "j", "factors": (2, None, 2)}),
                Step("parallel", {"loop": "i", "weight": "T.int64(J_indptr[i]) + 2 * i",
                                  "grain": 1}),
            )
        },
    ),
    "the size of a cache is read from an index array": (
        UNSIZED,
        {
            "y": np.zeros(2, I32), "indptr_j": np.array([0, 0, 2], I32),
            "indptr_k": np.array([0, 2, 3], I32), "indices_k": np.array([0, 1, 1], I32),
            "indptr_l": np.array([0, 1, 1, 3], I32), "n0": 2, "n1": 2, "n2": 2,
        },
        {
            "position": (Step("cache_read", {"block": "step", "buffer": "L_indptr_flat",
                                             "scope": "local"}),),
        },
    ),
    "an init keeps conditions on sizes": (
        PADDED,
        {
            "y": np.zeros(3, I32), "indptr_j": np.array([0, 2, 3], I32),
            "indices_j": np.array([0, 2, 2], I32), "indptr_k": np.array([0, 1, 1, 3], I32),
            "n0": 2, "n1": 3,
        },
        {
            "coordinate": (Step("sparse_fuse", {"iteration": "step", "axes": ("I", "J")}),),
            "position": (Step("decompose_reduction", {"block": "step", "loop": "i_j"}),),
        },
    ),
    "parts that do not start are not combined": (
        FIVE,
        {"y": np.array([1, 2, 3], I32), "n0": 3},
        {
            "loop": (
                Step("split", {"loop": "j", "factors": (None, 2, 4)}),
                Step("split", {"loop": "j_0", "factors": (None, 3)}),
                Step("blockize", {"loop": "j_0_1"}),
                Step("lift_loop", {"loop": "j_0_1"}),
                Step("rfactor", {"loop": "j_1", "axis": 1}),
            )
        },
    ),
    "a loop that an init needs has an iteration": (
        FUSED,
        {"y": np.array([-2, 3], I32), "indptr_k": np.zeros(4, I32), "n0": 2, "n1": 3, "n2": 2},
        {
            "position": (
                Step("fuse", {"loops": ("j", "k")}),
                Step("cache_write", {"block": "step", "buffer": "Y", "scope": "local"}),
            )
        },
        "schedule.fuse.not_proved", "schedule.cache_write.not_proved",
    ),
    "a buffer that a guard names is not removed": (
        STORED,
        {
            "indptr_k": np.array([0, 1, 2], I32),
            "indices_k": np.array([0, 1], I32), "indptr_m": np.array([0, 1, 2], I32),
            "indices_m": np.array([0, 1], I32), "n0": 2, "n1": 2,
        },
        {
            "position": (
                Step("reindex_cache_write", {"block": "inner", "buffer": "B", "scope": "global"}),
                Step("compute_inline", {"block": "inner_B_global"}),
            )
        },
        "schedule.compute_inline.other_access",
    ),
    "lanes do not share a cache": (
        FOUR,
        {"x": np.arange(4, dtype=I32), "y": np.zeros(4, I32)},
        {
            "loop": (
                Step("blockize", {"loop": "i"}),
                Step("lift_loop", {"loop": "i"}),
                Step("vectorize", {"loop": "i"}),
                Step("reindex_cache_read", {"block": "step", "buffer": "X_data",
                                            "scope": "local"}),
            )
        },
        "schedule.reindex_cache_read.race",
    ),
    "an init does not leave the loop that allocates its buffer": (
        ALLOCATED,
        {"n0": 2},
        {
            "loop": (
                Step("cache_write", {"block": "step", "buffer": "B_data", "scope": "local"}),
                Step("compute_at", {"block": "step", "loop": "i_c"}),
                Step("compute_inline", {"block": "step_B_data_local"}),
                Step("decompose_reduction", {"block": "step", "loop": "i_c"}),
            )
        },
        "schedule.decompose_reduction.inner",
    ),
    "an old value that is not used need not exist": (
        PADDED_ROW,
        {"y": np.arange(4, dtype=I32), "indices_j": np.array([2, 2, 0, 1], I32), "n0": 2},
        {"position": (Step("cache_write", {"block": "step", "buffer": "Y", "scope": "local"}),)},
        "schedule.cache_write.not_proved",
    ),
    "an element that nothing is added to need not exist": (
        PARTLY_KNOWN,
        {
            "y": np.arange(3, dtype=I32), "p": np.array([0, 99, 2], I32),
            "indptr_j": np.array([0, 2, 2, 3], I32), "n0": 3, "n1": 3,
        },
        {
            "position": (
                Step("reindex_cache_write", {"block": "step", "buffer": "Y", "scope": "local"}),
            )
        },
        "schedule.reindex_cache_write.not_proved",
    ),
    "the bound of lanes is not evaluated if the loop has no iteration": (
        MORE_ROWS,
        {"y": np.arange(6, dtype=I32), "indptr_k": np.array([0, 1, 5, 5], I32), "n0": 3},
        {
            "loop": (
                Step("split", {"loop": "k", "factors": (None, 4)}),
                Step("vectorize", {"loop": "k_1", "remainder": "masked"}),
            )
        },
    ),
    "an init does not run before its buffer is allocated": (
        SUMS,
        {"y": np.arange(3, dtype=I32), "indptr_j": np.array([0, 2, 2, 5], I32), "n0": 3, "n1": 5},
        {
            "position": (
                Step("reindex_cache_write", {"block": "step", "buffer": "Y", "scope": "local"}),
                Step("compute_at", {"block": "step", "loop": "i_c"}),
                Step("split", {"loop": "j", "factors": (2, None)}),
            )
        },
        "schedule.split.not_proved",
    ),
    "rows that do not exist have no length": (
        COPIED,
        {
            "y": np.zeros(4, I32), "b": np.arange(4, dtype=I32),
            "indptr_j": np.array([0, 2, 2, 4], I32), "n0": 3, "n1": 4,
        },
        {
            "position": (
                Step("cache_read", {"block": "step", "buffer": "B", "scope": "local"}),
                Step("blockize", {"loop": "j"}),
                Step("split", {"loop": "i", "factors": (2, None)}),
            ),
            "loop": (Step("compute_at", {"block": "step_B_local", "loop": "i_1"}),),
        },
    ),
    "all points of a reduction that write one element are computed": (
        MODULO,
        {"x": np.arange(5, dtype=I32), "y": np.zeros(5, I32), "n0": 5},
        {"position": (Step("compute_at", {"block": "make", "loop": "i"}),)},
    ),
    "the region that one row consumes does not overlap others": (
        OTHER_ROWS,
        {
            "x": np.arange(6, dtype=I32), "y": np.zeros(2, I32),
            "indptr_j": np.array([0, 2, 3, 6], I32), "n0": 3, "n1": 6, "n2": 2,
        },
        {
            "position": (
                Step("fuse", {"loops": ("k", "l")}),
                Step("compute_at", {"block": "make", "loop": "m"}),
            )
        },
        "schedule.fuse.not_proved",
    ),
    "a pointer to offsets stays bound even if their buffer is removed": (
        OFFSETS_ALONE,
        {
            "y": np.zeros(2, I32), "indptr_j": np.array([0, 1, 3], I32),
            "indptr_k": np.array([0, 2, 3], I32), "offsets": np.array([0, 2, 4], I32),
            "n0": 2, "n1": 3,
        },
        {"position": (Step("compute_inline", {"block": "unread"}),)},
    ),
}  # fmt: skip
"""Scripts, their arguments, steps by stage, and the codes of those that are rejected."""


@pytest.mark.parametrize("name", CASES)
def test_the_schedule_is_refused_or_changes_no_result(name):
    text, values, traces, *refused = CASES[name]
    arrays = {key: value for key, value in values.items() if isinstance(value, np.ndarray)}
    sizes = {key: value for key, value in values.items() if key not in arrays}
    module = parse_module(text)
    assert refusals(module, traces) == refused
    program = Program(module, arrays, sizes)
    assert verdict_of(program, native=True, schedule=partial(kept, traces)) == Verdict()
