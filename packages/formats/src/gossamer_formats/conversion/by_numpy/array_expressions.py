"""The values of an integer expression for arrays of variables."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from gossamer_ir.errors import UnsupportedError
from gossamer_ir.nodes import Binary, Cast, Const, Expr, Load, Var
from gossamer_support.arrays import Array

# Other operations: refused.
_OPERATIONS: dict[str, Callable[..., Any]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "floordiv": np.floor_divide,
    "floormod": np.remainder,
    "min": np.minimum,
    "max": np.maximum,
}


# Other expressions: refused.
def evaluate_arrays(
    expr: Expr,
    vars: Mapping[str, Array | int],
    *,
    elements: Callable[[str, tuple[Array, ...]], Array] | None = None,
) -> Array:
    """Return the int64 values of an expression, element by element; numbers are broadcast.

    `elements` returns the elements of an index array at indices. Raises `UnsupportedError` (`format.size`)
    for other expressions than constants, variables, elements and arithmetic.

    >>> from gossamer_ir.core.build import add, index, index_var, mul
    >>> evaluate_arrays(add(mul(index_var("i"), index(4)), index(1)), {"i": np.array([0, 2])})
    array([1, 9])
    """

    def value(node: Expr) -> Any:
        match node:
            case Const():
                return np.int64(int(node.text))
            case Var():
                return np.asarray(vars[node.name], np.int64)
            case Cast():
                return value(node.value)
            case Binary() if node.op in _OPERATIONS:
                return _OPERATIONS[node.op](value(node.lhs), value(node.rhs))
            case Load() if elements is not None:
                indices = tuple(np.asarray(value(index)) for index in node.indices)
                return elements(node.buffer, indices).astype(np.int64)
        raise UnsupportedError(
            "format.size",
            f"A format description cannot have an expression of kind '{type(node).__name__}' here.",
        )

    return np.asarray(value(expr))
