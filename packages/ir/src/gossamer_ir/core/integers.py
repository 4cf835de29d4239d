"""The semantics of the integer operators on constants.

Division by zero gives 0, shift counts are unsigned, and results wrap in two's complement. Emitted code and
the interpreter agree with this.
"""

from __future__ import annotations

import operator
from collections.abc import Callable

from gossamer_ir.nodes import BinaryOp

MAX_INT64 = 2**63 - 1
"""The largest int64: the largest index and trip count."""

# Indices are int64, and folding computes in them before it narrows.
_WORD = 64


def wrap_integer(value: int, bits: int = _WORD) -> int:
    """Return the signed integer of this many bits that an unbounded integer wraps to.

    >>> wrap_integer(2**63), wrap_integer(200, 8)
    (-9223372036854775808, -56)
    """
    half = 1 << (bits - 1)
    return value if -half <= value < half else (value + half) % (2 * half) - half


def _shifted_left(lhs: int, rhs: int) -> int:
    return lhs << rhs if 0 <= rhs < _WORD else 0


def _shifted_right(lhs: int, rhs: int) -> int:
    return lhs >> (rhs if 0 <= rhs < _WORD else _WORD)


UNBOUNDED: dict[BinaryOp, Callable[[int, int], int]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "floordiv": lambda lhs, rhs: lhs // rhs if rhs else 0,
    "floormod": lambda lhs, rhs: lhs % rhs if rhs else 0,
    "min": min,
    "max": max,
    "bitand": operator.and_,
    "bitor": operator.or_,
    "bitxor": operator.xor,
    "shl": _shifted_left,
    "shr": _shifted_right,
}
"""The int64 operators before their results wrap. A size that is computed from arguments must not wrap, so
callers that check sizes need the unbounded result."""


def evaluate_int64(op: BinaryOp, lhs: int, rhs: int) -> int:
    """Return the result of an int64 operator, wrapped.

    >>> evaluate_int64("add", 2**63 - 1, 1), evaluate_int64("floordiv", -(2**63), -1)
    (-9223372036854775808, -9223372036854775808)
    >>> evaluate_int64("floormod", 7, 0), evaluate_int64("shl", 1, -1)
    (0, 0)
    """
    result = UNBOUNDED[op](lhs, rhs)
    return result if -(2**63) <= result < 2**63 else wrap_integer(result)
