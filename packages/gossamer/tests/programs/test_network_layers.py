"""Network layers (ragged attention, mixture of experts, 2:4 compression) at every stage and natively,
against NumPy in float64.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from masks import KINDS, PATTERNS, csr, data, nothing, offsets
from script_runs import assert_everywhere, call, guards, kernels, program, results

from gossamer_ir.errors import ArgumentError

pytestmark = pytest.mark.unserialized

# --- attention

LENGTHS = {
    "no sequences": [],
    "one": [(3, 4)],
    "of length 0": [(0, 0), (2, 0), (0, 3), (0, 0)],
    "mixed": [(0, 1), (2, 5), (1, 0), (7, 1), (3, 3), (0, 0)],
}
"""The numbers of queries and of keys of each sequence."""
ATTENTIONS = ("ragged_attention", "ragged_attention_causal")
"""The keys that a query attends to: all keys of the sequence, or (causal) those up to the query."""


def attention_case(lengths, heads, width, *, dtype, index):
    sizes = np.array(lengths, int).reshape(-1, 2)
    queries, keys = sizes.T
    seen = [min(at + 1, most) for count, most in sizes for at in range(count)]
    starts = {
        f"indptr_{name}": offsets(array, index)
        for name, array in (("q", queries), ("k", keys), ("qk", queries * keys), ("j", seen))
    }
    (nq, nk), inner = sizes.sum(axis=0).tolist(), (heads, width)
    return {
        "q": data((nq, *inner), dtype), "k": data((nk, *inner), dtype, 3),
        "v": data((nk, *inner), dtype, 4), "scale": np.full(1, 0.5, dtype),
        "out": nothing((nq, *inner), dtype), **starts, "batch": len(sizes),
        "most_q": int(queries.max(initial=0)), "most_k": int(keys.max(initial=0)),
        "nnz_q": nq, "nnz_k": nk, "nnz_j": int(sum(seen)), "heads": heads, "width": width,
    }  # fmt: skip


def attended(arguments, name):
    """The softmax of the scaled products over the visible keys of a query, times their values."""
    q, k, v = (arguments[name].astype(np.float64) for name in "qkv")
    parts = [np.zeros((0, *q.shape[1:]))]
    for mine, theirs in zip(
        pairwise(arguments["indptr_q"]), pairwise(arguments["indptr_k"]), strict=True
    ):
        rows, columns = slice(*mine), slice(*theirs)
        scores = np.einsum("ihf,jhf->hij", q[rows], k[columns]) * float(arguments["scale"][0])
        is_seen = np.ones(scores.shape[1:], bool)
        if name.endswith("causal"):
            is_seen = np.tri(*is_seen.shape, dtype=bool)
        powers = np.exp(scores - scores.max(axis=2, initial=-np.inf, keepdims=True)) * is_seen
        weights = powers / powers.sum(axis=2, keepdims=True)
        parts.append(np.einsum("hij,jhf->ihf", weights, v[columns]))
    return np.concatenate(parts)


@pytest.mark.parametrize("name", ATTENTIONS)
@pytest.mark.parametrize("lengths", LENGTHS)
@pytest.mark.parametrize(("heads", "width"), [(0, 2), (2, 0), (1, 1), (3, 5)])
@pytest.mark.parametrize(("dtype", "index"), KINDS)
def test_attention_over_ragged_sequences(name, lengths, heads, width, dtype, index):
    arguments = attention_case(LENGTHS[lengths], heads, width, dtype=dtype, index=index)
    arguments["q"][1:2] = np.nan
    expected = attended(arguments, name)
    module = program(name, dtype=dtype, index=index)
    bound = 100 * np.finfo(dtype).eps
    for way, (result,) in results(module, arguments, "out"):
        np.testing.assert_allclose(result, expected, rtol=bound, atol=6 * bound, err_msg=way)


@pytest.mark.parametrize(
    ("name", "lengths"),
    [
        ("ragged_attention", [(2, 4)]),
        ("ragged_attention", [(0, 1), (3, 2), (1, 0), (2, 8)]),
        ("ragged_attention_causal", [(0, 1), (2, 2), (1, 0), (2, 8), (1, 1)]),
    ],
)
def test_keys_that_score_the_same_share_evenly(name, lengths):
    arguments = attention_case(lengths, 2, 3, dtype="float32", index="int32")
    arguments["q"][:] = 0
    arguments["scale"][:] = 1
    assert_everywhere(program(name), arguments, out=attended(arguments, name))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ((0, 7, 8), r"Element 1 of 'indptr_qk' is 7; expected 0 \+ 2 \* 4"),
        ((0, 8, 8), r"Element 2 of 'indptr_qk' is 8; expected 8 \+ 1 \* 1"),
        ((0, 9, 10), r"Element 1 of 'indptr_qk' is 9; expected 0 \+ 2 \* 4"),
    ],
)
def test_offsets_that_are_no_sums_of_products_are_named(wrong, message):
    arguments = attention_case([(2, 4), (1, 1)], 1, 2, dtype="float32", index="int32")
    arguments["indptr_qk"][:] = wrong
    for kernel in kernels(program("ragged_attention")):
        with pytest.raises(ArgumentError, match=message):
            call(kernel, arguments)


# --- mixtures of experts


def routed(mask, features, outputs, *, dtype, index):
    """The tokens of each expert, and the output of each expert for all tokens."""
    indptr, indices = csr(mask, index)
    (experts, tokens), gates = mask.shape, data(mask.sum(), dtype)
    x, w = data((tokens, features), dtype, 3), data((experts, features, outputs), dtype, 4)
    made = np.einsum("tf,efo->eto", x.astype(np.float64), w.astype(np.float64))
    return made, {
        "x": x, "weights": w, "gates": gates, "y": np.full((tokens, outputs), 77, dtype),
        "indptr": indptr, "indices": indices, "experts": experts, "tokens": tokens,
        "routed": len(gates), "features": features, "outputs": outputs,
    }  # fmt: skip


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize(("features", "outputs"), [(0, 2), (2, 0), (3, 5)])
@pytest.mark.parametrize(("dtype", "index"), KINDS)
def test_a_mixture_of_experts(pattern, features, outputs, dtype, index):
    mask = PATTERNS[pattern]
    made, arguments = routed(mask, features, outputs, dtype=dtype, index=index)
    weights = np.zeros(mask.shape)
    weights[mask] = arguments["gates"]
    expected = np.einsum("et,eto->to", weights, made)
    module = program("mixture_of_experts", dtype=dtype, index=index)
    assert guards(module) == []
    assert_everywhere(module, arguments, y=expected)
    module = program("mixture_of_experts_fused", dtype=dtype, index=index)
    assert guards(module) == []
    kept = np.where(mask.any(axis=0)[:, None], expected, arguments["y"])
    assert_everywhere(module, arguments, y=kept)


@pytest.mark.parametrize("name", ["mixture_of_experts", "mixture_of_experts_fused"])
def test_tokens_may_come_in_any_order_and_twice(name):
    mask = np.array([[True, True, True, False], [False] * 4, [True, False, True, True]])
    made, arguments = routed(mask, 2, 3, dtype="float32", index="int32")
    arguments["indices"][:] = [2, 0, 2, 3, 1, 0]
    experts, expected = np.repeat([0, 2], 3), np.zeros((4, 3))
    for expert, token, gate in zip(experts, arguments["indices"], arguments["gates"], strict=True):
        expected[token] += gate * made[expert, token]
    assert_everywhere(program(name), arguments, y=expected)


# --- 2:4 compression

NUMBERS = {
    "small integers": lambda shape: data(shape, "float64"),
    "zeros": np.zeros,
    "equal in magnitude": lambda shape: np.where(data(shape, "int64", 4) % 2, 3.0, -3.0),
    "one in four": lambda shape: np.where(np.arange(np.prod(shape)).reshape(shape) % 4 == 1, 5, 0),
    "none in some": lambda shape: data(shape, "float64") * (np.indices(shape)[1] // 4 % 2),
    "with NaN and inf": lambda shape: np.resize(
        [1, np.nan, -np.inf, 2, np.nan, np.inf, np.nan, 3, -np.inf, 7, 8, np.nan, 0, np.nan], shape
    ),
}


def compressed(x):
    """The two greatest in magnitude of each four numbers of a row, in order, and words of 16 bits that
    hold their two positions of 2 bits for four such groups, low bits first. NaN counts as infinite;
    the first of equal ones is greater; a row goes on with zeros."""
    m, n = x.shape
    words = -(-n // 16)
    groups = np.pad(x, ((0, 0), (0, words * 16 - n))).reshape(m, words, 4, 4)
    sizes = np.where(np.isnan(groups), np.inf, np.abs(groups))
    places = np.sort(np.argsort(-sizes, axis=3, kind="stable")[..., :2], axis=3)
    codes = (places << np.array([0, 2])).sum(axis=3) << np.array([0, 4, 8, 12])
    return np.take_along_axis(groups, places, axis=3), codes.sum(axis=2)


@pytest.mark.parametrize("numbers", NUMBERS)
@pytest.mark.parametrize(
    "shape", [(0, 16), (3, 0), (1, 1), (2, 2), (2, 4), (3, 16), (2, 18), (5, 37), (1, 64)]
)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_two_of_four_are_kept(numbers, shape, dtype):
    x = NUMBERS[numbers](shape).astype(dtype)
    kept, words = compressed(x.astype(np.float64))
    arguments = {
        "x": x, "kept": nothing(kept.shape, dtype), "words": np.full(words.shape, 77, "uint16"),
        "m": shape[0], "n": shape[1],
    }  # fmt: skip
    module = program("two_of_four_compression", dtype=dtype)
    assert guards(module) == []
    assert_everywhere(module, arguments, kept=kept, words=words)


def test_what_has_two_of_four_already_comes_back():
    x = np.zeros((2, 32), np.float32)
    x[:, 1::4], x[:, 3::4] = -4, 5
    x[1, 3::4], x[1, 0::4] = 0, np.arange(8)
    kept, words = np.zeros((2, 2, 4, 2), np.float32), np.zeros((2, 2), np.uint16)
    for kernel in kernels(program("two_of_four_compression")):
        call(kernel, {"x": x, "kept": kept, "words": words, "m": 2, "n": 32})
        whole = np.zeros((2, 2, 4, 4))
        codes = words[..., None] >> np.arange(0, 16, 4, dtype="uint16")
        places = codes[..., None] >> np.array([0, 2], "uint16") & 3
        np.put_along_axis(whole, places.astype(int), kept, axis=3)
        np.testing.assert_array_equal(whole.reshape(2, 32), x)
