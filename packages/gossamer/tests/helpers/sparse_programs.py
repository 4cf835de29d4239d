"""Scripts of programs over many formats, with input data and oracles in float64 by NumPy.

Values are small integers, so that every order of a sum gives the same result. Elements that no program may
access are NaN.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from gossamer_support.arrays import Array


class Matrix(NamedTuple):
    """A CSR matrix as plain arrays."""

    name: str
    shape: tuple[int, int]
    indptr: Array
    indices: Array
    data: Array

    @property
    def lengths(self) -> Array:
        return np.diff(self.indptr)

    @property
    def rows(self) -> Array:
        return np.repeat(np.arange(self.shape[0]), self.lengths)


class Call(NamedTuple):
    """Arguments by name, the name of the result, and its expected value."""

    arguments: dict[str, Any]
    result: Array
    expected: Array


class Program(NamedTuple):
    """A script, and a function that makes its arguments for a matrix and a number of features."""

    script: str
    call: Callable[[Matrix, int], Call]


# --- matrices


def matrices(dtype: str, index: str) -> Iterator[Matrix]:
    """Matrices, among them extreme cases."""
    for name, (columns, rows) in _ROWS.items():
        indices = np.array([column for row in rows for column in row], index)
        indptr = np.cumsum([0, *map(len, rows)]).astype(index)
        data = (np.arange(len(indices)) * 5 % 7 - 3).astype(dtype)
        yield Matrix(name, (len(rows), columns), indptr, indices, data)


_ROWS: dict[str, tuple[int, list[Any]]] = {
    "0 rows": (5, []),
    "0 columns": (0, [[]] * 5),
    "0 nonzeros": (6, [[]] * 4),
    "1 element": (1, [[0]]),
    "empty rows at both ends": (7, [[], [], range(7), [1, 5], [6], [], []]),
    "unsorted": (4, [[3, 0], [], [2, 1, 3]]),
    "duplicates": (4, [[1, 1, 1], [0, 3, 0], [2]]),
    "1 dense row": (101, [[]] * 20 + [range(101)] + [[4]] * 12),
    "1 dense column": (33, [[20]] * 40),
    "row lengths 0 to 40": (40, [range(length) for length in range(41)]),
    "rows of 16 and 17": (19, [range(16 + row % 2) for row in range(35)]),
    "many rows": (23, [range(row * 7 % 11) for row in range(3000)]),
}
SMALL = tuple(_ROWS)[:7]
"""The matrices that are small enough for the interpreter."""


def values(shape: tuple[int, ...], dtype: Any) -> Array:
    """Small integers."""
    return (np.arange(int(np.prod(shape))) * 3 % 13 - 6).reshape(shape).astype(dtype)


def _sums(matrix: Matrix, terms: Array) -> Array:
    """The sum of the terms of each row."""
    result = np.zeros((matrix.shape[0], *terms.shape[1:]))
    np.add.at(result, matrix.rows, terms)
    return result


def _product(matrix: Matrix, dense: Array) -> Array:
    scale = matrix.data.astype(np.float64).reshape(-1, *[1] * (dense.ndim - 1))
    return _sums(matrix, scale * dense.astype(np.float64)[matrix.indices])


def _csr(matrix: Matrix) -> dict[str, Any]:
    m, n = matrix.shape
    return {
        "indptr": matrix.indptr, "indices": matrix.indices, "a": matrix.data,
        "m": m, "n": n, "nnz": len(matrix.indices),
    }  # fmt: skip


def _garbage(shape: tuple[int, ...], matrix: Matrix) -> Array:
    return np.full(shape, np.nan, matrix.data.dtype)


# --- scripts


def _script(handles: str, sizes: str, body: str) -> str:
    params = [f"{name}: T.handle" for name in handles.split()]
    params += [f"{name}: T.int64" for name in sizes.split()]
    head = f"@T.prim_func\ndef main({', '.join(params)}) -> None:\n"
    return f'{head}    T.func_attr({{"sparse_tir_level": 2, "tir.noalias": True}})\n{body}'


_CSR = """
    I = T.sp.dense_fixed(m)
    J = T.sp.compressed_varied(I, (n, nnz), (indptr, indices), sorted=False, unique=False)
"""
_ELL = """
    I = T.sp.dense_fixed(m)
    J = T.sp.compressed_fixed(I, (n, width), indices, sorted=False, unique=False)
"""
_STORED_ROWS = """
    O = T.sp.dense_fixed(1)
    I = T.sp.compressed_varied(O, (m, stored), (indptr_i, indices_i))
    M = T.sp.dense_fixed(m)
