"""The example backend "tiny-interpreter", from a flat module to results, by the path of a real backend."""

import numpy as np
import pytest

from gossamer_backend import Artifact
from gossamer_ir.core.build import ZERO, index_var
from gossamer_ir.errors import ArgumentError
from gossamer_ir.interchange.records import Target
from gossamer_ir.nodes import (
    Binary,
    Buffer,
    Compare,
    For,
    Function,
    Guard,
    Load,
    Module,
    Param,
    Store,
    Var,
)

SIZE, AT = index_var("n"), index_var("i")


def axpy(*, guarded=False):
    """y[i] = y[i] + a * x[i]."""
    loads = [Load(name, (AT,), "float32") for name in ("Y", "X")]
    product = Binary("mul", Var("a", "float32"), loads[1])
    update = Store("Y", (AT,), Binary("add", loads[0], product))
    guard = (Guard(Compare("lt", AT, Var("limit", "int64")), "X"),) if guarded else ()
    params = [Param("x", "handle"), Param("y", "handle"), Param("n", "int64")]
    params += [Param("a", "float32")] + [Param("limit", "int64")] * guarded
    buffers = (Buffer("X", (SIZE,), "float32", "x"), Buffer("Y", (SIZE,), "float32", "y"))
    loop = For("i", ZERO, SIZE, (*guard, update))
    function = Function("axpy", tuple(params), (loop,), buffers=buffers)
    return Module("flat", (function,), "axpy")


def compiled(tiny, module):
    artifact = tiny.compile(module, Target("tiny-interpreter"))
    return tiny.load(Artifact.decode(artifact.encode()))


@pytest.mark.parametrize("size", [0, 1, 5])
def test_a_kernel_computes_with_sizes_read_off_shapes(tiny, size):
    x = np.arange(size, dtype=np.float32)
    y = np.ones(size, dtype=np.float32)
    compiled(tiny, axpy())(x=x, y=y, a=2)
    np.testing.assert_array_equal(y, 1 + 2 * np.arange(size))


def test_a_failed_guard_is_an_error_that_names_the_buffer(tiny):
    x, y = np.ones(4, np.float32), np.zeros(4, np.float32)
    kernel = compiled(tiny, axpy(guarded=True))
    kernel(x, y, a=1.0, limit=4)
    with pytest.raises(ArgumentError, match="accessed 'X' out of bounds") as caught:
        kernel(x, y, a=1.0, limit=2)
    assert caught.value.code == "kernel.out_of_bounds"
