"""A program with a constant for vscale computes what it computes on a machine with this vscale."""

from __future__ import annotations

import numpy as np
import pytest
from vector_programs import HEADER, SCRATCH

from gossamer_ir.errors import ArgumentError
from gossamer_ir.interpret import run
from gossamer_ir.nodes import Lanes, VScale
from gossamer_ir.script import parse_module, print_module
from gossamer_ir.traversal.walk import walk
from gossamer_ir.verify import verify
from gossamer_lower import lower_to_flat, lower_vscale

BODIES = {
    "run": "Y[@] = X[@] * 2.0",
    "gather": "Y[@] = X[T.int64(P[@])]",
    "scatter": "Y[T.int64(P[@])] = X[@]",
    "let": "v = X[@]\n                Y[@] = v + v",
    "reduction": "S[0] = S[0] + X[@]",
    "vscale as a value": "Y[@] = X[@] + T.float32(T.vscale())",
}


def tiled(body, factor):
    """A loop over n in scalable vectors, masked at the end."""
    lanes = f"(T.vscale() * {factor})"
    return parse_module(
        f"{HEADER}"
        f"    for t in T.serial((n + ({lanes} - 1)) // {lanes}):\n"
        f"        for l in T.vectorized({lanes}):\n"
        f"            if t * {lanes} + l < n:\n"
        f"                {body.replace('@', f't * {lanes} + l')}\n"
    )


def results(module, n, *, vscale=1):
    random = np.random.default_rng(n)
    arrays = {
        "x": random.integers(-4, 5, n).astype(np.float32),
        "y": np.zeros(n, np.float32),
        "p": random.permutation(n).astype(np.int32),
        "s": SCRATCH.copy(),
    }
    run(module, {**arrays, "n": n}, vscale=vscale)
    return arrays


@pytest.mark.parametrize("vscale", [1, 2, 3, 16])
@pytest.mark.parametrize("factor", [1, 4])
@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_each_stage_computes_what_a_machine_with_this_vscale_does(body, factor, vscale):
    scalable = tiled(body, factor)
    flat = lower_to_flat(scalable)
    for fixed in (
        lower_to_flat(lower_vscale(scalable, vscale=vscale)),
        verify(lower_vscale(flat, vscale=vscale)),
    ):
        assert not any(
            isinstance(node, VScale) or (isinstance(node, Lanes) and node.scalable)
            for node in walk(fixed)
        )
        assert "vscale" not in print_module(fixed)
        for n in (0, 1, 4 * vscale - 1, 4 * vscale, 4 * vscale + 1, 37):
            wanted = results(flat, n, vscale=vscale)
            for name, array in results(fixed, n).items():
                np.testing.assert_array_equal(array, wanted[name], err_msg=f"{name} of {n}")


@pytest.mark.parametrize("vscale", [1, 2, 3, 16])
@pytest.mark.parametrize("factor", [1, 4])
def test_a_transpose_reduce_keeps_its_number_of_lanes(factor, vscale):
    rows = (f"X[T.ramp({at}, 1, {factor} * T.vscale())]" for at in range(4))
    scalable = parse_module(
        f'{HEADER}    if n > 70:\n        Y[T.ramp(0, 1, 4)] = T.transpose_reduce("add", {", ".join(rows)})\n'
    )
    fixed = verify(lower_vscale(scalable, vscale=vscale))
    assert "vscale" not in print_module(fixed)
    wanted = results(scalable, 80, vscale=vscale)["y"]
    np.testing.assert_array_equal(results(fixed, 80)["y"], wanted)
    assert wanted.any()


def test_a_module_without_vscale_stays_the_same_object():
    module = parse_module(HEADER + "    for i in T.vectorized(4):\n        Y[i] = X[i]\n")
    assert lower_vscale(module, vscale=2) is module


@pytest.mark.parametrize("vscale", [-1, 0, 1025])
def test_a_vscale_that_no_machine_has_is_refused(vscale):
    with pytest.raises(ArgumentError) as caught:
        lower_vscale(tiled(BODIES["run"], 4), vscale=vscale)
    assert caught.value.code == "pass.arguments"