"""
_DCSR = (
    _STORED_ROWS
    + """
    J = T.sp.compressed_varied(I, (n, nnz), (indptr_j, indices_j), sorted=False, unique=False)
"""
)
_BUCKET = (
    _STORED_ROWS
    + """
    J = T.sp.compressed_fixed(I, (n, width), indices, sorted=False, unique=False)
"""
)
_RAGGED = """
    I = T.sp.dense_fixed(m)
    J = T.sp.dense_varied(I, (longest, nnz), indptr)
"""
_TIMES_DENSE = """
    N = T.sp.dense_fixed(n)
    K = T.sp.dense_fixed(feat)
    A = T.sp.match_buffer(a, ({STORED}I, J), "float32")
    B = T.sp.match_buffer(b, (N, K), "float32")
    C = T.sp.match_buffer(c, ({ROWS}, K), "float32")
    with T.sp.iteration([{STORED}I, J, K], "{KINDS}SRS", "product") as [{OVER}i, j, k]:
        with T.init():
            C[i, k] = 0.0
        C[i, k] = C[i, k] + A[{OVER}i, j] * B[j, k]
"""
_TIMES_VECTOR = """
    N = T.sp.dense_fixed(n)
    A = T.sp.match_buffer(a, ({STORED}I, J), "float32")
    B = T.sp.match_buffer(b, (N,), "float32")
    C = T.sp.match_buffer(c, ({ROWS},), "float32")
    with T.sp.iteration([{STORED}I, J], "{KINDS}SR", "product") as [{OVER}i, j]:
        with T.init():
            C[i] = 0.0
        C[i] = C[i] + A[{OVER}i, j] * B[j]
"""
_REDUCE = """
    A = T.sp.match_buffer(a, (I, J), "float32")
    C = T.sp.match_buffer(c, (I,), "float32")
    with T.sp.iteration([I, J], "SR", "reduced") as [i, j]:
        with T.init():
            C[i] = START
        C[i] = TERM
"""
_REDUCE_FEATURES = """
    K = T.sp.dense_fixed(feat)
    A = T.sp.match_buffer(a, (I, J, K), "float32")
    C = T.sp.match_buffer(c, (I, K), "float32")
    with T.sp.iteration([I, J, K], "SRS", "reduced") as [i, j, k]:
        with T.init():
            C[i, k] = START
        C[i, k] = TERM
