"""Products of an N:M matrix and a dense one by `mma.sp`: semantics and implementation of each intrinsic.

The numbers of rows, groups and features may have any values. A block of one warp has a tile of as many
rows as features, so that several instructions use an element; what a tile has beyond the matrices is zero.
The matrix has a dimension of slots if groups have several, and one of the elements of a pair for the pattern
4:8.
"""

from __future__ import annotations

from gossamer_cuda_mma_sp.intrinsics.product_intrinsics import ProductIntrinsic
from gossamer_cuda_mma_sp.n_m.n_m_patterns import NMPattern
from gossamer_cuda_mma_sp.n_m.operand_dtypes import operand_dtype_named
from gossamer_ir.core.dtypes import SCALARS
from gossamer_ir.interchange.records import Intrinsic
from gossamer_machine.intrinsics.block_products import factor_text

_HEADER = """
@T.prim_func
def n_m_product(
    a: T.handle, e: T.handle, b: T.handle, c: T.handle, rows: T.int64, groups: T.int64, features: T.int64,
) -> None:
    T.func_attr({{"sparse_tir_level": 0}})
    A = T.match_buffer(a, (rows, groups{stored_shape}), "{dtype}")
    E = T.match_buffer(e, (rows, groups{unit_shape}), "uint8")
    B = T.match_buffer(b, (groups * {group}, features), "{dtype}")
    C = T.match_buffer(c, (rows, features), "{sums}")
    T.assume(in_range(E, 0, {units}))
"""
_SEMANTICS = """
    for i, q{s}{p}, j in T.grid(rows, groups{stored_shape}, features):
        with T.block("n_m_product"):
            vi, vq{vs}{vp}, vj = T.axis.remap("{kinds}", [i, q{s}{p}, j])
            C[vi, vj] = C[vi, vj] + {a} * {b}
"""
_IMPLEMENTATION = """
    for i_0 in T.thread_binding((rows + {tile} - 1) // {tile}, thread="blockIdx.x"):
        for j_0 in T.thread_binding((features + {tile} - 1) // {tile}, thread="blockIdx.y"):
            S = T.alloc_buffer(({tile}, {tile}), "{sums}", scope="fragment")
            for i, j in T.grid({tile}, {tile}):
                S[i, j] = T.if_then_else(i_0 * {tile} + i < rows and j_0 * {tile} + j < features, C[i_0 * {tile} + i, j_0 * {tile} + j], T.{sums}(0))
            for q_0 in T.serial((groups + {groups} - 1) // {groups}):
                X = T.alloc_buffer(({tile}, {groups}{stored_shape}), "{dtype}", scope="fragment")
                M = T.alloc_buffer(({tile}, {groups}{unit_shape}), "uint8", scope="fragment")
                Y = T.alloc_buffer(({depth}, {tile}), "{dtype}", scope="fragment")
                for i_1, q_1{s}{p} in T.grid({tile}, {groups}{stored_shape}):
                    X[i_1, q_1{s}{p}] = T.if_then_else(i_0 * {tile} + i_1 < rows and q_0 * {groups} + q_1 < groups, A[i_0 * {tile} + i_1, q_0 * {groups} + q_1{s}{p}], T.{dtype}(0))
                for i_2, q_2{s} in T.grid({tile}, {groups}{unit_shape}):
                    M[i_2, q_2{s}] = T.if_then_else(i_0 * {tile} + i_2 < rows and q_0 * {groups} + q_2 < groups, E[i_0 * {tile} + i_2, q_0 * {groups} + q_2{s}], {first_unit})
                for k, j_1 in T.grid({depth}, {tile}):
                    Y[k, j_1] = T.if_then_else(q_0 * {depth} + k < groups * {group} and j_0 * {tile} + j_1 < features, B[q_0 * {depth} + k, j_0 * {tile} + j_1], T.{dtype}(0))
                for i_3, q_3{s}{p}, j_2 in T.grid({tile}, {groups}{stored_shape}, {tile}):
                    S[i_3, j_2] = S[i_3, j_2] + {x} * {y}
            for i_4, j_3 in T.grid({tile}, {tile}):
                if i_0 * {tile} + i_4 < rows and j_0 * {tile} + j_3 < features:
                    C[i_0 * {tile} + i_4, j_0 * {tile} + j_3] = S[i_4, j_3]
"""  # noqa: E501  (scripts have no line breaks inside an expression)
_STAGED_IMPLEMENTATION = """
    for i_0 in T.thread_binding((rows + 127) // 128, thread="blockIdx.x"):
        for j_0 in T.thread_binding((features + {tile} - 1) // {tile}, thread="blockIdx.y"):
            S = T.alloc_buffer((128, {tile}), "{sums}", scope="fragment")
            for i, j in T.grid(128, {tile}):
                S[i, j] = T.{sums}(0)
            for q_0 in T.serial((groups + {tile_groups} - 1) // {tile_groups}, annotations={{"pipeline": {stages}}}):
                X = T.alloc_buffer((128, {row_slots}), "{dtype}", scope="shared")
                W = T.alloc_buffer((128, {row_slots}), "uint8", scope="shared")
                Y = T.alloc_buffer(({stored_b}), "{dtype}", scope="shared")
                for t in T.thread_binding(256, thread="threadIdx.x"):
{filled_a}
                    for r in T.serial({index_chunks} // 2):
                        if i_0 * 128 + (r * 256 + t) // {index_chunks} < rows and q_0 * {tile_groups} + t % {index_chunks} * {index_groups} + {index_groups} <= groups:
                            for v in T.serial({index_chunk}):
                                W[(r * 256 + t) // {index_chunks}, t % {index_chunks} * {index_chunk} + v] = E[i_0 * 128 + (r * 256 + t) // {index_chunks}, q_0 * {tile_groups} + t % {index_chunks} * {index_groups} + {v}]
                        else:
                            for v in T.serial({index_chunk}):
                                W[(r * 256 + t) // {index_chunks}, t % {index_chunks} * {index_chunk} + v] = T.if_then_else(i_0 * 128 + (r * 256 + t) // {index_chunks} < rows and q_0 * {tile_groups} + t % {index_chunks} * {index_groups} + {group_of_v} < groups, E[i_0 * 128 + (r * 256 + t) // {index_chunks}, q_0 * {tile_groups} + t % {index_chunks} * {index_groups} + {v}], {first_unit_of_v})
{filled_b}
                M = T.alloc_buffer((128, {tile_groups}{unit_shape}), "uint8", scope="fragment")
                for i_2, q_2{s} in T.grid(128, {tile_groups}{unit_shape}):
                    M[i_2, q_2{s}] = W[i_2, {slot_of_2}]
{fragments}                for i_3, q_3{s}, j_2 in T.grid(128, {tile_groups}{unit_shape}, {tile}):
                    S[i_3, j_2] = S[i_3, j_2] + {x} * {y}
            for i_4, j_3 in T.grid(128, {tile}):
                if i_0 * 128 + i_4 < rows and j_0 * {tile} + j_3 < features:
                    C[i_0 * 128 + i_4, j_0 * {tile} + j_3] = C[i_0 * 128 + i_4, j_0 * {tile} + j_3] + S[i_4, j_3]
"""  # noqa: E501  (scripts have no line breaks inside an expression)
_CHUNKS_OF_A = """\
                    for r in T.serial(2):
                        if i_0 * 128 + r * 64 + t // 4 < rows and q_0 * {tile_groups} + t % 4 * {chunk_groups} + {chunk_groups} <= groups:
                            for v in T.serial({chunk}):
                                X[r * 64 + t // 4, t % 4 * {chunk} + v] = A[i_0 * 128 + r * 64 + t // 4, q_0 * {tile_groups} + t % 4 * {chunk_groups} + {v}]
                        else:
                            for v in T.serial({chunk}):
                                X[r * 64 + t // 4, t % 4 * {chunk} + v] = T.if_then_else(i_0 * 128 + r * 64 + t // 4 < rows and q_0 * {tile_groups} + t % 4 * {chunk_groups} + {group_of_v} < groups, A[i_0 * 128 + r * 64 + t // 4, q_0 * {tile_groups} + t % 4 * {chunk_groups} + {v}], T.{dtype}(0))\
"""  # noqa: E501  (scripts have no line breaks inside an expression)
"""Asynchronous copies of A, of 16 bytes."""
_ROUNDED_A = """\
                    for r in T.serial({row_slots} // 2):
                        X[(r * 256 + t) // {row_slots}, (r * 256 + t) % {row_slots}] = T.if_then_else(i_0 * 128 + (r * 256 + t) // {row_slots} < rows and q_0 * {tile_groups} + (r * 256 + t) % {row_slots} < groups, T.tf32(A[i_0 * 128 + (r * 256 + t) // {row_slots}, q_0 * {tile_groups} + (r * 256 + t) % {row_slots}]), T.{dtype}(0))\
"""  # noqa: E501  (scripts have no line breaks inside an expression)
"""Copies of A that round to TF32: instructions cut what is in shared memory."""
_FRAGMENTS = """\
                F = T.alloc_buffer((128, {tile_groups}{unit_shape}), "{dtype}", scope="fragment")
                G = T.alloc_buffer(({tile_depth}, {tile}), "{dtype}", scope="fragment")
                for i_5, q_5{s} in T.grid(128, {tile_groups}{unit_shape}):
                    F[i_5, q_5{s}] = X[i_5, {slot_of_5}]
                for k_5, j_5 in T.grid({tile_depth}, {tile}):
                    G[k_5, j_5] = Y[k_5, j_5]
"""
"""The operands of warps, which warpgroups read in shared memory."""
_ROWS_OF_B = """\
                    for r in T.serial({tile_depth} * {row_chunks} // 256):
                        if q_0 * {tile_depth} + {k} < groups * {group} and j_0 * {tile} + {first} + {chunk} <= features:
                            for v in T.serial({chunk}):
                                Y[{k}, {first} + v] = B[q_0 * {tile_depth} + {k}, j_0 * {tile} + {first} + v]
                        else:
                            for v in T.serial({chunk}):
                                Y[{k}, {first} + v] = T.if_then_else(q_0 * {tile_depth} + {k} < groups * {group} and j_0 * {tile} + {first} + v < features, B[q_0 * {tile_depth} + {k}, j_0 * {tile} + {first} + v], T.{dtype}(0))\
"""  # noqa: E501  (scripts have no line breaks inside an expression)
"""Copies of B, whose rows are contiguous in shared memory, too."""
_COLUMNS_OF_B = """\
                    for r in T.serial({tile_depth} * {tile} // 256):
                        Y[(r * 256 + t) % {tile}, (r * 256 + t) // {tile}] = T.if_then_else(q_0 * {tile_depth} + (r * 256 + t) // {tile} < groups * {group} and j_0 * {tile} + (r * 256 + t) % {tile} < features, {stored_element_of_b}, T.{dtype}(0))\
"""  # noqa: E501  (scripts have no line breaks inside an expression)
"""Copies of B, whose columns are contiguous in shared memory."""
_ELEMENT_OF_B = (
    "B[q_0 * {tile_depth} + (r * 256 + t) // {tile}, j_0 * {tile} + (r * 256 + t) % {tile}]"
)
_STEPS, _ROUNDED_STEPS = 2, 4
"""The instructions along the depth of a tile in shared memory. In TF32, warpgroups then have two chunks of
indices in a row; those of warps have half of the bytes, since fewer stages would fit."""
_CHUNK_BYTES = 16
"""The bytes of the largest asynchronous copy."""
_PADDING = 8
"""The elements between rows of B that warps load one by one: those of four lanes of a quad, which are in four
rows, are then in different banks."""
_TRANSPOSED_BITS = 16
"""The bits of the elements whose rows instructions can read where columns are needed."""
_NARROWED = {"int4": "({} << 4 >> 4)", "uint4": "({} & 15)"}
"""The script of the bits of an element that an instruction reads."""


