"""A schedule in scalable vectors gives right results for every vscale, in the interpreter and with fixed
vectors on a target without scalable ones."""

from __future__ import annotations

import numpy as np
import pytest

import gossamer as gs
from gossamer.compilation.pipeline import stage_texts
from gossamer_ir.analysis.scalable_vectors import has_scalable_vectors
from gossamer_ir.errors import UnsupportedError
from gossamer_ir.interpret import run
from gossamer_ir.script import parse_module, print_module
from gossamer_lower import lower_to_flat
from tests.integration.scalable_programs import BUILDERS, operands

LANES = "4 * T.vscale()"
VSCALES = (1, 2, 4, 8, 16)


def sizes(vscale: int) -> tuple[int, ...]:
    """Sizes around one vector, and some that are not a multiple of it."""
    lanes = 4 * vscale
    return (0, 1, lanes - 1, lanes, lanes + 1, 37, 115)


@pytest.mark.parametrize("vscale", VSCALES)
@pytest.mark.parametrize("name", BUILDERS)
def test_the_interpreter_runs_each_vscale(name: str, vscale: int) -> None:
    scheduled = BUILDERS[name](LANES).module
    flat = lower_to_flat(scheduled)
    assert has_scalable_vectors(flat)
    assert parse_module(print_module(flat)) == flat
    for size in sizes(vscale):
        arguments, expected = operands(name, size)
        run(flat, arguments, vscale=vscale)
        np.testing.assert_array_equal(arguments["c"], expected, err_msg=str(size))


@pytest.mark.parametrize("vscale", ["native", *VSCALES])
@pytest.mark.parametrize("name", BUILDERS)
def test_fixed_vectors_take_the_place_of_scalable_ones(name: str, vscale: int | str) -> None:
    builder = BUILDERS[name](LANES)
    kernel = gs.compile(
        builder.program, schedule=builder, target=f"generic-cpu:vscale={vscale},threads=2"
    )
    for size in sizes(4 if vscale == "native" else int(vscale)):
        arguments, expected = operands(name, size)
        kernel(**arguments)
        np.testing.assert_array_equal(arguments["c"], expected, err_msg=str(size))


COPY = """
@T.prim_func
def widen(x: T.handle, y: T.handle, n: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 0})
    X = T.match_buffer(x, (n,), "float32")
    Y = T.match_buffer(y, (n,), "float64")
    for i in T.serial(n):
        with T.block("widen"):
            vi = T.axis.spatial(n, i)
            Y[vi] = T.float64(X[vi])
"""


@pytest.mark.parametrize(("bits", "lanes"), [(128, 2), (256, 4), (512, 8)])
def test_native_lanes_follow_from_the_registers_of_the_target(bits: int, lanes: int) -> None:
    target = f"generic-cpu:vector_bits={bits},threads=1"
    builder = gs.schedule(COPY).vectorize("i", lanes="native")
    texts = stage_texts(builder.program, schedule=builder.schedule, target=target)
    assert f"T.ramp(i_0 * {lanes}, 1, {lanes})" in texts["flat"]
    kernel = gs.compile(COPY, schedule=builder, target=target)
    for size in (0, 1, lanes - 1, lanes, lanes + 1, 37):
        x, y = np.arange(size, dtype=np.float32), np.full(size, np.nan)
        kernel(x=x, y=y)
        np.testing.assert_array_equal(y, x)


def test_scalable_vectors_are_an_error_if_the_user_wants_that() -> None:
    builder = BUILDERS["spmv"](LANES)
    with pytest.raises(UnsupportedError) as caught:
        gs.compile(builder.program, schedule=builder, target="generic-cpu:vscale=none")
    assert caught.value.code == "target.vscale"
    fixed = BUILDERS["spmv"]("8")
    gs.compile(fixed.program, schedule=fixed, target="generic-cpu:vscale=none")