"""


def _over_dense_rows(body: str) -> str:
    return body.format(STORED="", ROWS="I", KINDS="", OVER="")


def _over_stored_rows(body: str) -> str:
    return body.format(STORED="O, ", ROWS="M", KINDS="S", OVER="o, ")


# --- calls


def _dense_operand(matrix: Matrix, features: int | None) -> Array:
    trailing = () if features is None else (features,)
    return values((matrix.shape[1], *trailing), matrix.data.dtype)


def _times_csr(matrix: Matrix, features: int | None) -> Call:
    b = _dense_operand(matrix, features)
    c = _garbage((matrix.shape[0], *b.shape[1:]), matrix)
    arguments = {**_csr(matrix), "b": b, "c": c, "feat": features}
    return Call(arguments, c, _product(matrix, b))


def slots(matrix: Matrix, rows: Array, width: int) -> tuple[Array, Array]:
    """Coordinates and values of some rows in `width` slots each; unused ones hold NaN."""
    shape = (len(rows), width)
    indices = np.full(shape, matrix.shape[1], matrix.indices.dtype)
    data = np.full(shape, np.nan, matrix.data.dtype)
    for number, row in enumerate(rows):
        first, last = matrix.indptr[row], matrix.indptr[row + 1]
        indices[number, : last - first] = matrix.indices[first:last]
        data[number, : last - first] = matrix.data[first:last]
    return indices, data


def _times_ell(matrix: Matrix, features: int | None) -> Call:
    call = _times_csr(matrix, features)
    width = int(matrix.lengths.max(initial=0)) + 1
    indices, a = slots(matrix, np.arange(matrix.shape[0]), width)
    return call._replace(arguments={**call.arguments, "indices": indices, "a": a, "width": width})


def _stored_rows(matrix: Matrix) -> dict[str, Any]:
    """All rows that are not empty, and some empty ones."""
    kept = np.flatnonzero((matrix.lengths > 0) | (np.arange(matrix.shape[0]) % 3 == 1))
    dtype = matrix.indices.dtype
    bounds = np.array([0, len(kept)], dtype)
    return {"indptr_i": bounds, "indices_i": kept.astype(dtype), "stored": len(kept)}


def _only_stored(call: Call, rows: Array) -> Array:
    """The expected result; rows that are not stored keep the passed values."""
    expected = call.result.astype(np.float64)
    expected[rows] = call.expected[rows]
    return expected


def _times_dcsr(matrix: Matrix, features: int | None) -> Call:
    call, stored = _times_csr(matrix, features), _stored_rows(matrix)
    lengths = matrix.lengths[stored["indices_i"]]
    indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(matrix.indptr.dtype)
    arrays = {"indptr_j": indptr, "indices_j": matrix.indices}
    call.result[:] = -77
    expected = _only_stored(call, stored["indices_i"])
    return Call({**call.arguments, **stored, **arrays}, call.result, expected)


def _times_bucket(matrix: Matrix, features: int | None) -> Call:
    call, stored = _times_csr(matrix, features), _stored_rows(matrix)
    width = int(matrix.lengths.max(initial=0)) + 2
    indices, a = slots(matrix, stored["indices_i"], width)
    arrays = {"indices": indices, "a": a, "width": width}
    call.result[:] = -77
    expected = _only_stored(call, stored["indices_i"])
    return Call({**call.arguments, **stored, **arrays}, call.result, expected)


_REDUCERS = {
    "sum": ("0.0", "{C} + {A}", np.add, 0.0),
    "max": ('T.float32("-inf")', "T.max({C}, {A})", np.maximum, -np.inf),
    "min": ('T.float32("inf")', "T.min({A}, {C})", np.minimum, np.inf),
}


def _reducing(axes: str, body: str, reducer_name: str) -> str:
    start, term, _, _ = _REDUCERS[reducer_name]
    features = ", k" if "K = " in body else ""
    text = term.format(C=f"C[i{features}]", A=f"A[i, j{features}]")
    return axes + body.replace("START", start).replace("TERM", text)


def _reduced(reducer_name: str) -> Callable[[Matrix, int | None], Call]:
    _, _, ufunc, start = _REDUCERS[reducer_name]

    def call(matrix: Matrix, features: int | None) -> Call:
        a = matrix.data
        if features is not None:
            a = values((len(matrix.indices), features), matrix.data.dtype)
        c = _garbage((matrix.shape[0], *a.shape[1:]), matrix)
        expected = np.full(c.shape, start)
        ufunc.at(expected, matrix.rows, a.astype(np.float64))
        longest = int(matrix.lengths.max(initial=0))
        sizes = {"longest": longest, "feat": features}
        return Call({**_csr(matrix), "a": a, "c": c, **sizes}, c, expected)

    return call


def _reduced_ell(matrix: Matrix, _features: int | None) -> Call:
    call, slotted = _reduced("max")(matrix, None), _times_ell(matrix, None)
    names = ("indices", "a", "width")
    return call._replace(
        arguments={**call.arguments, **{name: slotted.arguments[name] for name in names}}
    )


def _vectors(call: Callable[[Matrix, int | None], Call]) -> Callable[[Matrix, int], Call]:
    return lambda matrix, _features: call(matrix, None)


def _segments(reducer_name: str) -> Program:
    script = _reducing(_RAGGED, _REDUCE, reducer_name)
    return Program(_script("a c indptr", "m longest nnz", script), _vectors(_reduced(reducer_name)))


def _segments_of_features(reducer_name: str) -> Program:
    script = _reducing(_RAGGED, _REDUCE_FEATURES, reducer_name)
    return Program(_script("a c indptr", "m longest nnz feat", script), _reduced(reducer_name))


def _rows(reducer_name: str) -> Program:
    script = _reducing(_CSR, _REDUCE, reducer_name)
    return Program(
        _script("a c indptr indices", "m n nnz", script), _vectors(_reduced(reducer_name))
    )


_STORED = "a b c indptr_i indices_i"

TIMES_DENSE = {
    "csr times dense": Program(
        _script("a b c indptr indices", "m n nnz feat", _CSR + _over_dense_rows(_TIMES_DENSE)),
        _times_csr,
    ),
    "ell times dense": Program(
        _script("a b c indices", "m n width feat", _ELL + _over_dense_rows(_TIMES_DENSE)),
        _times_ell,
    ),
    "dcsr times dense": Program(
        _script(
            f"{_STORED} indptr_j indices_j",
            "m n stored nnz feat",
            _DCSR + _over_stored_rows(_TIMES_DENSE),
        ),
        _times_dcsr,
    ),
    "bucket of rows times dense": Program(
        _script(
            f"{_STORED} indices",
            "m n stored width feat",
            _BUCKET + _over_stored_rows(_TIMES_DENSE),
        ),
        _times_bucket,
    ),
    "segment sums of features": _segments_of_features("sum"),
    "segment maxima of features": _segments_of_features("max"),
}
"""The programs with a feature axis."""

TIMES_VECTOR = {
    "csr times vector": Program(
        _script("a b c indptr indices", "m n nnz", _CSR + _over_dense_rows(_TIMES_VECTOR)),
        _vectors(_times_csr),
    ),
    "ell times vector": Program(
        _script("a b c indices", "m n width", _ELL + _over_dense_rows(_TIMES_VECTOR)),
        _vectors(_times_ell),
    ),
    "dcsr times vector": Program(
        _script(
            f"{_STORED} indptr_j indices_j",
            "m n stored nnz",
            _DCSR + _over_stored_rows(_TIMES_VECTOR),
        ),
        _vectors(_times_dcsr),
    ),
    "segment sums": _segments("sum"),
    "segment maxima": _segments("max"),
    "segment minima": _segments("min"),
    "ell row maxima": Program(
        _script("a c indices", "m n width", _reducing(_ELL, _REDUCE, "max")),
        _vectors(_reduced_ell),
    ),
    "row sums": _rows("sum"),
    "row maxima": _rows("max"),
}
"""The programs with one number per row."""

_BY_COORDINATES = """
    M = T.sp.dense_fixed(m)
    N = T.sp.dense_fixed(n)
    R = T.sp.match_buffer(r, (M,), "float32")
    X = T.sp.match_buffer(x, (N,), "float32")
