"""The variables that select the element of a store, each by a place of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gossamer_ir.nodes import Binary, Const, Expr, Var


def place_vars(indices: Sequence[Expr], lengths: Mapping[str, Expr]) -> tuple[str, ...] | None:
    """Return the variables that indices consist of, in their order; None if an index is anything else than
    one of them, or a count over blocks of a constant size, or if two indices share one. `lengths` are the
    extents of the variables.

    >>> from gossamer_ir.core.build import index, index_var
    >>> i, r = index_var("i"), index_var("r")
    >>> rows = Binary("add", Binary("mul", i, index(4)), r)
    >>> place_vars((rows, index_var("k")), {"i": index_var("m"), "r": index(4), "k": index(8)})
    ('i', 'r', 'k')
    >>> place_vars((rows,), {"i": index_var("m"), "r": index(5)})
    """
    parts = [part for index in indices for part in block_and_place(index, lengths)]
    names = tuple(part.name for part in parts if isinstance(part, Var) and part.name in lengths)
    return names if len(names) == len(parts) == len({*names}) else None


# Other operations: nothing is concluded from them.
def block_and_place(index: Expr, lengths: Mapping[str, Expr]) -> tuple[Expr, ...]:
    """Return the indices of a block and of the place in it if the index counts over blocks of one constant
    size, such as `io * 4 + ii`; otherwise the index. `lengths` are the extents of the variables. With a
    symbolic size the product might wrap around, and rows would not be proved to be different ones.

    >>> from gossamer_ir.core.build import index_var
    >>> [part.name for part in block_and_place(index_var("i"), {})]
    ['i']
    """
    match index:
        case Binary(
            op="add",
            lhs=Binary(op="mul", lhs=Var() as block, rhs=Const() as size),
            rhs=Var() as place,
        ):
            return (block, place) if lengths.get(place.name) == size else (index,)
    return (index,)
