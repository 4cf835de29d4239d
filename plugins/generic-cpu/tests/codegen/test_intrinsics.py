"""Micro-kernels: the emitted code computes what their description does."""

from __future__ import annotations

import numpy as np
import pytest

from gossamer_generic_cpu.codegen.intrinsics import intrinsics
from gossamer_ir.interpret import run
from gossamer_ir.script import parse_module
from gossamer_ir.verify import verify


def shapes(module, length):
    """The shape of each array parameter."""
    (function,) = module.functions
    sizes = {buffer.handle: buffer.shape for buffer in function.buffers}
    return {
        name: tuple(
            length if getattr(size, "name", "") == "n" else int(size.text) for size in shape
        )
        for name, shape in sizes.items()
    }


@pytest.mark.parametrize("length", [0, 1, 3, 16, 31, 32, 33, 100])
@pytest.mark.parametrize("intrinsic", intrinsics(), ids=lambda intrinsic: intrinsic.name)
def test_semantics_and_implementation_compute_the_same(intrinsic, length):
    semantics, implementation = (
        verify(parse_module(text)) for text in (intrinsic.semantics, intrinsic.implementation)
    )
    random = np.random.default_rng(length)
    dtype = "float64" if "float64" in intrinsic.name else "float32"
    arrays = {
        name: random.integers(-3, 4, shape).astype(dtype)
        for name, shape in shapes(semantics, length).items()
    }
    results = []
    for module in (semantics, implementation):
        arguments = {name: array.copy() for name, array in arrays.items()} | {"n": length}
        run(module, arguments)
        results.append(arguments["c"])
    a, b, c = (arrays[name].astype("float64") for name in "abc")
    np.testing.assert_array_equal(results[0], c + a.T @ b)
    np.testing.assert_array_equal(results[1], results[0])


def test_names_are_their_own():
    names = [intrinsic.name for intrinsic in intrinsics()]
    assert len(set(names)) == len(names)
    assert {"outer_product_float32_6x16", "dot_product_float64"} <= set(names)
