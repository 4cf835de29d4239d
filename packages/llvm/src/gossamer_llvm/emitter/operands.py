"""Operands of instructions: values, and buffers with their addresses."""

from __future__ import annotations

import msgspec

from gossamer_ir.nodes import Buffer
from gossamer_llvm.emitter.types import value_type


class Value(msgspec.Struct, frozen=True, gc=False):
    """An operand (a name or a constant) and its dtype."""

    text: str
    dtype: str

    @property
    def type(self) -> str:
        return value_type(self.dtype)

    @property
    def typed(self) -> str:
        """`TYPE OPERAND`."""
        return f"{value_type(self.dtype)} {self.text}"


class BufferAddress(msgspec.Struct, frozen=True, gc=False):
    """A buffer and its address. `private_elements` is the number of elements reserved for it in stack memory
    that no other function accesses; otherwise 0. If `is_scalable`, there are as many for each unit of
    vscale."""

    buffer: Buffer
    address: str
    private_elements: int = 0
    is_scalable: bool = False
