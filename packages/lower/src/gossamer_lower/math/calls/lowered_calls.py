"""The calls that are lowered to arithmetic. Asked of each module, so this module imports little."""

from __future__ import annotations

from collections.abc import Collection

from gossamer_ir.core.dtypes import DType
from gossamer_ir.core.expression_kinds import dtype_of
from gossamer_ir.core.math_functions import INSTRUCTIONS
from gossamer_ir.core.operations import DIVISIONS
from gossamer_ir.errors import UnsupportedError
from gossamer_ir.nodes import Binary, Call, Node


# Other expressions: none lacks an instruction but calls and divisions.
def is_lowered(node: Node, instructions: Collection[str]) -> bool:
    """Return whether a node is a call, or a division of floats, without an instruction."""
    # No target has divisions of floats that round down.
    if isinstance(node, Binary):
        return node.op in DIVISIONS and DType.parse(dtype_of(node)).is_float
    if not isinstance(node, Call):
        return False
    dtype = DType.parse(node.dtype)
    # Not `LOWERED`, which also has functions of floats, and is in a module that imports the arithmetic.
    return dtype.computed_in != dtype.scalar or (
        node.function not in instructions and (dtype.is_float or node.function not in INSTRUCTIONS)
    )


def unsupported_error(name: str, why: str) -> UnsupportedError:
    """Return the error for a function that cannot be lowered."""
    return UnsupportedError("lower.lower_math.unsupported_call", f"The function '{name}' {why}.")
