"""The sizes of a format description: its logical shape, and the values of expressions of its parameters."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from gossamer_ir.analysis.axes.logical_elements import logical_shape
from gossamer_ir.arith.evaluate_integer import NotArithmeticError, evaluate_integer
from gossamer_ir.errors import FormatError, UnsupportedError
from gossamer_ir.nodes import Expr, FormatDescription, Var

MAX_FORMATS = 256
"""The number of descriptions for which a function keeps its result: several variants of each format."""


def evaluated_shape(description: FormatDescription, sizes: Mapping[str, int]) -> tuple[int, ...]:
    """Return the logical shape of a tensor with these sizes."""
    return tuple(evaluate(size, sizes) for size in shape_of(description))


@lru_cache(maxsize=MAX_FORMATS)
def shape_of(description: FormatDescription) -> tuple[Expr, ...]:
    """Return the sizes of the logical dimensions.

    Raises `FormatError` (`format.shape.undeclared`) if the description has a map but no shape.

    >>> from gossamer_formats import csr
    >>> [size.name for size in shape_of(csr())]
    ['m', 'n']
    """
    shape = logical_shape(description)
    if shape is not None:
        return shape
    raise FormatError(
        "format.shape.undeclared",
        f"The description '{description.name}' has a map, but does not declare the logical shape.",
        hint="Write T.sp.map(lambda ..., shape=(m, n)).",
    )


def evaluate(expr: Expr, sizes: Mapping[str, int]) -> int:
    """Return the value of a size."""
    # Most sizes are parameters; descriptions are evaluated often.
    if type(expr) is Var:
        return int(sizes[expr.name])
    try:
        return evaluate_integer(expr, sizes)
    except ZeroDivisionError:
        raise FormatError("format.shape", "A size of the format is divided by zero.") from None
    except NotArithmeticError as error:
        raise UnsupportedError(
            "format.size",
            f"A size of a format description cannot be an expression of kind '{error}'.",
        ) from None
