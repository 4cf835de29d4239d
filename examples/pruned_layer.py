"""The feed-forward block of a pruned transformer: W2 relu(W1 X + b1) + b2 for columns X of tokens.

Weights with unstructured zeros are in SR-BCRS, and weights of which whole blocks were pruned in BSR (Ye and
others, ASPLOS 2023, section 4.3.2). Bias and activation are added to a tile of results while it is in
registers. A linear layer is the same program with the lower bound minus infinity.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from scipy import sparse

import gossamer as gs
from examples.bound_kernel import bound_kernel
from examples.datasets import pruned_weights
from examples.example import Call, Example, random_array
from examples.spmm import BLOCK, GROUP, LANES, ROWS, STRIP, TILE, padded_rows
from examples.torch_baseline import torch_call
from gossamer_formats import SparseTensor
from gossamer_schedule import ScheduleBuilder
from gossamer_support.arrays import Array

TOKENS = 128

SR_BCRS = """
@T.prim_func
def layer_in_sr_bcrs(
    data: T.handle, indptr: T.handle, indices: T.handle, x: T.handle, bias: T.handle, y: T.handle,
    m: T.int64, n: T.int64, longest: T.int64, groups: T.int64, strip: T.int64, width: T.int64,
    tokens: T.int64, least: T.float32,
) -> None:
    T.func_attr({"sparse_tir_level": 2})
    IO = T.sp.dense_fixed((m + strip - 1) // strip)
    JO = T.sp.dense_varied(IO, (longest, groups), indptr, "int32")
    II = T.sp.dense_fixed(strip)
    JI = T.sp.compressed_fixed(JO, (n, width), indices, "int32")
    J_detach = T.sp.dense_fixed(n)
    F = T.sp.dense_fixed(tokens)
    W = T.sp.match_buffer(data, (IO, JO, II, JI), "float32")
    X = T.sp.match_buffer(x, (J_detach, F), "float32")
    BIAS = T.sp.match_buffer(bias, (IO, II), "float32")
    Y = T.sp.match_buffer(y, (IO, II, F), "float32")
    WX = T.sp.alloc_buffer((IO, II, F), "float32")
    with T.sp.iteration([IO, JO, II, JI, F], "SRSRS", "product") as [io, jo, ii, ji, f]:
        with T.init():
            WX[io, ii, f] = 0.0
        WX[io, ii, f] = WX[io, ii, f] + W[io, jo, ii, ji] * X[ji, f]
    with T.sp.iteration([IO, II, F], "SSS", "activate") as [io, ii, f]:
        Y[io, ii, f] = T.max(WX[io, ii, f] + BIAS[io, ii], least)
"""

BSR = """
@T.prim_func
def layer_in_bsr(
    data: T.handle, indptr: T.handle, indices: T.handle, x: T.handle, bias: T.handle, y: T.handle,
    m: T.int64, n: T.int64, blocks: T.int64, block_rows: T.int64, block_columns: T.int64,
    tokens: T.int64, least: T.float32,
) -> None:
    T.func_attr({"sparse_tir_level": 2})
    IO = T.sp.dense_fixed((m + block_rows - 1) // block_rows)
    JO = T.sp.compressed_varied(
        IO, ((n + block_columns - 1) // block_columns, blocks), (indptr, indices), "int32"
    )
    II = T.sp.dense_fixed(block_rows)
    JI = T.sp.dense_fixed(block_columns)
    J_detach = T.sp.dense_fixed((n + block_columns - 1) // block_columns)
    F = T.sp.dense_fixed(tokens)
    W = T.sp.match_buffer(data, (IO, JO, II, JI), "float32")
    X = T.sp.match_buffer(x, (J_detach, JI, F), "float32")
    BIAS = T.sp.match_buffer(bias, (IO, II), "float32")
    Y = T.sp.match_buffer(y, (IO, II, F), "float32")
    WX = T.sp.alloc_buffer((IO, II, F), "float32")
    with T.sp.iteration([IO, JO, II, JI, F], "SRSRS", "product") as [io, jo, ii, ji, f]:
        with T.init():
            WX[io, ii, f] = 0.0
        WX[io, ii, f] = WX[io, ii, f] + W[io, jo, ii, ji] * X[jo, ji, f]
    with T.sp.iteration([IO, II, F], "SSS", "activate") as [io, ii, f]:
        Y[io, ii, f] = T.max(WX[io, ii, f] + BIAS[io, ii], least)
"""


class Layer(NamedTuple):
    """Weights (outputs by inputs) and biases of a layer."""

    weights: sparse.csr_matrix
    bias: Array


class FeedForward(NamedTuple):
    """Two layers, and their input (inputs by tokens)."""

    first: Layer
    second: Layer
    x: Array


def schedule(script: str, sizes: Mapping[str, int]) -> ScheduleBuilder:
    """Return the schedule of both programs: a tile of the result is computed and activated in registers."""
    sch = gs.schedule(script, specialize=sizes).lower().lower()
    io, inner, token = sch.get_loops("activate")
    panel, row = sch.split(inner, factors=(None, ROWS)).names
    tile, vector, lane = sch.split(token, factors=(None, TILE, LANES)).names
    sch.reorder(tile, panel, row, vector, lane)
    sch.set_scope("WX_data", scope="local")
    sch.compute_at("product", loop=panel)
    position, row_of, column, token_of = sch.get_loops("product")[-4:]
    vector_of, lane_of = sch.split(token_of, factors=(TILE, LANES)).names
    sch.reorder(position, column, row_of, vector_of, lane_of)
    init, *_ = sch.decompose_reduction("product", loop=position).names
    for block in (init, "product", "activate"):
        row, vector, lane = sch.get_loops(block)[-3:]
        sch.unroll(row).unroll(vector).vectorize(lane)
    return sch.parallel(io, weight=f"T.int64(JO_indptr[{io}]) + {io}")


Apply: TypeAlias = Callable[[Layer, Array, float, Array], Call]
"""Prepares a layer: the layer, its input, the lower bound of results, and the padded array of results."""


def layer_in_format(
    script: str,
    stored: SparseTensor,
    fixed: Mapping[str, int],
    *,
    bias: Array,
    x: Array,
    least: float,
    y: Array,
) -> Call:
    """Prepare a layer in a format; the call returns `y` (padded outputs by tokens)."""
    tokens = x.shape[1]
    sizes = {**fixed, "tokens": tokens}
    kernel = gs.compile(script, specialize=sizes, schedule=schedule(script, sizes))
    side = fixed.get("strip", BLOCK)
    if "block_columns" in fixed:
        x = x.reshape(-1, BLOCK, tokens)
    biases = padded_rows(bias, side).reshape(-1, side)
    result = y[: biases.size].reshape(*biases.shape, tokens)
    run = bound_kernel(kernel, stored, sizes, x=x, bias=biases, y=result, least=np.float32(least))

    def call() -> Array:
        run()
        return y

    return call


def sr_bcrs_layer(layer: Layer, x: Array, least: float, y: Array) -> Call:
    """Prepare a layer in SR-BCRS."""
    stored = gs.from_scipy(layer.weights).asformat("sr_bcrs", strip=STRIP, width=GROUP)
    fixed = {"strip": STRIP, "width": GROUP}
    x = x[: layer.weights.shape[1]]
    return layer_in_format(SR_BCRS, stored, fixed, bias=layer.bias, x=x, least=least, y=y)


def bsr_layer(layer: Layer, x: Array, least: float, y: Array) -> Call:
    """Prepare a layer in BSR."""
    stored = gs.from_scipy(layer.weights).asformat("bsr", block_rows=BLOCK, block_columns=BLOCK)
    fixed = {"block_rows": BLOCK, "block_columns": BLOCK}
    return layer_in_format(BSR, stored, fixed, bias=layer.bias, x=x, least=least, y=y)


def two_layers(apply: Apply, inputs: FeedForward) -> Call:
    """Prepare both layers. Arrays are padded to whole blocks, whose rows are zero."""
    tokens, outputs = inputs.x.shape[1], inputs.second.weights.shape[0]
    hidden, y = (
        np.zeros((-(-layer.weights.shape[0] // BLOCK) * BLOCK, tokens), np.float32)
        for layer in (inputs.first, inputs.second)
    )
    first = apply(inputs.first, padded_rows(inputs.x, BLOCK), 0.0, hidden)
    second = apply(inputs.second, hidden, -np.inf, y)

    def call() -> Array:
        first()
        return second()[:outputs]

    return call


def operators(inputs: FeedForward, *, in_parts: bool) -> Call:
    """Prepare the operator for CSR or hyb; bias and activation are added by NumPy."""
    first, second = (
        gs.decompose(layer.weights, "hyb") if in_parts else gs.from_scipy(layer.weights)
        for layer in (inputs.first, inputs.second)
    )
    biases = [layer.bias[:, None] for layer in (inputs.first, inputs.second)]

    def call() -> Array:
        hidden = gs.spmm(first, inputs.x)
        np.maximum(np.add(hidden, biases[0], out=hidden), 0, out=hidden)
        return gs.spmm(second, hidden) + biases[1]

    return call


# --- without gossamer


def scipy_csr(inputs: FeedForward) -> Call:
    """Return SciPy's products."""
    first, second = inputs.first, inputs.second

    def call() -> Array:
        hidden = np.maximum(first.weights @ inputs.x + first.bias[:, None], 0)
        return np.asarray(second.weights @ hidden + second.bias[:, None])

    return call


def numpy_dense(inputs: FeedForward) -> Call:
    """Return NumPy's products with dense weights."""
    first, second = inputs.first.weights.toarray(), inputs.second.weights.toarray()

    def call() -> Array:
        hidden = np.maximum(first @ inputs.x + inputs.first.bias[:, None], 0)
        return np.asarray(second @ hidden + inputs.second.bias[:, None])

    return call


@torch_call
def torch_dense(torch: Any, inputs: FeedForward) -> Callable[[], Any]:
    """Return PyTorch's linear layers with dense weights."""
    x = torch.from_numpy(np.ascontiguousarray(inputs.x.T))
    layers = [
        (torch.from_numpy(layer.weights.toarray()), torch.from_numpy(layer.bias))
        for layer in (inputs.first, inputs.second)
    ]
    linear = torch.nn.functional.linear

    def call() -> Any:
        return linear(torch.relu(linear(x, *layers[0])), *layers[1]).T

    return call


# --- inputs


def oracle(inputs: FeedForward) -> Array:
    """Return the result in float64."""
    first, second = inputs.first, inputs.second
    hidden = first.weights.astype(np.float64) @ inputs.x + first.bias[:, None]
    return np.asarray(
        second.weights.astype(np.float64) @ np.maximum(hidden, 0) + second.bias[:, None]
    )


def magnitude(inputs: FeedForward) -> Array:
    """Return the result for absolute values."""
    first, second = (Layer(abs(w), np.abs(b)) for w, b in (inputs.first, inputs.second))
    return oracle(FeedForward(first, second, np.abs(inputs.x)))


def terms(inputs: FeedForward) -> int:
    """Return the nonzeros of the longest rows of both layers."""
    longest = [int(np.diff(w.indptr).max(initial=0)) for w, _ in (inputs.first, inputs.second)]
    return sum(longest) + 2


def feed_forward(first: sparse.csr_matrix, second: sparse.csr_matrix, tokens: int) -> FeedForward:
    """Return two layers with random biases and input."""
    return FeedForward(
        Layer(first, random_array(first.shape[0], seed=1)),
        Layer(second, random_array(second.shape[0], seed=2)),
        random_array(first.shape[1], tokens, seed=3),
    )


def random_layers(inner: int, outer: int, tokens: int, density: float) -> FeedForward:
    """Return layers with random weights."""
    rng = np.random.default_rng(inner)
    first, second = (
        sparse.csr_matrix(sparse.random_array(shape, density=density, rng=rng, dtype=np.float32))
        for shape in ((inner, outer), (outer, inner))
    )
    return feed_forward(first, second, tokens)


def pruned_layers(method: str, sparsity: str) -> FeedForward:
    """Return the feed-forward block of a layer of a pruned transformer (DLMC)."""
    first, second = (
        pruned_weights(NAMES.format(method=method, sparsity=sparsity, number=number))
        for number in (1, 2)
    )
    return feed_forward(first, second, TOKENS)


NAMES = "transformer.{method}.{sparsity}.body_decoder_layer_3_ffn_conv{number}_fully_connected"


def block_pruned_layers(method: str, sparsity: str) -> FeedForward:
    """Return the same, pruned by blocks: as many weights, in the blocks that have the largest ones."""
    layers = pruned_layers(method, sparsity)
    first, second = (Layer(in_largest_blocks(w), b) for w, b in (layers.first, layers.second))
    return FeedForward(first, second, layers.x)


def in_largest_blocks(weights: sparse.csr_matrix) -> sparse.csr_matrix:
    """Return random weights in the blocks with the largest sums of magnitudes."""
    rows, columns = (size // BLOCK for size in weights.shape)
    sums = abs(weights).toarray().reshape(rows, BLOCK, columns, BLOCK).sum(axis=(1, 3))
    count = max(1, weights.nnz // BLOCK**2)
    kept = sums >= np.sort(sums, axis=None)[-count]
    dense = random_array(*weights.shape, seed=4)
    return sparse.csr_matrix(dense * kept.repeat(BLOCK, axis=0).repeat(BLOCK, axis=1))


PROGRAMS: Mapping[str, Callable[[FeedForward], Call]] = {
    "sr_bcrs": partial(two_layers, sr_bcrs_layer),
    "bsr": partial(two_layers, bsr_layer),
    "hyb": partial(operators, in_parts=True),
    "csr": partial(operators, in_parts=False),
}
EXAMPLE = Example(
    "pruned_layer",
    cases={
        "random": lambda: random_layers(64, 32, 32, 0.2),
        "odd sizes": lambda: random_layers(37, 21, 19, 0.3),
        "no weights": lambda: random_layers(9, 7, 8, 0.0),
    },
    datasets={
        "unstructured_80": lambda: pruned_layers("magnitude_pruning", "0.8"),
        "unstructured_95": lambda: pruned_layers("magnitude_pruning", "0.95"),
        "blocks_80": lambda: block_pruned_layers("magnitude_pruning", "0.8"),
        "blocks_95": lambda: block_pruned_layers("magnitude_pruning", "0.95"),
    },
    oracle=oracle,
    magnitude=magnitude,
    terms=terms,
    programs=PROGRAMS,
    baselines={
        "scipy_csr": scipy_csr, "numpy_dense": numpy_dense, "torch_dense": torch_dense,
    },
)  # fmt: skip
