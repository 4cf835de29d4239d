"""BSR times dense: the script with symbolic sizes at every stage and natively, against SciPy and NumPy in
float64.
"""

from __future__ import annotations

import re

import numpy as np
import pytest
from block_grids import GRIDS
from scipy import sparse

import gossamer as gs
from gossamer.compilation.pipeline import lower_by_stage, schedule_for_target, stage_texts
from gossamer_ir.errors import ArgumentError
from gossamer_ir.interchange.records import Target
from gossamer_ir.interpret import run
from gossamer_ir.script import parse_module
from gossamer_ir.transform.specialize import specialize
from gossamer_testkit import bsr_spmm

pytestmark = pytest.mark.unserialized

SCRIPT = """
@T.prim_func
def bsrmm(a: T.handle, b: T.handle, c: T.handle, indptr: T.handle, indices: T.handle,
          mb: T.int64, nb: T.int64, nnzb: T.int64, bh: T.int64, bw: T.int64, feat: T.int64) -> None:
    IO = T.sp.dense_fixed(mb)
    JO = T.sp.compressed_varied(IO, (nb, nnzb), (indptr, indices), sorted=False, unique=False)
    JO_detach = T.sp.dense_fixed(nb)
    II = T.sp.dense_fixed(bh)
    JI = T.sp.dense_fixed(bw)
    K = T.sp.dense_fixed(feat)
    A = T.sp.match_buffer(a, (IO, JO, II, JI), "float32")
    B = T.sp.match_buffer(b, (JO_detach, JI, K), "float32")
    C = T.sp.match_buffer(c, (IO, II, K), "float32")
    with T.sp.iteration([IO, JO, II, JI, K], "SRSRS", "bsrmm") as [io, jo, ii, ji, k]:
        with T.init():
            C[io, ii, k] = 0.0
        C[io, ii, k] = C[io, ii, k] + A[io, jo, ii, ji] * B[jo, ji, k]
"""
MODULE = parse_module(SCRIPT)
BLOCKS = [(1, 1), (2, 2), (3, 3), (4, 4), (8, 8), (16, 16), (5, 3), (3, 5), (29, 2), (67, 3)]
FEATURES = [1, 3, 16, 17, 63, 100]


def blocks(pattern, shape, *, dtype="float32", index="int32"):
    """The matrix with small integers in the blocks of a pattern."""
    rows, columns = pattern.nonzero()
    indptr = np.concatenate([[0], np.bincount(rows, minlength=len(pattern)).cumsum()])
    values = np.random.default_rng(len(rows)).integers(-3, 4, (len(rows), *shape))
    return Blocks(values.astype(dtype), indptr.astype(index), columns.astype(index), pattern.shape)


class Blocks:
    """The arrays of a matrix in blocks, and its product by SciPy."""

    def __init__(self, data, indptr, indices, grid):
        self.data, self.indptr, self.indices, self.grid = data, indptr, indices, grid

    @property
    def sizes(self):
        height, width = self.data.shape[1:]
        grid = {"mb": self.grid[0], "nb": self.grid[1], "nnzb": len(self.data)}
        return grid | {"bh": height, "bw": width}

    def dense(self, features):
        shape = (self.grid[1], self.data.shape[2], features)
        values = np.random.default_rng(features).integers(-3, 4, shape)
        return values.astype(self.data.dtype)

    def product(self, dense):
        """Computed by coordinates, so that neither order nor duplicates of blocks matter."""
        return bsr_spmm(self.indptr, self.indices, self.data, dense=dense)

    def arguments(self, dense):
        height = self.data.shape[1]
        result = np.full((self.grid[0], height, dense.shape[2]), np.nan, self.data.dtype)
        arrays = {"a": self.data, "b": dense, "c": result}
        return result, arrays | {"indptr": self.indptr, "indices": self.indices}


def retyped(matrix):
    index = str(matrix.indptr.dtype)
    values = dict.fromkeys("ABC", str(matrix.data.dtype))
    return {**values, "JO": index}


def known_sizes(matrix, features, names):
    sizes = {**matrix.sizes, "feat": features}
    return {name: sizes[name] for name in names}


