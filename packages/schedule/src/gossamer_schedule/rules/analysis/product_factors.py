"""The factors of products that matrix instructions compute: elements of one dtype, which are converted to
that of the sums, or rounded to a precision of the instruction."""

from __future__ import annotations

import msgspec

from gossamer_ir.core.expression_kinds import dtype_of
from gossamer_ir.nodes import Binary, Call, Cast, Expr, Load
from gossamer_machine.intrinsics.float8_operands import float8_factor


class ProductFactors(msgspec.Struct, frozen=True):
    """Two elements of one dtype that are multiplied. `operands` is the dtype, or the precision to which both
    are rounded (`ROUNDED_OPERANDS`)."""

    left: Load
    right: Load
    operands: str

    @property
    def orders(self) -> tuple[tuple[Load, Load], tuple[Load, Load]]:
        """Both orders of the factors."""
        return (self.left, self.right), (self.right, self.left)


def product_factors(term: Expr, *, dtype: str) -> ProductFactors | None:
    """Return the factors whose product a term of a sum in `dtype` is; None for another term."""
    match term:
        case Binary(
            op="mul",
            lhs=Call(function="tf32", args=(Load(dtype="float32") as left,)),
            rhs=Call(function="tf32", args=(Load(dtype="float32") as right,)),
        ):
            return ProductFactors(left, right, "tfloat32")
        case Binary(op="mul", lhs=lhs, rhs=rhs):
            match float8_factor(lhs), float8_factor(rhs):
                case (left, name), (right, other_name):
                    return ProductFactors(left, right, name) if name == other_name else None
            one, other = _strip_conversion(lhs, dtype=dtype), _strip_conversion(rhs, dtype=dtype)
            if isinstance(one, Load) and isinstance(other, Load) and one.dtype == other.dtype:
                return ProductFactors(one, other, one.dtype)
    return None


def _strip_conversion(value: Expr, *, dtype: str) -> Expr:
    """Return the value that is converted to a dtype; a conversion of a value of that dtype stays, since no
    intrinsic has it."""
    match value:
        case Cast(value=inner) if value.dtype == dtype != dtype_of(inner):
            return inner
    return value
