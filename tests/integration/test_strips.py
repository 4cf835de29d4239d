"""Products of strips of rows (SR-BCRS) by the default schedule for GPUs: tensor cores read the gathered rows
of the dense matrix. Kernels run in the interpreter of PTX."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest

import gossamer as gs
from gossamer_ir.core.dtypes import SUM_DTYPES, stored_operand_dtype
from gossamer_ir.script import print_module
from gossamer_testkit.sr_bcrs_product import sr_bcrs_product

TARGET = "cuda-mma-sp:arch=sm_80,driver=interpreter"
COLUMNS = 40
COUNTS = (0, 16, 3, 33, 40)
"""The columns with nonzeros of each strip: none, whole groups of 16, and others."""


class StripProblem(NamedTuple):
    """The arguments of a product, and its result."""

    arguments: dict[str, Any]
    expected: np.ndarray[Any, Any]

    def require(self, kernel: Any, *, sizes: Any) -> None:
        """Call a kernel, in which some sizes are constants, and compare its result."""
        arguments = {name: value for name, value in self.arguments.items() if name not in sizes}
        kernel(**arguments)
        np.testing.assert_array_equal(arguments["c"], self.expected)


def strip_problem(height: int, width: int, features: int, *, dtype: str) -> StripProblem:
    """A product of small integers, which is exact. Slots without an element have the last column."""
    rng, stored = np.random.default_rng(height), stored_operand_dtype(dtype)
    least = 0 if stored.startswith("uint") else -4
    chosen = [np.sort(rng.choice(COLUMNS, count, replace=False)) for count in COUNTS]
    groups = [-(-len(columns) // width) for columns in chosen]
    indptr = np.concatenate([[0], np.cumsum(groups)]).astype(np.int32)
    indices = np.full((indptr[-1] * width,), COLUMNS - 1, np.int32)
    values = np.zeros((indptr[-1], height, width))
    b = rng.integers(least, 5, (COLUMNS, features))
    expected = np.zeros((len(chosen), height, features))
    for strip, columns in enumerate(chosen):
        begin, dense = indptr[strip] * width, rng.integers(least, 5, (height, len(columns)))
        indices[begin : begin + len(columns)] = columns
        padded = np.zeros((height, groups[strip] * width))
        padded[:, : len(columns)] = dense
        values[indptr[strip] : indptr[strip + 1]] = padded.reshape(height, -1, width).swapaxes(0, 1)
        expected[strip] = dense @ b[columns]
    arguments = {
        "a": values.astype(stored), "b": b.astype(stored),
        "c": np.full(expected.shape, 7, SUM_DTYPES[stored]),
        "indptr": indptr, "indices": indices.reshape(-1, width), "strips": len(chosen), "n": COLUMNS,
        "longest": max(groups), "groups": int(indptr[-1]), "height": height, "width": width,
        "feat": features,
    }  # fmt: skip
    return StripProblem(arguments, expected)


def sizes_of(size):
    return dict(zip(("height", "width", "feat"), size, strict=True))


def kernel_and_text(module):
    kernel = gs.compile(module, target=TARGET)
    return kernel, kernel.artifact.code.decode(errors="replace")


@pytest.mark.parametrize(
    ("dtype", "size"),
    [
        ("float16", (16, 16, 64)),
        ("float16", (32, 16, 48)),
        ("int8", (16, 64, 32)),
        ("tfloat32", (16, 24, 16)),
    ],
    ids=str,
)
def test_groups_that_fill_tiles_are_staged_in_shared_memory(dtype, size):
    module = sr_bcrs_product(dtype, **sizes_of(size))
    report = gs.explain(module, target=TARGET)
    assert report.rule == "grid_block_spmm"
    assert "in a pipeline of" in report.decisions[-1].what
    kernel, text = kernel_and_text(module)
    assert all(word in text for word in ("mma.sync", "cp.async.cg", "ldmatrix", "%ctaid.x"))
    strip_problem(*size, dtype=dtype).require(kernel, sizes=sizes_of(size))


@pytest.mark.parametrize("dtype", ["float16", "tfloat32", "int8", "uint8"])
@pytest.mark.parametrize("size", [(8, 4, 9), (2, 16, 33)], ids=str)
def test_other_groups_are_multiplied_by_tensor_cores_too(size, dtype):
    for sizes in ({}, sizes_of(size)):
        module = sr_bcrs_product(dtype, **sizes)
        assert f"mma_block_product_{dtype}" in gs.explain(module, target=TARGET).decisions[-1].what
        kernel, text = kernel_and_text(module)
        assert "mma.sync" in text
        strip_problem(*size, dtype=dtype).require(kernel, sizes=sizes)


def test_dtypes_without_an_instruction_have_a_thread_for_each_feature():
    kernel, text = kernel_and_text(sr_bcrs_product("float32"))
    assert "mma.sync" not in text
    assert "%ctaid.x" in text
    strip_problem(8, 4, 9, dtype="float32").require(kernel, sizes={})


def test_groups_with_unused_slots_have_a_thread_for_each_element():
    text = print_module(sr_bcrs_product("float16", **sizes_of((16, 16, 64))))
    assert gs.explain(text, target=TARGET).rule == "grid_block_spmm"
    padded = text.replace(", padded=False", "")
    assert gs.explain(padded, target=TARGET).rule == "grid_dense_rows"
    problem = strip_problem(16, 16, 64, dtype="float16")
    arguments = problem.arguments | {"indices": problem.arguments["indices"].copy()}
    unused = (problem.arguments["a"] == 0).all(axis=1) & (arguments["indices"] == COLUMNS - 1)
    arguments["indices"][unused] = COLUMNS
    arguments["a"] = np.where(unused[:, None], np.nan, arguments["a"]).astype(np.float16)
    kernel, _ = kernel_and_text(padded)
    problem._replace(arguments=arguments).require(kernel, sizes=sizes_of((16, 16, 64)))
