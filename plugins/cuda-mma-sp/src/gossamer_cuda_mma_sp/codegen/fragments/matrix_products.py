"""Loops over fragments that are products: `S[i, j] += X[i, p] * Y[p, j]`, or those of a 2:4 matrix.

for i, q, s, j in ...:
S[i, j] = S[i, j] + X[i, q, s] * Y[4 * q + M[i, q, s], j]
"""

from __future__ import annotations

from collections.abc import Mapping, Set

import msgspec

from gossamer_ir.arith.affine import Affine, affine_of
from gossamer_ir.core.build import ZERO, integer_value
from gossamer_ir.nodes import Binary, Buffer, Cast, Expr, For, Let, Load, Stmt, Store, Var
from gossamer_ir.traversal.substitute import resolve

GROUP, SLOTS = 4, 2


class MatrixProduct(msgspec.Struct, frozen=True):
    """The names of the fragments of a product, and the rows, columns and depth of all its tiles."""

    accumulator: str
    a: str
    b: str
    metadata: str | None
    rows: int
    columns: int
    depth: int


def matrix_product(loop: For, fragments: Mapping[str, Buffer]) -> MatrixProduct | None:
    """Return the product that a loop nest over whole fragments computes; None for any other loop.

    >>> from gossamer_ir.core.build import index, index_var
    >>> shapes = {"S": (16, 8), "X": (16, 16), "Y": (16, 8)}
    >>> fragments = {n: Buffer(n, tuple(map(index, s)), "float32") for n, s in shapes.items()}
    >>> i, j, p = map(index_var, "ijp")
    >>> x, y, s = (Load(n, at, "float32") for n, at in (("X", (i, p)), ("Y", (p, j)), ("S", (i, j))))
    >>> body = (Store("S", (i, j), Binary("add", s, Binary("mul", x, y))),)
    >>> for name, extent in zip("pji", (16, 8, 16)):
    ...     body = (For(name, ZERO, index(extent), body),)
    >>> matrix_product(body[0], fragments)
    MatrixProduct(accumulator='S', a='X', b='Y', metadata=None, rows=16, columns=8, depth=16)
    """
    extents, store = _single_store(loop)
    factors = None if store is None or store.buffer not in fragments else _factors(store)
    if store is None or factors is None:
        return None
    for left, right in (factors, factors[::-1]):
        product = _product(store, left, right, extents)
        if product is not None and _is_whole(product, fragments):
            return product
    return None


def _single_store(loop: For) -> tuple[dict[str, int], Store | None]:
    """Return the extents of loops around a single store, in terms of their variables; no store if there is
    anything else."""
    extents: dict[str, int] = {}
    values: dict[str, Expr] = {}
    body: tuple[Stmt, ...] = (loop,)
    while True:
        *lets, last = body
        for let in lets:
            if not isinstance(let, Let):
                return extents, None
            values[let.var.name] = let.value
        match last:
            case For(kind="serial" | "unrolled") if last.start == ZERO and last.body:
                extent = integer_value(last.extent)
                if extent is None:
                    return extents, None
                extents[last.var] = extent
                body = last.body
            case Store(predicate=None):
                resolved: Store = resolve(last, values)
                return extents, resolved
            case _:
                return extents, None


# Other expressions and operations: nothing is concluded from them.
def _factors(store: Store) -> tuple[Load, Load] | None:
    """Return the elements whose product a store adds to its own element."""
    match store.value:
        case Binary(op="add", lhs=left, rhs=right):
            terms = [term for term in (left, right) if not _is_old(term, store)]
            match terms:
                case [Binary(op="mul", lhs=a, rhs=b)]:
                    loads = (_without_cast(a), _without_cast(b))
                    if all(isinstance(load, Load) for load in loads):
                        return loads  # type: ignore[return-value]  # both are loads
    return None


def _is_old(term: Expr, store: Store) -> bool:
    return isinstance(term, Load) and (term.buffer, term.indices) == (store.buffer, store.indices)


def _without_cast(value: Expr) -> Expr:
    return value.value if isinstance(value, Cast) else value


def _product(store: Store, a: Load, b: Load, extents: Mapping[str, int]) -> MatrixProduct | None:
    match store.indices, a.indices, b.indices:
        case (Var(name=i), Var(name=j)), (row, Var(name=p)), (Var() as at, column):
            is_dense = (row, column, at) == (*store.indices, a.indices[1])
            if is_dense and set(extents) == {i, j, p}:
                return MatrixProduct(
                    store.buffer, a.buffer, b.buffer, None, extents[i], extents[j], extents[p]
                )
        case (Var(name=i), Var(name=j)), (row, Var(name=q), Var(name=s)), (at, column):
            indices = _index_load(at, a)
            is_sparse = (row, column) == store.indices and indices is not None
            if is_sparse and indices is not None and set(extents) == {i, j, q, s}:
                if extents[s] != SLOTS:
                    return None
                depth = GROUP * extents[q]
                names = (store.buffer, a.buffer, b.buffer, indices.buffer)
                return MatrixProduct(*names, extents[i], extents[j], depth)
    return None


def _index_load(at: Expr, a: Load) -> Load | None:
    """Return the load of the index of an element of A in a row `4 * q + index % 4` of B."""
    match at:
        case Binary(op="add", lhs=left, rhs=right):
            for group, last in ((left, right), (right, left)):
                load = _index_in_group(last)
                is_group = affine_of(group) == Affine({a.indices[1]: GROUP}, 0)
                if load is not None and is_group and load.indices == a.indices:
                    return load
    return None


# Other expressions: nothing is concluded from them.
def _index_in_group(index_: Expr) -> Load | None:
    match index_:
        case Binary(op="floormod", lhs=value, rhs=size) if integer_value(size) == GROUP:
            load = _without_cast(value)
            return load if isinstance(load, Load) else None
    return None


def _is_whole(product: MatrixProduct, fragments: Mapping[str, Buffer]) -> bool:
    """Return whether all its operands are fragments, of which every element takes part."""
    stored = (
        (product.rows, product.depth)
        if product.metadata is None
        else (product.rows, product.depth // GROUP, SLOTS)
    )
    shapes = {
        product.accumulator: (product.rows, product.columns),
        product.a: stored,
        product.b: (product.depth, product.columns),
    }
    if product.metadata is not None:
        shapes[product.metadata] = stored
    return len(shapes) == (3 if product.metadata is None else 4) and all(
        name in fragments and _shape(fragments[name]) == shape for name, shape in shapes.items()
    )


def _shape(buffer: Buffer) -> tuple[int | None, ...]:
    return tuple(integer_value(extent) for extent in buffer.shape)


def names_of(product: MatrixProduct) -> Set[str]:
    """Return the fragments of a product."""
    names = {product.accumulator, product.a, product.b}
    return names if product.metadata is None else names | {product.metadata}
