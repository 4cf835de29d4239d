"""`ModuleEmitter`: the types, declarations, definitions and metadata of the module being emitted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec

from gossamer_ir.core.dtypes import DType
from gossamer_ir.errors import UnsupportedError
from gossamer_llvm.target_info import LANE_COUNTS, TargetInfo

if TYPE_CHECKING:
    from gossamer_llvm.emitter.debug_lines import DebugLines


class ModuleEmitter(msgspec.Struct):
    """The module being emitted: what its functions add to its text besides their own."""

    target_info: TargetInfo
    symbols: Mapping[str, str]
    """The numbered names of its functions."""
    bounds_checked_buffers: tuple[str, ...]
    """The buffers that guards name."""
    declarations: dict[str, str] = {}
    """The declaration of each external function."""
    definitions: list[str] = []
    metadata: list[str] = []
    debug: DebugLines | None = None
    """The lines of its text, if instructions are to name them."""
    checked_dtypes: set[str] = msgspec.field(default_factory=set)
    """The dtypes that LLVM accepts, of those that were met."""
    helpers: int = 0
    """The number of helper functions so far."""

    def require_dtype(self, dtype_name: str) -> None:
        """Raise an error (`llvm.lanes`, `llvm.scalable`) for a dtype that must not be passed to LLVM: it
        aborts the process for some lane counts."""
        if dtype_name in self.checked_dtypes:
            return
        dtype = DType.parse(dtype_name)
        if dtype.scalable:
            self.require_scalable(f"such as '{dtype_name}'")
        if dtype.is_vector and dtype.lanes not in LANE_COUNTS:
            expected = ", ".join(map(str, LANE_COUNTS))
            raise UnsupportedError(
                "llvm.lanes",
                f"'{dtype_name}' has {dtype.lanes} lanes; expected one of {expected}.",
            )
        self.checked_dtypes.add(dtype_name)

    def require_scalable(self, what: str) -> None:
        """Raise `UnsupportedError` (`llvm.scalable`) if the target has no scalable vectors."""
        if not self.target_info.is_scalable:
            raise UnsupportedError("llvm.scalable", f"The target has no scalable vectors, {what}.")

    def declare(self, result: str, function: str, arguments: str) -> None:
        """Declare an external function once; arguments as `TYPE X, ...`."""
        if function not in self.declarations:
            types = ", ".join(_types_of_arguments(arguments))
            self.declarations[function] = f"declare {result} @{function}({types})"

    def new_symbol(self) -> str:
        """Return a fresh name for a helper function."""
        self.helpers += 1
        return f"h{self.helpers}"

    def new_metadata(self, text: str) -> str:
        """Add a metadata node and return its name; equal nodes that are not distinct are one."""
        if text in self.metadata:
            return f"!{self.metadata.index(text)}"
        self.metadata.append(text)
        return f"!{len(self.metadata) - 1}"


def _types_of_arguments(arguments: str) -> list[str]:
    """Return the types of `TYPE X, TYPE Y`, in which vector types and constants may contain commas."""
    types: list[str] = []
    depth, start = 0, 0
    for number, mark in enumerate(f"{arguments}," if arguments else ""):
        depth += (mark in "<(") - (mark in ">)")
        if mark == "," and depth == 0:
            item = arguments[start:number].strip()
            types.append(_type_of(item))
            start = number + 1
    return types


def _type_of(argument: str) -> str:
    if argument[0] == "<":
        return argument[: argument.index(">") + 1]
    type_, following = argument.split(" ")[:2]
    return f"{type_} {following}" if following.startswith("addrspace(") else type_
