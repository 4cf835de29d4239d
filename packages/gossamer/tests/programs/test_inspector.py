"""The inspector kernel searches the row of each element once; the fused kernel reads the results."""

from __future__ import annotations

import numpy as np
import pytest

from gossamer.compilation.build_kernels import KERNELS
from gossamer.compilation.pipeline import lower_by_stage
from gossamer.operators.sddmm import SCRIPT
from gossamer_ir.errors import ArgumentError
from gossamer_ir.interchange.records import Schedule, Step
from gossamer_ir.interpret import run
from gossamer_ir.nodes import Guard, While
from gossamer_ir.script import parse_module, print_module
from gossamer_ir.transform.specialize import specialize
from gossamer_ir.traversal.walk import walk
from gossamer_lower import lower_buffers, lower_iterations, remove_unused_args
from gossamer_lower.passes_by_name import apply_pass
from gossamer_testkit import csr_cases

GROUP = 16
FEATURES = 24


def fused(stage="loop", index="int32"):
    text = SCRIPT.replace("[I, J, K]", "[T.sp.fuse(I, J), K]")
    module = specialize(parse_module(text), {"feat_size": FEATURES}, dtypes={"J": index})
    position = lower_iterations(module)
    return position if stage == "position" else lower_buffers(position)


def grouped():
    """Splits nonzeros into groups and vectorizes the features."""
    steps = (
        ("split", {"loop": "i_j", "factors": (None, GROUP, 4)}),
        ("split", {"loop": "k", "factors": (2, 16)}),
        ("decompose_reduction", {"block": "sddmm", "loop": "k_0"}),
        ("vectorize", {"loop": "k_1", "remainder": "masked"}),
        ("unroll", {"loop": "k_0"}),
        ("unroll", {"loop": "i_j_2"}),
        ("parallel", {"loop": "i_j_0", "grain": 2}),
    )
    return Schedule(loop=tuple(Step(op, args) for op, args in steps))


def flat(module, schedule):
    return list(lower_by_stage(module, schedule))[-1]


def pair(module, dtype):
    return [
        apply_pass(name, module, arguments={"dtype": dtype})
        for name in ("extract_inspector", "use_inspector_results")
    ]


def test_the_main_kernel_searches_nothing_and_guards_nothing():
    _, main = pair(fused(), "int32")
    for schedule in (Schedule(), grouped()):
        nodes = list(walk(flat(main, schedule)))
        assert not any(isinstance(node, (While, Guard)) for node in nodes)


@pytest.mark.parametrize("dtype", ["int32", "int64"])
@pytest.mark.parametrize("index", ["int32", "int64"])
@pytest.mark.parametrize("number", range(len(csr_cases())), ids=[c.name for c in csr_cases()])
def test_rows_are_searched_once_and_read_in_every_call(number, index, dtype):
    case = csr_cases(index_dtype=index)[number]
    first, second = pair(fused(index=index), dtype)
    m, n = case.shape
    row_of = np.repeat(np.arange(m), np.diff(case.indptr))
    arguments = {
        "x": (np.arange(m * FEATURES) % 7 - 3).astype("float32").reshape(m, FEATURES),
        "y": (np.arange(n * FEATURES) % 5 - 2).astype("float32").reshape(n, FEATURES),
        "indptr": case.indptr,
        "indices": case.indices,
    }
    expected = np.einsum("ek,ek->e", arguments["x"][row_of], arguments["y"][case.indices])
    rows = np.full(case.nnz, -7, dtype)
    KERNELS.build_module(first, schedule=Schedule()).kernel(indptr=case.indptr, J_indptr_found=rows)
    np.testing.assert_array_equal(rows, row_of)
    for schedule in (Schedule(), grouped()):
        out = np.full(case.nnz, np.nan, "float32")
        kernel = KERNELS.build_module(second, schedule=schedule).kernel
        _call(kernel, arguments | {"out": out, "J_indptr_found": rows, "m": m, "n": n})
        np.testing.assert_array_equal(out, expected)
    out = np.full(case.nnz, np.nan, "float32")
    sizes = {"m": m, "n": n, "nnz": case.nnz, "out": out, "J_indptr_found": rows}
    run(second, arguments | sizes)
    np.testing.assert_array_equal(out, expected)


def _call(kernel, arguments):
    signature = kernel.signature
    names = [param.name for param in (*signature.buffers, *signature.scalars)]
    kernel(**{name: arguments[name] for name in names if name in arguments})


def test_searches_taken_out_of_positions_are_the_same_kernels():
    first, second = pair(fused("position"), "int64")
    later = [remove_unused_args(lower_buffers(module)) for module in (first, second)]
    for lowered, wanted in zip(later, pair(fused(), "int64"), strict=True):
        main = [
            line
            for line in print_module(lowered).splitlines()
            if "    for" in line or " = " in line
            # A row that is passed is checked to hold the position, by its bounds.
            if "J_indptr = " not in line
        ]
        assert set(main) <= set(print_module(remove_unused_args(wanted)).splitlines())


def test_arguments_of_a_pass_are_read_by_what_it_takes():
    with pytest.raises(ArgumentError, match="expected text"):
        apply_pass("extract_inspector", fused(), arguments={"dtype": 64})
    with pytest.raises(ArgumentError, match="expected a list of integers"):
        apply_pass("substitute_buffer", fused(), arguments={"buffer": "X_data", "shape": ["a"]})
