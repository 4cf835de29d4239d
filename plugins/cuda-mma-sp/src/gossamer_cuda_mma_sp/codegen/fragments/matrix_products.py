"""Loops over fragments that are products: `S[i, j] += X[i, p] * Y[p, j]`, or those of an N:M matrix.

for i, q, s, j in ...:
S[i, j] = S[i, j] + X[i, q, s] * Y[4 * q + M[i, q, s] % 4, j]

In shared memory, a row of such a matrix is stored as a whole, `X[i, 2 * q + s]`.
A matrix of the pattern 1:2 has no slots, `X[i, q] * Y[2 * q + M[i, q] % 2, j]`, and one of 4:8 has pairs,
`X[i, q, s, p] * Y[8 * q + 2 * (M[i, q, s] % 4) + p, j]`. A factor that is not an element says what the
instruction reads of it: `T.tf32(x)` ten bits of the fraction of a float32, `x << 4 >> 4` and `x & 15` four
bits of an int8 and of a uint8.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

import msgspec
from msgspec.structs import replace

from gossamer_cuda_mma_sp.n_m.n_m_patterns import FOUR_OF_EIGHT, ONE_OF_TWO, TWO_OF_FOUR, NMPattern
from gossamer_ir.arith.affine import Affine, affine_of
from gossamer_ir.core.build import ZERO, integer_value
from gossamer_ir.nodes import Binary, Buffer, Call, Cast, Expr, For, Let, Load, Stmt, Store, Var
from gossamer_ir.traversal.substitute import resolve
from gossamer_machine.intrinsics.float8_operands import float8_factor

_PATTERNS = {2: ONE_OF_TWO, 3: TWO_OF_FOUR, 4: FOUR_OF_EIGHT}
"""The pattern of a fragment of A, by the number of its dimensions."""
_INT4_BITS = 4


class MatrixProduct(msgspec.Struct, frozen=True):
    """The names of the fragments of a product, the dtypes of its operands as instructions name them, and the
    rows, columns and depth of all its tiles."""

    accumulator: str
    a: str
    b: str
    metadata: str | None
    operands: tuple[str, str]
    rows: int
    columns: int
    depth: int
    b_is_shared: bool = False
    """True if B is in shared memory instead of a fragment."""
    a_is_shared: bool = False
    """True if A is there, too, with its rows as they are stored."""
    b_is_by_k: bool = False
    """True if B is stored with the elements along its depth contiguous."""


class _Factor(msgspec.Struct, frozen=True):
    """An element of a fragment that is multiplied, and the dtype in which an instruction reads it."""

    load: Load
    dtype: str


def matrix_product(
    loop: For, fragments: Mapping[str, Buffer], shared: Mapping[str, Buffer] | None = None
) -> MatrixProduct | None:
    """Return the product that a loop nest over whole fragments computes; None for any other loop. B of a
    sparse product may be one of the buffers in `shared` memory, whose columns may come first, and then A may
    be one, too.

    >>> from gossamer_ir.core.build import index, index_var
    >>> shapes = {"S": (16, 8), "X": (16, 16), "Y": (16, 8)}
    >>> fragments = {n: Buffer(n, tuple(map(index, s)), "float32") for n, s in shapes.items()}
    >>> i, j, p = map(index_var, "ijp")
    >>> x, y, s = (Load(n, at, "float32") for n, at in (("X", (i, p)), ("Y", (p, j)), ("S", (i, j))))
    >>> body = (Store("S", (i, j), Binary("add", s, Binary("mul", x, y))),)
    >>> for name, extent in zip("pji", (16, 8, 16)):
    ...     body = (For(name, ZERO, index(extent), body),)
    >>> product = matrix_product(body[0], fragments)
    >>> product.a, product.b, product.operands, product.depth
    ('X', 'Y', ('float32', 'float32'), 16)
    """
    extents, store = _single_store(loop)
    factors = None if store is None or store.buffer not in fragments else _factors(store)
    if store is None or factors is None:
        return None
    for left, right in (factors, factors[::-1]):
        product = _dense_product(store, left, right, extents) or _sparse_product(
            store, left, right, extents
        )
        if product is None:
            continue
        tiles = dict(fragments)
        if product.metadata is not None and product.b in (shared or {}):
            a_is_shared = product.a in (shared or {})
            product = replace(product, b_is_shared=True, a_is_shared=a_is_shared)
            tiles = {**fragments, **(shared or {})}
        if _is_whole(product, tiles):
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


# Other operations: no products that a matrix instruction adds.
def _factors(store: Store) -> tuple[_Factor, _Factor] | None:
    """Return the elements whose product a store adds to its own element."""
    match store.value:
        case Binary(op="add", lhs=left, rhs=right):
            terms = [term for term in (left, right) if not _is_old(term, store)]
            match terms:
                case [Binary(op="mul", lhs=a, rhs=b)]:
                    left_factor, right_factor = _factor(a), _factor(b)
                    if left_factor is not None and right_factor is not None:
                        return left_factor, right_factor
    return None


def _is_old(term: Expr, store: Store) -> bool:
    return isinstance(term, Load) and (term.buffer, term.indices) == (store.buffer, store.indices)


# Other expressions and operations: nothing is concluded from them.
def _factor(value: Expr) -> _Factor | None:
    """Return an element that may be converted to the dtype of the sums."""
    decoded = float8_factor(value)
    if decoded is not None:
        return _Factor(*decoded)
    match value.value if isinstance(value, Cast) else value:
        case Load() as load:
            return _Factor(load, load.dtype)
        case Call(function="tf32", args=(Load(dtype="float32") as load,)):
            return _Factor(load, "tfloat32")
        case Binary(
            op="shr", lhs=Binary(op="shl", lhs=Load(dtype="int8") as load, rhs=up), rhs=down
        ):
            if integer_value(up) == integer_value(down) == _INT4_BITS:
                return _Factor(load, "int4")
        case Binary(op="bitand", lhs=Load(dtype="uint8") as load, rhs=mask):
            if integer_value(mask) == (1 << _INT4_BITS) - 1:
                return _Factor(load, "uint4")
    return None


def _dense_product(
    store: Store, a: _Factor, b: _Factor, extents: Mapping[str, int]
) -> MatrixProduct | None:
    match store.indices, a.load.indices, b.load.indices:
        case (Var(name=i), Var(name=j)), (row, Var(name=p)), (Var() as at, column):
            is_dense = (row, column, at) == (*store.indices, a.load.indices[1])
            if is_dense and set(extents) == {i, j, p}:
                sizes = (extents[i], extents[j], extents[p])
                names = (store.buffer, a.load.buffer, b.load.buffer)
                return MatrixProduct(*names, None, (a.dtype, b.dtype), *sizes)
    return None


def _sparse_product(
    store: Store, a: _Factor, b: _Factor, extents: Mapping[str, int]
) -> MatrixProduct | None:
    stored = _stored_indices(a.load)
    pattern = _PATTERNS.get(len(stored))
    vars = [at.name for at in (*store.indices, *stored[1:]) if isinstance(at, Var)]
    if pattern is None or len(store.indices) != 2 or len(b.load.indices) != 2:
        return None
    by_k = b.load.indices[0] == store.indices[1]
    depth_index, column = b.load.indices[::-1] if by_k else b.load.indices
    indices = _index_load(depth_index, stored, pattern)
    is_sparse = (stored[0], column) == store.indices and indices is not None
    if not is_sparse or indices is None or len(vars) != len(extents) or set(vars) != set(extents):
        return None
    i, j, q, *inner = (extents[name] for name in vars)
    if tuple(inner) != _inner_shape(pattern):
        return None
    names = (store.buffer, a.load.buffer, b.load.buffer, indices.buffer)
    return MatrixProduct(*names, (a.dtype, b.dtype), i, j, pattern.group * q, b_is_by_k=by_k)


def _stored_indices(load: Load) -> tuple[Expr, ...]:
    """Return the row, the group and the slot of an element, also of a matrix whose rows are stored as a
    whole, with the slots `2 * q + s`."""
    match load.indices:
        case (row, Binary() as column):
            form = affine_of(column)
            by_count = {count: atom for atom, count in form.terms.items()}
            if form == Affine({by_count.get(2, ZERO): 2, by_count.get(1, ZERO): 1}, 0):
                return row, by_count[2], by_count[1]
    return load.indices


def _inner_shape(pattern: NMPattern) -> tuple[int, ...]:
    """Return the sizes of the dimensions of a fragment of A after those of rows and groups."""
    return tuple(size for size in (pattern.slots, pattern.unit_columns) if size > 1)


def _index_load(at: Expr, stored: Sequence[Expr], pattern: NMPattern) -> Load | None:
    """Return the load of the index of a unit of A, for the row of B of an element of the unit."""
    row, group, *inner = stored
    pair = {inner[1]: 1} if pattern.unit_columns > 1 else {}
    form = affine_of(at)
    for atom in form.terms:
        load = _index_in_group(atom, pattern.units)
        expected = {group: pattern.group, atom: pattern.unit_columns, **pair}
        if load is not None and form == Affine(expected, 0):
            return load if load.indices == (row, group, *inner[:1]) else None
    return None


# Other expressions: nothing is concluded from them.
def _index_in_group(index_: Expr, units: int) -> Load | None:
    match index_:
        case Binary(op="floormod", lhs=value, rhs=size) if integer_value(size) == units:
            load = value.value if isinstance(value, Cast) else value
            return load if isinstance(load, Load) else None
    return None


def _is_whole(product: MatrixProduct, fragments: Mapping[str, Buffer]) -> bool:
    """Return whether its operands are fragments, but for a B that may be in shared memory, and every element
    of each takes part."""
    shapes: dict[str, tuple[int, ...]] = {
        product.accumulator: (product.rows, product.columns),
        product.b: (product.depth, product.columns)[:: -1 if product.b_is_by_k else 1],
    }
    warp_buffers = {product.accumulator, product.metadata}
    if not product.a_is_shared:
        warp_buffers.add(product.a)
    if product.b_is_by_k and not product.b_is_shared:
        return False
    if any(
        name in fragments and fragments[name].scope == "shared" for name in warp_buffers if name
    ):
        return False
    if product.metadata is None:
        shapes[product.a] = (product.rows, product.depth)
    else:
        pattern = _pattern_of(product, fragments)
        if pattern is None:
            return False
        inner = _inner_shape(pattern)
        stored = (product.rows, product.depth // pattern.group, *inner)
        shapes |= {product.a: stored, product.metadata: stored[: 2 + len(inner[:1])]}
        if product.a_is_shared:
            shapes[product.a] = (product.rows, prod(stored[1:]))
    return len(shapes) == (3 if product.metadata is None else 4) and all(
        name in fragments and _shape(fragments[name]) == shape for name, shape in shapes.items()
    )


def _pattern_of(product: MatrixProduct, tiles: Mapping[str, Buffer]) -> NMPattern | None:
    """Return the pattern of A, whose rows may be stored as a whole in shared memory: its indices then have
    the dimensions that elements of a fragment have."""
    like = tiles.get(product.metadata or "" if product.a_is_shared else product.a)
    return None if like is None else _PATTERNS.get(len(like.shape))


def _shape(buffer: Buffer) -> tuple[int | None, ...]:
    return tuple(integer_value(extent) for extent in buffer.shape)
