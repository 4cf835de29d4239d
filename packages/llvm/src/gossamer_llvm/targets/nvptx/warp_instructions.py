"""Loops that stand for an instruction of all lanes of a warp: which one, and its operands.

The annotations of such a loop are the fields of a record; this module alone writes and reads them. Its body
is stores, which name the first element of each operand.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from gossamer_ir.core.build import ONE, ZERO
from gossamer_ir.errors import UnsupportedError
from gossamer_ir.nodes import For, Store
from gossamer_support.typed_calls import typed

_TAG = "warp_instruction"
"""The annotation with the kind of the instruction."""


class WarpProduct(msgspec.Struct, frozen=True, kw_only=True, tag_field=_TAG, tag="product"):
    """A matrix product. The stores name the accumulator, A, B, and for a sparse A its metadata.

    >>> WarpProduct(
    ...     intrinsic="f", operand_type="i32", a_registers=4, b_registers=2, operand_bits=8
    ... ).selector
    0
    """

    intrinsic: str
    """The name of the intrinsic of LLVM."""
    operand_type: str
    """The type of LLVM of a register of A and B."""
    a_registers: int
    b_registers: int
    operand_bits: int
    """The bits of an element of A and B in a register. In memory it has a byte, or more."""
    rounds_to_tf32: bool = False
    """True if elements of A and B are float32, and rounded to TF32 before they are multiplied."""
    selector: int = 0
    """The sparsity selector."""


class WarpLoad(msgspec.Struct, frozen=True, kw_only=True, tag_field=_TAG, tag="load"):
    """A load of `count` matrices from shared memory. The first store names the first register, and loads what
    the thread addresses; another one loads an element that other threads address.

    >>> WarpLoad(count=4).is_transposed
    False
    """

    count: Literal[1, 2, 4]
    is_transposed: bool = False


class FieldLoad(msgspec.Struct, frozen=True, kw_only=True, tag_field=_TAG, tag="field_load"):
    """A load of small numbers, which have a byte each in shared memory, to fields of a register. Each thread
    does it by itself. The stores name the register, and load 4, 8 or 16 consecutive bytes, aligned to as
    many, as a vector: the first store the lowest fields, and the next one those after them.

    >>> FieldLoad(field_bits=2, mask=3).scale
    1
    """

    field_bits: Literal[2, 4]
    mask: int
    """The bits of each byte that its field gets."""
    scale: int = 1
    addend: int = 0
    """The register is multiplied by `scale`, and then `addend` is added."""


class WarpgroupProduct(
    msgspec.Struct, frozen=True, kw_only=True, tag_field=_TAG, tag="warpgroup_product"
):
    """Products of tiles of a sparse A, in registers or in shared memory, with tiles of B in shared memory, by
    the threads of four warps. The stores name the first elements of the operands: first each accumulator;
    then, step by step along the depth and there for each accumulator, A, its metadata and B; at last elements
    in shared memory that depend on the thread: the threads read what others stored.

    >>> WarpgroupProduct(
    ...     instruction="wgmma", sums=2, operand_bits=16, descriptor=0, immediates="1, 1, 0"
    ... ).steps
    1
    """

    instruction: str
    """The name of the instruction in PTX."""
    sums: int
    """The registers of an accumulator in a lane."""
    accumulators: int = 1
    steps: int = 1
    """The instructions along the depth for each accumulator."""
    operand_bits: int
    descriptor: int
    """The bits of the descriptor of B besides its address."""
    immediates: str
    """The last operands of the instruction; empty if there are none."""
    a_descriptor: int | None = None
    """The same bits for A; None if it is in registers."""
    selector: int = 0
    """The sparsity selector."""
    pending_groups: int = 0
    """The products, of this and of earlier iterations, that need not be complete when the threads go on."""


class WarpgroupWait(
    msgspec.Struct, frozen=True, kw_only=True, tag_field=_TAG, tag="warpgroup_wait"
):
    """A wait for all products of a warpgroup. The stores name the accumulators, each of which has `sums`
    registers in a lane: nothing may read them before.

    >>> WarpgroupWait(sums=64).sums
    64
    """

    sums: int


WarpInstruction: TypeAlias = WarpProduct | WarpLoad | FieldLoad | WarpgroupProduct | WarpgroupWait


@typed
def warp_loop(name: str, instruction: WarpInstruction, stores: tuple[Store, ...]) -> For:
    """Return the loop that stands for an instruction.

    >>> warp_loop("load", WarpLoad(count=2), ()).annotations
    (('warp_instruction', 'load'), ('count', 2), ('is_transposed', False))
    """
    fields = msgspec.to_builtins(instruction).items()
    # An annotation has a value; a field without one is absent.
    annotations = tuple((key, value) for key, value in fields if value is not None)
    return For(name, ZERO, ONE, stores, annotations=annotations)


@typed
def warp_instruction_of(loop: For) -> WarpInstruction | None:
    """Return the instruction for which a loop stands; None for any other loop. Raises `UnsupportedError`
    (`llvm.warp_instruction`) if its annotations do not describe one.

    >>> warp_instruction_of(warp_loop("load", WarpLoad(count=2), ()))
    WarpLoad(count=2, is_transposed=False)
    >>> warp_instruction_of(For("i", ZERO, ONE, ()))
    """
    annotations = dict(loop.annotations)
    if _TAG not in annotations:
        return None
    try:
        instruction: WarpInstruction = msgspec.convert(annotations, WarpInstruction)
    except msgspec.ValidationError as error:
        raise UnsupportedError(
            "llvm.warp_instruction",
            f"The annotations of loop '{loop.var}' do not describe an instruction of a warp: {error}.",
        ) from None
    return instruction
