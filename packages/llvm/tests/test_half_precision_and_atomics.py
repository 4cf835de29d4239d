"""16-bit floats and atomic accumulations become valid LLVM, with the instructions that the target has."""

from itertools import product

import pytest

from gossamer_ir.core.build import index, index_var
from gossamer_ir.core.dtypes import SCALARS, DType
from gossamer_ir.nodes import Atomic, Buffer, Cast, For, Load, Store
from gossamer_llvm import TargetInfo

N, AT = index_var("n"), index_var("i")
HALVES = tuple(name for name in SCALARS if DType(name).computed_in != name)
OTHERS = ("bool", "int8", "int64", "uint64", "float32", "float64")
LINUX = "x86_64-unknown-linux-gnu"
TARGETS = {
    "integers": TargetInfo(LINUX),
    "instructions": TargetInfo(LINUX, has_half_conversions=True),
}


@pytest.fixture
def compiled(module, text, checked):
    """The LLVM text, as LLVM prints it, of a loop over X and Y of two dtypes."""

    def compile_loop(stmt, x, y, target_info=TARGETS["integers"]):
        buffers = (Buffer("X", (N,), x, "x"), Buffer("Y", (N,), y, "y"))
        return checked(
            text(module(For("i", index(0), N, (stmt,)), buffers=buffers), target_info=target_info)
        )

    return compile_loop


@pytest.mark.parametrize("target_info", TARGETS)
@pytest.mark.parametrize(("half", "other"), [*product(HALVES, OTHERS), HALVES])
def test_conversions_of_halves_use_instructions_if_there_are_any(
    compiled, target_info, half, other
):
    for source, target in ((half, other), (other, half)):
        store = Store("Y", (AT,), Cast(target, Load("X", (AT,), source)))
        code = compiled(store, source, target, TARGETS[target_info])
        is_native = target_info == "instructions" and "float16" in (source, target)
        assert (" half " in code) == is_native


@pytest.mark.parametrize(
    ("op", "dtype", "wanted"),
    [
        ("add", "float64", "atomicrmw fadd"),
        ("add", "uint32", "atomicrmw add"),
        ("min", "int64", "atomicrmw min"),
        ("max", "uint8", "atomicrmw umax"),
        ("max", "float32", "cmpxchg"),
        ("add", "float16", "cmpxchg"),
        ("min", "bfloat16", "cmpxchg"),
    ],
)
def test_atomics_are_one_instruction_or_a_loop_that_exchanges(compiled, op, dtype, wanted):
    """LLVM's `fmin` and `fmax` ignore NaN."""
    code = compiled(Atomic(op, "Y", (AT,), Load("X", (AT,), dtype)), dtype, dtype)
    atomics = [line for line in code.splitlines() if "atomicrmw" in line or "cmpxchg" in line]
    (line,) = atomics
    assert wanted in line
    assert "monotonic" in line