def n_m_intrinsic(product: ProductIntrinsic, *, tile: int | None = None) -> Intrinsic:
    """Return the semantics and the implementation of an intrinsic, which computes tiles of `tile` rows and
    features, a multiple of 16; None means the largest that fits the registers. With operands in shared
    memory, eight warps have 128 rows together, and `tile` features, a multiple of 32."""
    if tile is None:
        tile = product.tile.features
    texts = _texts_of_pattern(product.pattern) | _texts_of_dtypes(product) | {"tile": str(tile)}
    at = "vi, vq{vs}{vp}".format(**texts)
    semantics = {
        "a": _factor(f"A[{at}]", product),
        "b": _factor(f"B[{texts['row_of_b']}, vj]", product),
    }
    if product.stages:
        return _staged_intrinsic(product, texts, semantics)
    stored = "i_3, q_3{s}{p}".format(**texts)
    implementation = {
        "x": _read_factor(f"X[{stored}]", product),
        "y": _read_factor(f"Y[{texts['row_of_y']}, j_2]", product),
    }
    header = _HEADER.format(**texts) + _facts(product)
    return Intrinsic(
        product.name,
        header + _SEMANTICS.format(**texts, **semantics),
        header + _IMPLEMENTATION.format(**texts, **implementation),
    )


