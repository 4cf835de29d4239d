"""Kernels that execute one instruction of a warpgroup, on registers and shared memory of the caller."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain

import msgspec

from benchmarks.gpu.instruction_kernels.lane_registers import (
    LANE_NUMBER,
    load_lane_register,
    ptx_of_kernels,
    store_lane_register,
)
from gossamer_cuda_mma_sp.instructions.warpgroup_instructions import (
    A_REGISTERS,
    WARPGROUP_LANES,
    WarpgroupInstruction,
)
from gossamer_cuda_mma_sp.target.architectures import ARCHITECTURES
from gossamer_cuda_mma_sp.target.gpu import Gpu
from gossamer_ir.errors import ArgumentError
from gossamer_llvm import PROXY_FENCE, WarpgroupOperands, warpgroup_assembly

IMAGE_BYTES = 24576
"""The bytes of shared memory that a kernel copies from its caller: A and B of the largest instruction."""
_COPY_BYTES = 16
_BARRIER = "llvm.nvvm.barrier.cta.sync.aligned.all"


class WarpgroupUse(msgspec.Struct, frozen=True):
    """An instruction as it is used: where A is, how A and B are stored, and the sparsity selector.

    >>> use = WarpgroupUse(WarpgroupInstruction(8, "int8", "int8", "int32"), a_is_shared=True)
    >>> use.register_count
    5
    """

    instruction: WarpgroupInstruction
    a_is_shared: bool = False
    a_is_by_k: bool = True
    b_is_by_k: bool = True
    selector: int = 0

    @property
    def register_count(self) -> int:
        """The registers of a lane: those of A, unless it is in shared memory, the sums, and the metadata."""
        return (0 if self.a_is_shared else A_REGISTERS) + self.instruction.sum_registers + 1

    @property
    def immediates(self) -> str:
        """The last operands of the instruction."""
        return self.instruction.immediates(
            a_is_shared=self.a_is_shared, a_is_by_k=self.a_is_by_k, b_is_by_k=self.b_is_by_k
        )


def warpgroup_uses(instruction: WarpgroupInstruction) -> Iterator[WarpgroupUse]:
    """Yield all uses of an instruction.

    >>> len(list(warpgroup_uses(WarpgroupInstruction(8, "float16", "float16", "float32"))))
    12
    """
    ways = (True, False) if instruction.can_transpose else (True,)
    for selector in instruction.selectors:
        for b_is_by_k in ways:
            yield WarpgroupUse(instruction, b_is_by_k=b_is_by_k, selector=selector)
            for a_is_by_k in ways:
                yield WarpgroupUse(
                    instruction,
                    a_is_shared=True,
                    a_is_by_k=a_is_by_k,
                    b_is_by_k=b_is_by_k,
                    selector=selector,
                )


def warpgroup_kernels_ptx(uses: Iterable[WarpgroupUse], gpu: Gpu) -> str:
    """Return PTX with a kernel for each use of an instruction: `warpgroup_0` and the following ones.

    A kernel takes two addresses and the descriptors of A and B. The first one is of uint32 values, one for
    each register and lane: the registers of A, unless it is in shared memory, of the accumulator, and of the
    metadata, each for 128 lanes. The kernel writes the registers of the result over those of the accumulator.
    The second one is of `IMAGE_BYTES` bytes, which it copies to shared memory. Run it with one block of 128
    threads. Raises `ArgumentError` (`n_m.architecture`) if the GPU has no such instructions.
    """
    functions = []
    for number, use in enumerate(uses):
        if not use.instruction.is_on(gpu):
            having = [
                name for name, architecture in ARCHITECTURES.items() if architecture.has_warpgroups
            ]
            raise ArgumentError(
                "n_m.architecture",
                f"{gpu.architecture.name} with PTX {gpu.ptx} does not have 'wgmma.mma_async.sp'; expected "
                f"{' or '.join(having)}.",
            )
        functions.append(_definition(number, use))
    declarations = (f"declare i32 @{LANE_NUMBER}()", f"declare void @{_BARRIER}(i32)")
    return ptx_of_kernels("\n".join((*declarations, *functions)), gpu)


def _definition(number: int, use: WarpgroupUse) -> str:
    sums = range(use.register_count - 1)[-use.instruction.sum_registers :]
    types = ["float" if use.instruction.accumulator == "float32" else "i32"] * len(sums)
    types = [*["i32"] * sums.start, *types, "i32"]
    values = [f"{type_} %v{register}" for register, type_ in enumerate(types)]
    a = ("i64 %a",) if use.a_is_shared else tuple(values[:A_REGISTERS])
    result, call = warpgroup_assembly(
        use.instruction.ptx_name,
        (values[sums.start : sums.stop],),
        (WarpgroupOperands(a, "i64 %b", values[-1]),),
        selector=use.selector,
        immediates=use.immediates,
    )
    memory = f"warpgroup_{number}_shared"
    lines = (
        f"@{memory} = internal addrspace(3) global [{IMAGE_BYTES} x i8] undef, align 1024",
        f"define ptx_kernel void @warpgroup_{number}(ptr addrspace(1) %x, ptr addrspace(1) %image, i64 %a, "
        'i64 %b) "nvvm.maxntid"="128,1,1" {',
        f"  %lane = call i32 @{LANE_NUMBER}()",
        *_copies(memory),
        f"  {PROXY_FENCE}",
        f"  call void @{_BARRIER}(i32 0)",
        *chain.from_iterable(
            load_lane_register(register, type_, lanes=WARPGROUP_LANES)
            for register, type_ in enumerate(types)
        ),
        f"  %r = {call}",
        *chain.from_iterable(
            store_lane_register(result, at - sums.start, at, types[at]) for at in sums
        ),
        "  ret void",
        "}",
    )
    return "\n".join(lines)


def _copies(memory: str) -> Iterator[str]:
    """Yield the copies of a lane to shared memory."""
    yield f"  %first = mul i32 %lane, {_COPY_BYTES}"
    for start in range(0, IMAGE_BYTES, WARPGROUP_LANES * _COPY_BYTES):
        yield f"  %at{start} = add i32 %first, {start}"
        for space, base in ((1, "%image"), (3, f"@{memory}")):
            pointer = f"ptr addrspace({space})"
            yield f"  %p{start}.{space} = getelementptr i8, {pointer} {base}, i32 %at{start}"
        yield f"  %c{start} = load <4 x i32>, ptr addrspace(1) %p{start}.1, align {_COPY_BYTES}"
        yield f"  store <4 x i32> %c{start}, ptr addrspace(3) %p{start}.3, align {_COPY_BYTES}"
