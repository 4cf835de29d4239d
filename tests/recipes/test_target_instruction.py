"""The recipe "Add an instruction of a target" in docs/extending is complete: an instruction of the warps of a
GPU, and one of a CPU, are emitted with the entries that it lists and nothing else."""

from __future__ import annotations

import re
from typing import Literal

import msgspec
import numpy as np
import pytest

import gossamer as gs
from gossamer_cuda_mma_sp.backend import CudaBackend
from gossamer_cuda_mma_sp.device_code import DeviceCode
from gossamer_cuda_mma_sp.interpreter import instruction_table
from gossamer_generic_cpu.backend import GenericCpu
from gossamer_generic_cpu.codegen import compiler
from gossamer_ir.core.build import integer_value
from gossamer_ir.core.limits import WARP_LANES
from gossamer_ir.interchange.records import Target
from gossamer_ir.nodes import Binary
from gossamer_ir.script import parse_module
from gossamer_llvm.emitter.function_emitter import TargetLowering
from gossamer_llvm.emitter.operands import Value
from gossamer_llvm.memory.addresses import emit_address
from gossamer_llvm.targets.nvptx import lowering, warp_instructions
from tests.recipes.recipe_pages import listed_files, sources

pytestmark = pytest.mark.unserialized


class WarpSum(msgspec.Struct, frozen=True, tag_field="warp_instruction", tag="sum"):
    """The sum of an element over the lanes of a warp, in each of them (`redux.sync.add`, from sm_80 on)."""

    dtype: Literal["int32"] = "int32"


def emit_warp_sum(emitter, node, _instruction):
    (store,) = node.body
    value = emitter.expr(store.value)
    name, arguments = "llvm.nvvm.redux.sync.add", f"{value.typed}, i32 -1"
    total = emitter.call_in_place(value.type, name, arguments)
    target = emit_address(emitter, store.buffer, store.indices, is_certain=True)
    emitter.builder.line(f"store {value.type} {total}, ptr {target.pointer}, align 4")


def add_in_warps(threads, instruction, lanes):
    result, operand, _mask = instruction.operands
    values = threads.registers.read(operand, np.dtype(np.int32), lanes)
    sums = values.reshape(-1, WARP_LANES).sum(axis=1, dtype=np.int32)
    threads.registers.write(result, np.repeat(sums, WARP_LANES), lanes)


WARPS = """
@T.prim_func
def sums(x: T.handle, y: T.handle, n: T.int64):
    T.stage("flat")
    X = T.match_buffer(x, (n,), "int32")
    Y = T.match_buffer(y, (n,), "int32")
    for t in T.thread_binding(64, thread="threadIdx.x"):
        for r in T.serial(1, annotations={"warp_instruction": "sum", "dtype": "int32"}):
            Y[t] = X[t]
"""


def test_a_new_instruction_of_warps_is_emitted_and_interpreted(monkeypatch):
    union = warp_instructions.WarpInstruction | WarpSum
    monkeypatch.setattr(warp_instructions, "WarpInstruction", union)
    monkeypatch.setitem(lowering.WARP_EMITTERS, WarpSum, emit_warp_sum)
    monkeypatch.setitem(instruction_table.EXECUTED, "redux", add_in_warps)
    backend, target = CudaBackend(), Target.parse("cuda-mma-sp:driver=interpreter")
    # Compiled by the backend: passes would replace a loop of one iteration by its body.
    artifact = backend.compile(parse_module(WARPS), target)
    assert "redux.sync.add.s32" in DeviceCode.decode(artifact.code).ptx
    x, y = np.arange(64, dtype=np.int32), np.zeros(64, np.int32)
    backend.load(artifact)(x, y, 64)
    np.testing.assert_array_equal(y, np.repeat(x.reshape(2, 32).sum(axis=1), 32))


def emit_bit_field(emitter, node):
    """Emit `(x >> start) & (2 ** size - 1)` as one instruction of BMI; None for any other expression."""
    start = integer_value(node.lhs.rhs) if node.op == "bitand" and is_shift(node.lhs) else None
    mask = integer_value(node.rhs)
    if start is None or mask is None or mask & (mask + 1):
        return None
    source, field = emitter.expr(node.lhs.lhs), start | mask.bit_length() << 8
    if source.type != "i64":
        return None
    arguments = f"{source.typed}, i64 {field}"
    return Value(emitter.call("i64", "llvm.x86.bmi.bextr.64", arguments), source.dtype)


def is_shift(node):
    return isinstance(node, Binary) and node.op == "shr"


FIELDS = """
@T.prim_func
def fields(x: T.handle, y: T.handle, n: T.int64):
    T.stage("flat")
    X = T.match_buffer(x, (n,), "int64")
    Y = T.match_buffer(y, (n,), "int64")
    for i in T.serial(n):
        Y[i] = ((X[i] >> 3) & 15) + (X[i] & 1)
"""


def test_a_new_instruction_of_cpus_is_emitted(monkeypatch):
    planted = TargetLowering(exprs={Binary: emit_bit_field})
    monkeypatch.setitem(compiler.CPU_LOWERINGS, "bmi", lambda: planted)
    kernel = gs.compile(FIELDS, target="generic-cpu:cpu=x86-64-v3")
    x, y = np.arange(-70, 70) * 5, np.zeros(140, np.int64)
    kernel(x, y, 140)
    np.testing.assert_array_equal(y, ((x >> 3) & 15) + (x & 1))
    new, old = (
        GenericCpu().texts(parse_module(FIELDS), Target.parse(f"generic-cpu:cpu=x86-64-{level}"))
        for level in ("v3", "v2")
    )
    assert new["llvm"].count("call i64 @llvm.x86.bmi.bextr.64(") == 1
    assert "bextr" not in old["llvm"]


TITLE = "Add an instruction of a target"
EXPORTS = "packages/llvm/src/gossamer_llvm/__init__.py"


def test_all_code_that_distinguishes_instructions_of_warps_is_in_the_recipe(root):
    names = {kind.__name__ for kind in lowering.WARP_EMITTERS}
    assert names == {"WarpProduct", "WarpLoad", "FieldLoad", "WarpgroupProduct", "WarpgroupWait"}
    files = {
        path.relative_to(root).as_posix()
        for path in sources(root)
        if re.search(rf"\b({'|'.join(names)})\b", path.read_text())
    }
    assert files - {EXPORTS} - listed_files(root, TITLE) == set()


def test_every_target_with_instructions_of_its_own_is_in_the_recipe(root):
    folder = root / "packages/llvm/src/gossamer_llvm/targets"
    files = {path.relative_to(root).as_posix() for path in folder.glob("*/lowering.py")}
    assert len(files) > 2
    assert files - listed_files(root, TITLE) == set()
