"""Loops over the rows of matrix registers that are outer products.

An iteration adds the product of an element of a column of another register and a vector to a row:

    for r in T.serial(4 * T.vscale()):
        S[r, :] = S[r, :] + X[r, p] * B[p, :]

For all rows, that is one instruction. With elements of float16, one instruction adds two such products, of
neighboring columns.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from gossamer_ir.arith.affine import Affine, affine_of, expr_of
from gossamer_ir.core.build import ZERO, index_var
from gossamer_ir.core.dtypes import DType
from gossamer_ir.core.expression_kinds import dtype_of
from gossamer_ir.nodes import Binary, Broadcast, Cast, Expr, For, Let, Load, Stmt, Store, VScale
from gossamer_ir.traversal.buffer_uses import buffers_read
from gossamer_ir.traversal.free_vars import free_vars
from gossamer_ir.traversal.substitute import resolve
from gossamer_llvm.emitter.function_emitter import FunctionEmitter
from gossamer_llvm.emitter.operands import Value
from gossamer_llvm.targets.sme.tiles import (
    ALL_WORDS,
    FRAGMENT_ROWS,
    emit_column,
    fragments_of,
    tile_of,
    word_mask,
)

_FLOATS, _WORDS = "<vscale x 4 x float>", "<vscale x 4 x i32>"
_HALVES, _FLOAT16 = "<vscale x 8 x i16>", "<vscale x 8 x half>"
_BYTES, _HALF_MASK = "<vscale x 16 x i1>", "<vscale x 8 x i1>"
_ALL_HALVES = f"{_HALF_MASK} splat (i1 true)"
_FIRST_HALVES = "splat (i32 65535)"


class _Product(NamedTuple):
    """The element of a column, and the vector by which it is multiplied."""

    element: Load
    vector: Expr


class _Update(msgspec.Struct, frozen=True):
    """The store of a row, and the products that it adds to the row."""

    store: Store
    products: tuple[_Product, ...]

    @property
    def is_narrow(self) -> bool:
        """True if the operands are float16."""
        return self.products[0].element.dtype == "float16"


def emit_outer_products(emitter: FunctionEmitter, loop: For) -> bool:
    """Emit a loop over all rows of tiles as outer products. Return False, without emitting anything, for any
    other loop."""
    updates = _updates(emitter, loop)
    columns: dict[Load, str] = {}
    for update in updates:
        first = update.products[0].element
        if first not in columns:
            columns[first] = _column(emitter, first)
        _emit_update(emitter, update, columns[first])
    return bool(updates)


def _updates(emitter: FunctionEmitter, loop: For) -> tuple[_Update, ...]:
    """Return the updates of a loop; none unless it is one over all rows, which they may update one after the
    other."""
    all_rows = Affine({VScale(): FRAGMENT_ROWS}, 0)
    if not fragments_of(emitter) or loop.kind != "serial" or loop.start != ZERO:
        return ()
    if affine_of(loop.extent) != all_rows:
        return ()
    body = _without_lets(loop.body)
    updates_or_none = [
        _update(emitter, stmt, loop.var) if isinstance(stmt, Store) else None for stmt in body
    ]
    updates = tuple(update for update in updates_or_none if update is not None)
    written = {update.store.buffer for update in updates}
    read = {name for update in updates for name in _read(update)}
    return updates if len(updates) == len(updates_or_none) and read.isdisjoint(written) else ()


# Other statements: stay, with the values of the lets before them.
def _without_lets(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """Return statements with the values of variables that they bind: copies of unrolled loops share these."""
    values: dict[str, Expr] = {}
    result: list[Stmt] = []
    for stmt in body:
        resolved = resolve(stmt, values)
        if isinstance(resolved, Let):
            values[resolved.var.name] = resolved.value
        else:
            result.append(resolved)
    return tuple(result)


def _read(update: _Update) -> Iterator[str]:
    for element, vector in update.products:
        yield element.buffer
        yield from buffers_read(*element.indices, vector)
    if update.store.predicate is not None:
        yield from buffers_read(update.store.predicate)


def _update(emitter: FunctionEmitter, store: Store, row: str) -> _Update | None:
    """Return the update of a row by a store; None for any other store."""
    if not _is_row(emitter, store, row) or not _is_independent(store.predicate, row):
        return None
    match store.value:
        case Binary(op="add", lhs=left, rhs=right):
            terms = right if _is_old(left, store) else left if _is_old(right, store) else None
            products = () if terms is None else _products(emitter, terms, row)
            return _Update(store, products) if products else None
    return None


def _is_independent(node: Expr | None, row: str) -> bool:
    return node is None or row not in free_vars(node)


def _is_old(term: Expr, store: Store) -> bool:
    """Return whether a term is the row that is updated, at least where it is stored."""
    return (
        isinstance(term, Load)
        and (term.buffer, term.indices) == (store.buffer, store.indices)
        and term.predicate in (None, store.predicate)
    )


def _is_row(emitter: FunctionEmitter, access: Load | Store, row: str) -> bool:
    """Return whether an access is to the row of the loop, of a buffer in matrix registers."""
    if access.buffer not in fragments_of(emitter) or access.indices[-2] != index_var(row):
        return False
    return row not in free_vars(*access.indices[:-2], access.indices[-1])


def _products(emitter: FunctionEmitter, terms: Expr, row: str) -> tuple[_Product, ...]:
    """Return the product of float32, or one or two of float16 from a pair of columns; none for others."""
    parts = (terms.lhs, terms.rhs) if isinstance(terms, Binary) and terms.op == "add" else (terms,)
    products_or_none = [_product(emitter, term, row) for term in parts]
    products = tuple(product for product in products_or_none if product is not None)
    if len(products) < len(products_or_none):
        return ()
    if all(product.element.dtype == "float32" for product in products):
        return products if len(products) == 1 else ()
    return products if _are_in_pair(products) else ()


def _are_in_pair(products: tuple[_Product, ...]) -> bool:
    """Return whether elements are in the columns 2 * x and, if there is another one, 2 * x + 1 of a tile."""
    (*tile, column), first = products[0].element.indices, products[0].element
    start = affine_of(column)
    is_even = start.constant % 2 == 0 and not any(by % 2 for by in start.terms.values())
    return is_even and all(
        (element.buffer, element.dtype, [*element.indices[:-1]])
        == (first.buffer, first.dtype, tile)
        and affine_of(element.indices[-1]) - start == Affine({}, number)
        for number, (element, _) in enumerate(products)
    )


def _product(emitter: FunctionEmitter, term: Expr, row: str) -> _Product | None:
    """Return the product of an element of a column and a vector that is the same in all rows."""
    if not isinstance(term, Binary) or term.op != "mul":
        return None
    for factor, vector in ((term.lhs, term.rhs), (term.rhs, term.lhs)):
        element, other = _element(factor), _without_cast(vector)
        if (
            element is not None
            and _is_row(emitter, element, row)
            and row not in free_vars(other)
            and DType.parse(dtype_of(other)) == DType(element.dtype, FRAGMENT_ROWS, scalable=True)
        ):
            return _Product(element, other)
    return None


# Other expressions: nothing is concluded from them.
def _element(factor: Expr) -> Load | None:
    """Return the scalar that is in all lanes of a factor, if it is loaded."""
    match _without_cast(factor):
        case Broadcast(value=scalar):
            element = _without_cast(scalar)
            if isinstance(element, Load) and element.predicate is None:
                return element
    return None


def _without_cast(value: Expr) -> Expr:
    """Return the float16 operand of a conversion, or the value itself."""
    match value:
        case Cast(value=narrow) if DType.parse(dtype_of(narrow)).scalar == "float16":
            return narrow
    return value


def _column(emitter: FunctionEmitter, element: Load) -> str:
    """Return the column of an element; of float16, the pair of columns."""
    column = affine_of(element.indices[-1])
    if element.dtype == "float16":
        halved = {atom: by // 2 for atom, by in column.terms.items()}
        column = Affine(halved, column.constant // 2)
    return emit_column(emitter, element, expr_of(column))


def _emit_update(emitter: FunctionEmitter, update: _Update, column: str) -> None:
    """Add the outer product of a column and a vector, or of the pairs of two of each, to a tile."""
    vectors = [emitter.expr(product.vector) for product in update.products]
    tile, mask = tile_of(emitter, update.store), word_mask(emitter, update.store)
    if not update.is_narrow:
        (vector,) = vectors
        operands = f"{ALL_WORDS}, {mask}, {_FLOATS} {column}, {vector.typed}"
        emitter.call_void("llvm.aarch64.sme.mopa.nxv4f32", f"i32 {tile}, {operands}")
        return
    halves = [_in_words(emitter, vector) for vector in vectors]
    if len(halves) == 1:
        # The other column of the pair is not multiplied: it might be infinite.
        column = emitter.builder.value(f"and {_WORDS} {column}, {_FIRST_HALVES}")
    first, last = _as_halves(emitter, f"{_WORDS} {column}"), _interleave(emitter, halves)
    pairs = _mask_of_pairs(emitter, mask)
    operands = f"{_ALL_HALVES}, {pairs}, {_FLOAT16} {first}, {_FLOAT16} {last}"
    emitter.call_void("llvm.aarch64.sme.mopa.wide.nxv8f16", f"i32 {tile}, {operands}")


def _in_words(emitter: FunctionEmitter, vector: Value) -> str:
    """Return float16 in the lower halves of words, with zeros above them."""
    words = emitter.builder.value(f"zext {vector.typed} to {_WORDS}")
    return emitter.builder.value(f"bitcast {_WORDS} {words} to {_HALVES}")


def _interleave(emitter: FunctionEmitter, halves: list[str]) -> str:
    """Return the pairs of the elements of two vectors, or of one vector and zeros."""
    pairs = halves[0]
    if len(halves) == 2:
        operands = ", ".join(f"{_HALVES} {half}" for half in halves)
        pairs = emitter.call(_HALVES, "llvm.aarch64.sve.trn1.nxv8i16", operands)
    return _as_halves(emitter, f"{_HALVES} {pairs}")


def _mask_of_pairs(emitter: FunctionEmitter, mask: str) -> str:
    """Return the mask of both halves of each word of a mask."""
    if mask == ALL_WORDS:
        return _ALL_HALVES
    every = emitter.call(_BYTES, "llvm.aarch64.sve.convert.to.svbool.nxv4i1", mask)
    name = "llvm.aarch64.sve.convert.from.svbool.nxv8i1"
    # The odd ones of these are off.
    halves = emitter.call(_HALF_MASK, name, f"{_BYTES} {every}")
    operands = f"{_HALF_MASK} {halves}, {_HALF_MASK} {halves}"
    return f"{_HALF_MASK} " + emitter.call(_HALF_MASK, "llvm.aarch64.sve.trn1.nxv8i1", operands)


def _as_halves(emitter: FunctionEmitter, value: str) -> str:
    return emitter.builder.value(f"bitcast {value} to {_FLOAT16}")
