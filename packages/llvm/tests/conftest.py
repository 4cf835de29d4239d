"""Small flat modules."""

import json
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
from msgspec.structs import replace

from gossamer_ir.core.build import index, index_var
from gossamer_ir.core.math_functions import INSTRUCTIONS
from gossamer_ir.nodes import Buffer, For, Function, Module, Param
from gossamer_llvm import TargetInfo, emit_llvm_ir

HELPERS = Path(__file__).parent / "helpers"

N = index_var("n")
BUFFERS = (
    Buffer("X", (N,), "float32", "x"),
    Buffer("Y", (N,), "float32", "y"),
    Buffer("P", (N,), "int64", "p"),
)
TARGET = TargetInfo(
    "x86_64-unknown-linux-gnu", functions=frozenset({"sqrt", "abs", "floor", "fma"})
)
SVE = TargetInfo(
    "aarch64-unknown-linux-gnu",
    is_scalable=True,
    has_lane_masks=True,
    attributes=("vscale_range(1,16)",),
)
RISCV = TargetInfo(
    "riscv64-unknown-linux-gnu",
    is_scalable=True,
    vscale_bits=64,
    has_lane_products=False,
    attributes=("vscale_range(2,1024)",),
)


class ScalableTarget(NamedTuple):
    target_info: TargetInfo
    features: str


SCALABLE = {
    "sve": ScalableTarget(replace(SVE, functions=INSTRUCTIONS, has_half_conversions=True), "+sve"),
    "rvv": ScalableTarget(replace(RISCV, functions=INSTRUCTIONS), "+m,+a,+f,+d,+c,+v"),
    "rvv with float16": ScalableTarget(
        replace(RISCV, functions=INSTRUCTIONS, has_half_conversions=True), "+m,+a,+f,+d,+c,+v,+zvfh"
    ),
}


def module(*body, buffers=BUFFERS, others=()):
    """A module with the entry `main` over x, y, p and n, and other functions."""
    handles = tuple(Param(buffer.handle, "handle") for buffer in buffers)
    entry = Function("main", (*handles, Param("n", "int64")), body, buffers=buffers)
    return Module("flat", (entry, *others), "main")


def loop(*body):
    """A module that runs body for i in [0, n)."""
    return module(For("i", index(0), N, body))


@pytest.fixture(name="module")
def give_module():
    return module


@pytest.fixture(name="loop")
def give_loop():
    return loop


@pytest.fixture
def text():
    """The LLVM text of a module."""
    return lambda flat, target_info=TARGET: emit_llvm_ir(flat, target_info=target_info)


@pytest.fixture
def scalable():
    return SVE


@pytest.fixture
def riscv():
    return RISCV


@pytest.fixture
def scalable_target(request):
    """A CPU with scalable vectors and all functions as instructions, by its name in `SCALABLE`."""
    return SCALABLE[request.param]


@pytest.fixture
def checked():
    """Parses and verifies with LLVM and returns its canonical text."""
    import llvmlite.binding as llvm

    def check(source):
        parsed = llvm.parse_assembly(source)
        parsed.verify()
        return str(parsed)

    return check


@pytest.fixture
def assemblies():
    """Compiles texts for a target with scalable vectors, in other processes, and returns the assembly of
    each; None where LLVM ends the process."""

    def compiled(texts, target):
        request = {"triple": target.target_info.triple, "features": target.features, "texts": texts}
        command = [sys.executable, str(HELPERS / "compile_scalable.py")]
        done = subprocess.run(
            command, input=json.dumps(request), capture_output=True, text=True, check=True
        )
        return json.loads(done.stdout)

    return compiled
