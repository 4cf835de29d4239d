"""Tensors in CSF that are read and updated at coordinates of other axes, at every stage and natively, against
dense arrays."""

from __future__ import annotations

import numpy as np
import pytest
from script_runs import assert_everywhere, assert_refused

from gossamer_ir.script import parse_module

SIZE = 4
LEVELS = (3, 4, 5, 6)


def program(levels, stmt):
    """A program over a tensor `B` of so many compressed levels."""
    names = "JKLMNO"[:levels]
    params = ", ".join(f"p{name}: T.handle, c{name}: T.handle, n{name}: T.int64" for name in names)
    axes = "\n".join(
        f"    {name} = T.sp.compressed_varied({parent}, (n, n{name}), (p{name}, c{name}))"
        for parent, name in zip("R" + names, names, strict=False)
    )
    return parse_module(f"""
@T.prim_func
def program(b: T.handle, y: T.handle, x: T.handle, {params}, n: T.int64) -> None:
    T.func_attr({{"sparse_tir_level": 2}})
    R = T.sp.dense_fixed(1)
{axes}
    D = T.sp.dense_fixed(n)
    E = T.sp.dense_fixed(n)
    B = T.sp.match_buffer(b, (R, {", ".join(names)}), "float32", default=0.5)
    X = T.sp.match_buffer(x, (D,), "int32")
    Y = T.sp.match_buffer(y, (D, E), "float32")
    with T.sp.iteration([D, E], "SS", "look") as [i, j]:
        {stmt}
""")


def tensor(levels):
    """A dense array, where its elements are, and the arrays of its CSF."""
    rng = np.random.default_rng(levels)
    mask = rng.random((SIZE,) * levels) < 0.1
    mask[(np.arange(0, SIZE, 2),) * levels] = True
    dense = np.where(mask, rng.integers(1, 9, mask.shape), 0.5)
    arrays, fibers = {"b": dense[mask].astype("float32")}, [()]
    for depth, name in enumerate("JKLMNO"[:levels], 1):
        held = sorted({tuple(point[:depth]) for point in np.argwhere(mask).tolist()})
        lengths = [sum(element[:-1] == fiber for element in held) for fiber in fibers]
        arrays[f"p{name}"] = np.cumsum([0, *lengths]).astype("int32")
        arrays[f"c{name}"] = np.array([element[-1] for element in held], "int32")
        arrays[f"n{name}"] = len(held)
        fibers = held
    return dense, arrays


def arguments_of(arrays, x):
    y = np.zeros((SIZE, SIZE), "float32")
    return arrays | {"x": np.array(x, "int32"), "y": y, "n": SIZE}


def at(dense, *coordinates):
    """The element of a dense array; the default where there is none."""
    return dense[coordinates] if all(0 <= each < SIZE for each in coordinates) else 0.5


READS = {
    "coordinates": ("j", lambda x, i, j: j),
    "coordinates that are loaded": ("X[i]", lambda x, i, j: x[i]),
    "coordinates that are computed": ("X[j] + i - 1", lambda x, i, j: x[j] + i - 1),
}


@pytest.mark.parametrize(("index", "coordinate"), READS.values(), ids=READS)
@pytest.mark.parametrize("levels", LEVELS)
def test_reads(levels, index, coordinate):
    dense, arrays = tensor(levels)
    x = [2, 0, -1, SIZE]
    module = program(
        levels,
        f"Y[i, j] = B[0, {', '.join([index] * (levels - 1))}, i] + B[0, {', '.join(['i'] * levels)}]",
    )
    expected = np.array(
        [
            [at(dense, *[coordinate(x, i, j)] * (levels - 1), i) for j in range(SIZE)]
            for i in range(SIZE)
        ]
    ) + np.array([[at(dense, *[i] * levels)] for i in range(SIZE)])
    assert_everywhere(module, arguments_of(arrays, x), y=expected)


@pytest.mark.parametrize("levels", LEVELS)
def test_reads_at_what_was_looked_up(levels):
    dense, arrays = tensor(levels)
    inner = f"T.int64(B[0, {', '.join(['j'] * levels)}])"
    module = program(levels, f"Y[i, j] = B[0, {', '.join([inner] * (levels - 1))}, i]")
    expected = np.array(
        [
            [at(dense, *[int(at(dense, *[j] * levels))] * (levels - 1), i) for j in range(SIZE)]
            for i in range(SIZE)
        ]
    )
    assert_everywhere(module, arguments_of(arrays, [0] * SIZE), y=expected)


@pytest.mark.parametrize("levels", LEVELS)
def test_a_lookup_in_a_branch_is_made_only_there(levels):
    dense, arrays = tensor(levels)
    x = [SIZE + 9, 2, 0, 2]
    read = f"B[0, {', '.join(['X[X[i]]'] * levels)}]"
    expected = np.array(
        [[1.0] * SIZE] + [[at(dense, *[x[x[i]]] * levels)] * SIZE for i in (1, 3, 3)]
    )
    expected[2] = 1.0
    guarded = f"Y[i, j] = T.if_then_else(X[i] > 0 and X[i] < n, {read}, 1.0)"
    assert_everywhere(program(levels, guarded), arguments_of(arrays, x), y=expected)
    assert_refused(program(levels, f"Y[i, j] = {read}"), arguments_of(arrays, x), match="X")


@pytest.mark.parametrize("levels", LEVELS)
def test_a_store_to_an_absent_element_stops(levels):
    dense, arrays = tensor(levels)
    index = ", ".join(["X[i]"] * levels)
    module = program(levels, f"B[0, {index}] = B[0, {index}] + 1.0")
    stored = arrays["b"].copy()
    mask = dense != 0.5
    numbers = np.cumsum(mask).reshape(mask.shape) - 1
    stored[numbers[(2,) * levels]] += SIZE * SIZE
    assert_everywhere(module, arguments_of(arrays, [2] * SIZE), b=stored.astype(np.float64))
    assert_refused(module, arguments_of(arrays, [2, 2, SIZE, 2]), match="B")