def _staged_intrinsic(
    product: ProductIntrinsic, texts: dict[str, str], semantics: dict[str, str]
) -> Intrinsic:
    """Return an intrinsic whose tiles of 128 rows eight warps compute, with operands in shared memory. Two
    warpgroups multiply them, or warps do, which load them to fragments. The rows of B are contiguous there,
    as in the matrix, if instructions transpose elements of 16 bits, or warps load those of 32 bits one by
    one; else its columns are, which instructions then need."""
    has_slots, tile, row = product.pattern.slots > 1, int(texts["tile"]), texts["row_of_y"]
    is_rounded = not has_slots and product.is_of_warpgroup
    depth = product.depth * (_ROUNDED_STEPS if is_rounded else _STEPS)
    groups, bits = depth // product.pattern.group, SCALARS[product.stored_dtype].bits
    slots = groups * product.pattern.slots
    chunk, index_chunk = _CHUNK_BYTES * 8 // bits, min(_CHUNK_BYTES, slots // 2)
    by_row = bits == _TRANSPOSED_BITS or (bits > _TRANSPOSED_BITS and not product.is_of_warpgroup)
    pitch = tile if bits == _TRANSPOSED_BITS else tile + _PADDING
    texts |= {
        "tile_groups": str(groups),
        "row_slots": str(slots),
        "tile_depth": str(depth),
        "stages": str(product.stages),
        "stored_b": f"{depth}, {pitch}" if by_row else f"{tile}, {depth}",
        "chunk": str(chunk),
        "chunk_groups": str(chunk // product.pattern.slots),
        "index_chunk": str(index_chunk),
        "index_chunks": str(slots // index_chunk),
        "index_groups": str(index_chunk // product.pattern.slots),
        "v": "v // 2, v % 2" if has_slots else "v",
        "group_of_v": "v // 2" if has_slots else "v",
        "first_unit_of_v": 'T.cast(v % 2, "uint8")' if has_slots else "T.uint8(0)",
        **{f"slot_of_{n}": f"2 * q_{n} + s" if has_slots else f"q_{n}" for n in (2, 5)},
        "row_chunks": str(tile // chunk),
        "k": f"(r * 256 + t) // {tile // chunk}",
        "first": f"(r * 256 + t) % {tile // chunk} * {chunk}",
    }
    x, y = "X[i_3, 2 * q_3 + s]" if has_slots else "X[i_3, q_3]", f"Y[j_2, {row}]"
    if by_row:
        y = f"Y[{row}, j_2]"
    if not product.is_of_warpgroup:
        x, y = f"F[i_3, q_3{texts['s']}]", f"G[{row}, j_2]"
    texts |= {"x": _factor(x, product), "y": _factor(y, product)}
    # Only elements that are copied unchanged are copied asynchronously.
    element_of_b = _ELEMENT_OF_B.format(**texts)
    texts["stored_element_of_b"] = _factor(element_of_b, product) if is_rounded else element_of_b
    texts["filled_a"] = (_ROUNDED_A if is_rounded else _CHUNKS_OF_A).format(**texts)
    texts["filled_b"] = (_ROWS_OF_B if by_row else _COLUMNS_OF_B).format(**texts)
    texts["fragments"] = "" if product.is_of_warpgroup else _FRAGMENTS.format(**texts)
    header = _HEADER.format(**texts) + _facts(product)
    return Intrinsic(
        product.name,
        header + _SEMANTICS.format(**texts, **semantics),
        header + _STAGED_IMPLEMENTATION.format(**texts),
    )


def _texts_of_dtypes(product: ProductIntrinsic) -> dict[str, str]:
    return {
        "dtype": product.stored_dtype,
        "sums": product.sums,
        "depth": str(product.depth),
        "groups": str(product.depth // product.pattern.group),
    }


def _texts_of_pattern(pattern: NMPattern) -> dict[str, str]:
    """Return the parts of the scripts that depend on the pattern: dimensions of slots and pairs, if there are
    any, their variables, and the row of B of an element."""
    has_slots, has_pairs = pattern.slots > 1, pattern.unit_columns > 1
    s, p, vs, vp = (
        text if is_there else ""
        for is_there, text in zip(
            (has_slots, has_pairs) * 2, (", s", ", p", ", vs", ", vp"), strict=True
        )
    )
    units = f", {pattern.slots}" if has_slots else ""
    row_of_b = f"vq * {pattern.units} + T.int64(E[vi, vq{vs}])"
    row_of_y = f"{pattern.units} * q_3 + T.int64(M[i_3, q_3{s}]) % {pattern.units}"
    if has_pairs:
        row_of_b = f"({row_of_b}) * {pattern.unit_columns} + vp"
        row_of_y = f"({row_of_y}) * {pattern.unit_columns} + p"
    return {
        "group": str(pattern.group),
        "units": str(pattern.units),
        "unit_shape": units,
        "stored_shape": units + (f", {pattern.unit_columns}" if has_pairs else ""),
        "first_unit": 'T.cast(s, "uint8")' if has_slots else "T.uint8(0)",
        "kinds": "SR" + "R" * (has_slots + has_pairs) + "S",
        "row_of_b": row_of_b,
        "row_of_y": row_of_y,
        "s": s,
        "p": p,
        "vs": vs,
        "vp": vp,
    }


def _facts(product: ProductIntrinsic) -> str:
    """Return the facts besides that of indices: their order, and the values of narrow integers."""
    lines = ["T.assume(sorted_segments(E, unique=True))"] if product.pattern.slots > 1 else []
    limits = operand_dtype_named(product.operands).limits
    if limits is not None:
        least, most = limits
        lines += [f"T.assume(in_range({name}, {least}, {most + 1}))" for name in "AB"]
    return "".join(f"    {line}\n" for line in lines)


def _factor(element: str, product: ProductIntrinsic) -> str:
    is_narrowed = product.operands in _NARROWED
    return factor_text(element, product.stored_dtype if is_narrowed else product.operands)


def _read_factor(element: str, product: ProductIntrinsic) -> str:
    """Return the script of a factor, with the bits that an instruction reads."""
    return _factor(_NARROWED.get(product.operands, "{}").format(element), product)
