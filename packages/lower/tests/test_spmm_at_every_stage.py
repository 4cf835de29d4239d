"""SpMM and SpMV compute the same results at every stage."""

from __future__ import annotations

import numpy as np
import pytest

from gossamer_ir.interpret import run
from gossamer_ir.nodes import Block, Cast, For, Load, Module
from gossamer_ir.script import parse_module
from gossamer_ir.traversal.walk import collect, walk
from gossamer_ir.verify import diagnostics
from gossamer_lower import lower_buffers, lower_iterations, lower_to_flat


def stages(module: Module) -> list[Module]:
    position = lower_iterations(module)
    loop = lower_buffers(position)
    return [module, position, loop, lower_to_flat(loop)]


@pytest.mark.parametrize("op", ["spmm", "spmv"])
def test_a_product_means_the_same_at_every_stage(request, op, matrix):
    run = request.getfixturevalue(f"run_{op}")
    for module in stages(request.getfixturevalue(op)):
        actual, expected = run(module, matrix)
        np.testing.assert_array_equal(actual, expected, err_msg=module.stage)


def test_every_stage_is_valid(spmm, spmv):
    for program in (spmm, spmv):
        for module in stages(program):
            assert diagnostics(module) == (), module.stage


def test_the_position_stage_is_one_block_in_a_perfect_nest(spmm):
    (loop,) = lower_iterations(spmm).functions[0].body
    names = []
    while isinstance(loop, For):
        names.append(loop.var)
        (loop,) = loop.body
    assert names == ["i", "j", "k_"]
    assert isinstance(loop, Block)
    assert loop.name == "csrmm"
    assert [iterator.kind for iterator in loop.iters] == ["S", "R", "S"]


def test_varied_dimensions_are_flattened_and_fixed_ones_are_kept(spmm):
    function = lower_buffers(lower_iterations(spmm)).functions[0]
    ranks = {buffer.name: len(buffer.shape) for buffer in function.buffers}
    assert ranks == {"A_data": 1, "B_data": 2, "C_data": 2, "J_indptr": 1, "J_indices": 1}


def test_the_flat_stage_has_no_blocks_and_no_guards(spmm, spmv):
    for program in (spmm, spmv):
        flat = stages(program)[-1]
        kinds = {type(node).__name__ for node in walk(flat)}
        assert not kinds & {"Block", "Guard", "Iteration"}
        assert flat.stage == "flat"


def test_index_arithmetic_is_widened_at_the_load(spmm):
    """Each load of an index array is the operand of a cast to int64, and nothing else."""
    flat = stages(spmm)[-1]
    loads = [node for node in collect(Load, flat) if node.buffer in ("J_indptr", "J_indices")]
    widened = [node.value for node in collect(Cast, flat) if node.dtype == "int64"]
    assert {load.buffer for load in loads} == {"J_indptr", "J_indices"}
    assert {load.dtype for load in loads} == {"int32"}
    assert sum(load in widened for load in loads) == len(loads) == len(widened)


COLUMN_SUMS = """
@T.prim_func
def column_sums(a: T.handle, y: T.handle, indptr: T.handle, indices: T.handle,
                m: T.int32, n: T.int32, nnz: T.int32) -> None:
    T.func_attr({"sparse_tir_level": 2})
    I = T.sp.dense_fixed(m)
    J = T.sp.compressed_varied(I, (n, nnz), (indptr, indices), "int32")
    D = T.sp.dense_fixed(n)
    A = T.sp.match_buffer(a, (I, J), "float32")
    Y = T.sp.match_buffer(y, (D,), "float32")
    with T.sp.iteration([I, J], "KINDS", "sums") as [i, j]:
        with T.init():
            Y[j] = 0.0
        Y[j] = Y[j] + A[i, j]
"""


@pytest.mark.parametrize("kinds", ["SS", "RS"])
def test_points_that_meet_accumulate_whatever_their_kind(kinds, matrix, csr_arrays):
    indptr, indices, data = csr_arrays(matrix)
    rows, columns = matrix.shape
    visited = (matrix != 0).any(axis=0)
    expected = np.where(visited, matrix.astype(np.float64).sum(axis=0), 9)
    for module in stages(parse_module(COLUMN_SUMS.replace("KINDS", kinds))):
        y = np.full(columns, 9, dtype=np.float32)
        run(module, {"a": data, "y": y, "indptr": indptr, "indices": indices,
                     "m": rows, "n": columns, "nnz": len(data)})  # fmt: skip
        np.testing.assert_array_equal(y, expected, err_msg=module.stage)
