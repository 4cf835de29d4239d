"""Attention over the blocks of a mask in BSR: scores and values by tensor cores, with the default schedule
for GPUs, in the interpreter of PTX, against NumPy."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from disassembler import count_of, opcodes

import gossamer as gs
from gossamer.compilation.pipeline import stage_texts
from gossamer_cuda_mma_sp.device_code import DeviceCode
from gossamer_ir.script import parse_module
from gossamer_ir.transform.specialize import specialize

TARGET = "cuda-mma-sp:arch=sm_90,driver=interpreter"
_HEADER = """
@T.prim_func
def block_attention(
    q: T.handle, k: T.handle, v: T.handle, s: T.handle, out: T.handle, indptr: T.handle, indices: T.handle,
    mb: T.int64, nb: T.int64, nnzb: T.int64, bh: T.int64, bw: T.int64, feat: T.int64,
) -> None:
    IO = T.sp.dense_fixed(mb)
    JO = T.sp.compressed_varied(IO, (nb, nnzb), (indptr, indices), "int32")
    JO_detach = T.sp.dense_fixed(nb)
    II = T.sp.dense_fixed(bh)
    JI = T.sp.dense_fixed(bw)
    D = T.sp.dense_fixed(feat)
    Q = T.sp.match_buffer(q, (IO, II, D), "float16")
    K = T.sp.match_buffer(k, (JO_detach, JI, D), "float16")
    S = T.sp.match_buffer(s, (IO, JO, II, JI), "float32")
    V = T.sp.match_buffer(v, (JO_detach, JI, D), "float16")
    Out = T.sp.match_buffer(out, (IO, II, D), "float32")
"""
_SCORES = """
    with T.sp.iteration([IO, JO, II, JI, D], "SSSSR", "scores") as [io, jo, ii, ji, d]:
        with T.init():
            S[io, jo, ii, ji] = 0.0
        S[io, jo, ii, ji] = S[io, jo, ii, ji] + T.cast(Q[io, ii, d], "float32") * T.cast(K[jo, ji, d], "float32")
"""  # noqa: E501  (scripts have no line breaks inside an expression)
_REST = """
    Most = T.sp.alloc_buffer((IO, II), "float32")
    Total = T.sp.alloc_buffer((IO, II), "float32")
    P = T.sp.alloc_buffer((IO, JO, II, JI), "float16")
    with T.sp.iteration([IO, II, JO, JI], "SSRR", "most") as [io, ii, jo_most, ji_most]:
        with T.init():
            Most[io, ii] = T.float32("-inf")
        Most[io, ii] = T.max(Most[io, ii], S[io, jo_most, ii, ji_most])
    with T.sp.iteration([IO, JO, II, JI], "SSSS", "powers") as [io, jo_p, ii, ji_p]:
        P[io, jo_p, ii, ji_p] = T.cast(T.exp(S[io, jo_p, ii, ji_p] - Most[io, ii]), "float16")
    with T.sp.iteration([IO, II, JO, JI], "SSRR", "total") as [io, ii, jo_total, ji_total]:
        with T.init():
            Total[io, ii] = 0.0
        Total[io, ii] = Total[io, ii] + T.cast(P[io, jo_total, ii, ji_total], "float32")
    with T.sp.iteration([IO, JO, II, JI, D], "SRSRS", "values") as [io, jo_v, ii, ji_v, d_v]:
        with T.init():
            Out[io, ii, d_v] = 0.0
        Out[io, ii, d_v] = Out[io, ii, d_v] + T.cast(P[io, jo_v, ii, ji_v], "float32") * T.cast(V[jo_v, ji_v, d_v], "float32")
    with T.sp.iteration([IO, II, D], "SSS", "divided") as [io, ii, d_o]:
        Out[io, ii, d_o] = Out[io, ii, d_o] / Total[io, ii]
"""  # noqa: E501  (scripts have no line breaks inside an expression)
INDPTR = np.array([0, 2, 3, 6], np.int32)
INDICES = np.array([0, 3, 1, 1, 2, 3], np.int32)
SIZES = {"bh": 16, "bw": 32, "feat": 32}


def scores_module():
    return specialize(parse_module(_HEADER + _SCORES), SIZES)


def operands():
    random = np.random.default_rng(0)
    height, width, features = SIZES.values()
    shapes = {"q": (3, height, features), "k": (4, width, features), "v": (4, width, features)}
    return {name: random.integers(-2, 3, each).astype(np.float16) for name, each in shapes.items()}


def arguments_of(values):
    height, width, features = SIZES.values()
    return {
        **values,
        "s": np.full((6, height, width), np.nan, np.float32),
        "out": np.full((3, height, features), np.nan, np.float32),
        "indptr": INDPTR,
        "indices": INDICES,
    }


def exact_scores(values):
    rows = np.repeat(np.arange(3), np.diff(INDPTR))
    q, k = (values[name].astype(np.float64) for name in "qk")
    return np.einsum("eid,ejd->eij", q[rows], k[INDICES])


def test_scores_of_blocks_are_exact():
    module = scores_module()
    assert gs.explain(module, target=TARGET).rule == "grid_block_sddmm"
    kernel = gs.compile(module, target=TARGET)
    arguments = arguments_of(operands())
    kernel(**{name: arguments[name] for name in kernel.signature.order if name in arguments},
           mb=3, nb=4, nnzb=6)  # fmt: skip
    np.testing.assert_array_equal(arguments["s"], exact_scores(arguments))


def test_attention_multiplies_by_tensor_cores():
    module = specialize(parse_module(_HEADER + _SCORES + _REST), SIZES)
    kernel = gs.compile(module, target=TARGET)
    ptx = DeviceCode.decode(kernel.artifact.code).ptx
    entries = ptx.split(".entry")[1:]
    assert sum("mma.sync" in entry for entry in entries) == 2
    arguments = arguments_of(operands())
    kernel(**arguments, mb=3, nb=4, nnzb=6)
    scores, values = exact_scores(arguments), arguments["v"].astype(np.float64)[INDICES]
    for row, (begin, end) in enumerate(pairwise(INDPTR)):
        weights = np.exp(scores[begin:end] - scores[begin:end].max(axis=(0, 2))[:, np.newaxis])
        expected = np.einsum("eij,ejd->id", weights, values[begin:end])
        expected /= weights.sum(axis=(0, 2))[:, np.newaxis]
        # Weights are rounded to float16: 11 bits, and values are at most 2.
        np.testing.assert_allclose(arguments["out"][row], expected, atol=2 * 2 * 2.0**-11)


@pytest.mark.parametrize("architecture", ["sm_80", "sm_90a"])
def test_machine_code_of_scores_has_copies_matrix_loads_and_instructions(architecture, tmp_path):
    text = stage_texts(scores_module(), target=f"cuda-mma-sp:arch={architecture}")["ptx"]
    counts = opcodes(text, architecture, tmp_path)
    assert all(count_of(counts, name) > 0 for name in ("LDGSTS", "LDSM", "HMMA"))
    assert not any(count_of(counts, name) for name in ("LDL", "STL", "FFMA"))