def require_exact(matrix, features, *, specialized=("bh", "bw", "feat"), target="generic-cpu"):
    sizes = known_sizes(matrix, features, specialized)
    kernel = gs.compile(SCRIPT, specialize=sizes, dtypes=retyped(matrix), target=target)
    dense = matrix.dense(features)
    result, arrays = matrix.arguments(dense)
    kernel(**arrays)
    np.testing.assert_array_equal(result, matrix.product(dense))


EVERYWHERE = GRIDS["empty block rows at both ends"]


@pytest.mark.parametrize("features", FEATURES)
@pytest.mark.parametrize("shape", BLOCKS, ids=str)
def test_kernels_are_exact_for_every_block_size(shape, features):
    require_exact(blocks(EVERYWHERE, shape), features)


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("pattern", GRIDS.values(), ids=GRIDS)
def test_kernels_are_exact_on_every_pattern(pattern, threads):
    target = f"generic-cpu:threads={threads}"
    for shape in ((4, 4), (5, 3)):
        require_exact(blocks(pattern, shape), 33, target=target)


@pytest.mark.parametrize("index", ["int32", "int64"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("names", [("bh", "bw"), ("feat",), ()], ids=str)
def test_sizes_may_be_symbolic(names, dtype, index):
    matrix = blocks(EVERYWHERE, (5, 3), dtype=dtype, index=index)
    for features in (1, 40):
        require_exact(matrix, features, specialized=names)


@pytest.mark.parametrize("names", [("bh", "bw", "feat"), ("bh", "bw"), ()], ids=str)
@pytest.mark.parametrize(
    ("shape", "features", "dtype"),
    [
        ((2, 2), 5, "float64"),
        ((5, 3), 19, "float32"),
        ((5, 3), 11, "float64"),
        ((9, 1), 1, "float32"),
    ],
)
def test_every_stage_means_the_same(shape, features, names, dtype):
    """Three features are left beside a vector of 16 elements of float32, or of 8 of float64."""
    sizes = dict(zip(("bh", "bw", "feat"), (*shape, features), strict=True))
    constants = {name: sizes[name] for name in names}
    module = specialize(MODULE, constants, dtypes={**dict.fromkeys("ABC", dtype), "JO": "int32"})
    stages = tuple(lower_by_stage(module, schedule_for_target(module, Target("generic-cpu"), None)))
    for pattern in GRIDS.values():
        matrix = blocks(pattern, shape, dtype=dtype)
        dense = matrix.dense(features)
        left = {**matrix.sizes, "feat": features}
        for stage in stages:
            result, arrays = matrix.arguments(dense)
            run(stage, {**arrays, **{name: left[name] for name in left.keys() - set(names)}})
            np.testing.assert_array_equal(result, matrix.product(dense))


def in_order(axes, kinds):
    text = SCRIPT.replace('[IO, JO, II, JI, K], "SRSRS"', f'[{", ".join(axes)}], "{kinds}"')
    return text.replace("as [io, jo, ii, ji, k]", f"as [{', '.join(axes).lower()}]")


ORDERS = [
    (("IO", "II", "JO", "JI", "K"), "SSRRS"),
    (("K", "JI", "II", "IO", "JO"), "SRSSR"),
    (("IO", "K", "JO", "JI", "II"), "SSRRS"),
]


@pytest.mark.parametrize("features", [1, 20, None])
@pytest.mark.parametrize(("axes", "kinds"), ORDERS)
def test_the_axes_of_the_iteration_may_stand_in_any_order(axes, kinds, features):
    sizes = {"bh": 5, "bw": 3} | ({} if features is None else {"feat": features})
    script = in_order(axes, kinds)
    assert schedule_for_target(
        specialize(parse_module(script), sizes), Target("generic-cpu"), None
    ).loop
    matrix = blocks(EVERYWHERE, (5, 3))
    dense = matrix.dense(features or 21)
    result, arrays = matrix.arguments(dense)
    gs.compile(script, specialize=sizes)(**arrays)
    np.testing.assert_array_equal(result, matrix.product(dense))


def test_blocks_times_a_vector():
    script = SCRIPT.replace("JI, K)", "JI)").replace("II, K)", "II)").replace("ii, k]", "ii]")
    script = script.replace("ji, k]", "ji]").replace('JI, K], "SRSRS"', 'JI], "SRSR"')
    matrix = blocks(EVERYWHERE, (5, 3))
    dense = matrix.dense(1)
    result, arrays = matrix.arguments(dense)
    arrays |= {"b": dense[:, :, 0].copy(), "c": result[:, :, 0].copy()}
    gs.compile(script, specialize={"bh": 5, "bw": 3, "feat": 1})(**arrays)
    np.testing.assert_array_equal(arrays["c"], matrix.product(dense)[:, :, 0])


def test_a_maximum_over_blocks():
    script = SCRIPT.replace("= 0.0", '= T.float32("-inf")').replace("= C[io, ii, k] +", "= (C)")
    term = "A[io, jo, ii, ji] * B[jo, ji, k]"
    script = script.replace(f"(C) {term}", f"T.max(C[io, ii, k], {term})")
    matrix = blocks(EVERYWHERE, (4, 2))
    dense = matrix.dense(18)
    result, arrays = matrix.arguments(dense)
    gs.compile(script, specialize={"bh": 4, "bw": 2, "feat": 18})(**arrays)
    wanted = np.full(result.shape, -np.inf)
    rows = np.repeat(np.arange(len(wanted)), np.diff(matrix.indptr))
    for row, column, block in zip(rows, matrix.indices, matrix.data, strict=True):
        terms = (block[:, :, None] * dense[column]).max(axis=1)
        wanted[row] = np.maximum(wanted[row], terms)
    np.testing.assert_array_equal(result, wanted)


def test_scipy_agrees():
    """Real values of a matrix made by SciPy, within the rounding error of its sums."""
    random = np.random.default_rng(3)
    dense = random.standard_normal((60, 48), dtype=np.float32)
    mask = np.kron(random.random((10, 15)) < 0.4, np.ones((6, 4)))
    matrix = sparse.bsr_array(
        (random.standard_normal((60, 60)) * mask).astype(np.float32), blocksize=(6, 4)
    )
    blocks = Blocks(matrix.data, matrix.indptr, matrix.indices, (10, 15))
    kernel = gs.compile(SCRIPT, specialize={"bh": 6, "bw": 4, "feat": 48})
    result, arrays = blocks.arguments(dense.reshape(15, 4, 48))
    kernel(**arrays)
    magnitude = abs(matrix.astype(np.float64)) @ abs(dense.astype(np.float64))
    error = abs(result.reshape(60, 48) - matrix.astype(np.float64) @ dense.astype(np.float64))
    assert (error <= 60 * np.finfo(np.float32).eps * magnitude).all()


def test_blocks_may_be_unsorted_and_appear_twice():
    indptr, indices = np.array([0, 3, 5], np.int32), np.array([2, 0, 2, 1, 1], np.int32)
    data = np.arange(5 * 6, dtype=np.float32).reshape(5, 2, 3) - 11
    require_exact(Blocks(data, indptr, indices, (2, 3)), 21)


def test_nan_and_infinity_stay_in_their_rows():
    matrix = blocks(EVERYWHERE, (4, 4))
    matrix.data[0, 1, 2], matrix.data[-1, 3, 0] = np.nan, np.inf
    kernel = gs.compile(SCRIPT, specialize={"bh": 4, "bw": 4, "feat": 20})
    dense = np.abs(matrix.dense(20)) + 1
    result, arrays = matrix.arguments(dense)
    kernel(**arrays)
    with np.errstate(invalid="ignore"):
        expected = matrix.product(dense)
    np.testing.assert_array_equal(result, expected)
    assert np.isnan(result).any()
    assert np.isinf(result).any()


def test_operands_may_be_read_only_and_blocks_flat():
    matrix = blocks(EVERYWHERE, (2, 2))
    kernel = gs.compile(SCRIPT, specialize={"bh": 2, "bw": 2, "feat": 7})
    dense = matrix.dense(7)
    result, arrays = matrix.arguments(dense)
    for name in ("a", "b", "indptr", "indices"):
        arrays[name].flags.writeable = False
    kernel(**{**arrays, "a": matrix.data.reshape(-1)})
    np.testing.assert_array_equal(result, matrix.product(dense))


def test_a_block_column_out_of_range_is_refused():
    matrix = blocks(EVERYWHERE, (2, 2))
    matrix.indices[-1] = 5
    kernel = gs.compile(SCRIPT, specialize={"bh": 2, "bw": 2, "feat": 7})
    _, arrays = matrix.arguments(matrix.dense(7))
    with pytest.raises(ArgumentError, match="indices"):
        kernel(**arrays)


def assembly(features):
    module = specialize(MODULE, {"bh": 16, "bw": 16, "feat": features})
    return stage_texts(module, target="generic-cpu:cpu=skylake-avx512,vector_bits=512")["asm"]


def innermost(text):
    """The innermost loops of the assembly, each as its lines: loops without a label or a jump inside."""
    pattern = r"^(\.L\w+):\n((?:(?!\.L\w+:).*\n)*?)\tj\w+\t\1$"
    return [match[2].splitlines() for match in re.finditer(pattern, text, re.MULTILINE)]


@pytest.mark.parametrize(("features", "tile"), [(32, (8, 2)), (128, (8, 2)), (512, (8, 3))])
def test_the_inner_loop_is_nothing_but_multiply_adds(features, tile):
    """One multiply-add per accumulator, one broadcast per row, one load per vector, and no stack access."""
    rows, vectors = tile
    loops = innermost(assembly(features))
    [lines] = [lines for lines in loops if any("vfmadd" in line for line in lines)]
    loop = [line for line in lines if not line.lstrip().startswith("#")]
    counts = {op: sum(op in line for line in loop) for op in ("vfmadd", "vbroadcastss", "rsp")}
    assert counts == {"vfmadd": rows * vectors, "vbroadcastss": rows, "rsp": 0}
    assert len(loop) <= rows * vectors + rows + vectors + 4


def padded(matrix):
    """The matrix with unused slots after the blocks of each row, filled with infinities."""
    counts = np.diff(matrix.indptr)
    spare = 1 + np.arange(len(counts)) % 3
    ends = np.cumsum(counts + spare)
    kept = np.arange(len(matrix.indices)) + np.repeat(np.cumsum(spare) - spare, counts)
    data = np.full((ends[-1], *matrix.data.shape[1:]), np.inf, matrix.data.dtype)
    indices = np.full(ends[-1], matrix.grid[1], matrix.indices.dtype)
    data[kept], indices[kept] = matrix.data, matrix.indices
    indptr = np.concatenate([[0], ends]).astype(matrix.indptr.dtype)
    return data, indptr, indices


@pytest.mark.parametrize("is_kept", [False, True], ids=["anew", "from what is there"])
@pytest.mark.parametrize("shape", [(4, 4), (3, 5), (16, 16)], ids=str)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_padding_and_outputs_that_are_gone_on_from_take_the_same_way(dtype, shape, is_kept):
    matrix = blocks(EVERYWHERE, shape, dtype=dtype)
    data, indptr, indices = padded(matrix)
    text = SCRIPT.replace("unique=False)", "unique=False, padded=True)")
    if is_kept:
        text = re.sub(r"        with T\.init\(\):\n.*\n", "", text)
    for features in (1, 16, 33):
        for names in ((), ("bh", "bw", "feat")):
            sizes = known_sizes(matrix, features, names)
            assert gs.explain(text, specialize=sizes).rule == "block_spmm"
            kernel = gs.compile(text, specialize=sizes, dtypes=retyped(matrix))
            dense = matrix.dense(features)
            result = np.full((matrix.grid[0], shape[0], features), 5, dtype)
            kernel(a=data, b=dense, c=result, indptr=indptr, indices=indices)
            np.testing.assert_array_equal(result, matrix.product(dense) + 5 * is_kept)