"""
_ELEMENTS = """
    A = T.sp.match_buffer(a, (I, J), "float32")
    C = T.sp.match_buffer(c, (I, J), "float32")
    with T.sp.iteration([I, J], "SS", "elements") as [i, j]:
        C[i, j] = VALUE
"""


def _elements(
    axes: str, value: str, expected: Callable[..., Array], *, sizes: str = "m n nnz"
) -> Program:
    """A value for each element, computed from its value and the values of its row and column."""

    def call(matrix: Matrix, _features: int) -> Call:
        r, x = (values((size,), matrix.data.dtype) for size in matrix.shape)
        stored, by_row, by_column = matrix.data, r[matrix.rows], x[matrix.indices]
        made = expected(*(terms.astype(np.float64) for terms in (stored, by_row, by_column)))
        c = _garbage(matrix.data.shape, matrix)
        arguments = {**_csr(matrix), "r": r, "x": x, "c": c, "longest": matrix.shape[1]}
        return _in_slots(matrix, arguments, made) if axes == _ELL else Call(arguments, c, made)

    handles = f"a c r x {'' if axes == _ELL else 'indptr'} {'' if axes == _RAGGED else 'indices'}"
    body = axes + _BY_COORDINATES + _ELEMENTS.replace("VALUE", value)
    return Program(_script(handles, sizes, body), call)


def _in_slots(matrix: Matrix, arguments: dict[str, Any], made: Array) -> Call:
    """Elements of ELL; unused slots keep the passed values."""
    slotted = _times_ell(matrix, None).arguments
    c = np.full_like(slotted["a"], -77)
    used = slotted["indices"] != matrix.shape[1]
    expected = c.astype(np.float64)
    expected[used] = made
    names = ("indices", "a", "width")
    return Call({**arguments, **{name: slotted[name] for name in names}, "c": c}, c, expected)


ELEMENTS = {
    "elements scaled": _elements(_CSR, "T.max(A[i, j], 0.0) * 2.0", lambda a, r, x: a.clip(0) * 2),
    "elements by column": _elements(_CSR, "A[i, j] * X[j]", lambda a, r, x: a * x),
    "elements by row": _elements(_CSR, "A[i, j] * R[i]", lambda a, r, x: a * r),
    "elements by both": _elements(_CSR, "A[i, j] - R[i] * X[j]", lambda a, r, x: a - r * x),
    "ragged elements scaled": _elements(
        _RAGGED, "A[i, j] - 1.0", lambda a, r, x: a - 1, sizes="m n longest nnz"
    ),
    "ragged elements by row": _elements(
        _RAGGED, "A[i, j] + R[i]", lambda a, r, x: a + r, sizes="m n longest nnz"
    ),
    "ell elements by column": _elements(
        _ELL, "A[i, j] * X[j]", lambda a, r, x: a * x, sizes="m n width"
    ),
}
"""The programs with one number per stored element."""

PROGRAMS = TIMES_DENSE | TIMES_VECTOR | ELEMENTS
