"""`check=True` also checks tensors that were made without checks, and names the first violation."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest
from scipy import sparse

import gossamer as gs
from gossamer_backend import Artifact
from gossamer_formats import from_scipy
from gossamer_ir.errors import ArgumentError
from gossamer_ir.interchange.serialization import dumps, loads
from gossamer_ir.interchange.signature import signature_of
from gossamer_ir.script import parse_module
from gossamer_testkit.matrices.oracles import tolerance

SCRIPT = """
@T.prim_func
def {name}(a: T.handle, c: T.handle, p: T.handle, q: T.handle, r: T.handle, s: T.handle,
           m: T.int64, n: T.int64, k: T.int64, l: T.int64) -> None:
    I = T.sp.dense_fixed(m)
    J = T.sp.compressed_varied(I, (n, k), (p, q), "int32")
    K = T.sp.compressed_varied(I, (n, l), (r, s), "int32")
    T.sp.assume({relation})
    A = T.sp.match_buffer(a, (I, J), "float32")
    C = T.sp.match_buffer(c, (I, K), "float32")
    with T.sp.iteration([I, J], "SS", "copy") as [i, j]:
        A[i, j] = 2.0
    with T.sp.iteration([I, K], "SS", "other") as [i, k1]:
        C[i, k1] = 3.0
"""


def arrays(first, second):
    values = {"m": len(first), "n": 6}
    for (indptr, indices, count, data), rows in zip(
        (("p", "q", "k", "a"), ("r", "s", "l", "c")), (first, second), strict=True
    ):
        values[indptr] = np.cumsum([0, *map(len, rows)]).astype(np.int32)
        values[indices] = np.array([x for row in rows for x in row], np.int32)
        values[count] = len(values[indices])
        values[data] = np.zeros(values[count], np.float32)
    return values


def bind(kernel, values, **options):
    names = {param.name for param in (*kernel.signature.buffers, *kernel.signature.scalars)}
    return kernel.bind(**{key: values[key] for key in values if key in names}, **options)


RELATIONS = {
    "subset(J, K)": ([[0, 2], [1]], [[0, 2, 3], [1]], [[0, 2], [4]], "Element 2 of 'q' is 4"),
    "covers(J, K)": ([[0, 2], [1]], [[0], [1]], [[2], [1]], "Element 0 of 's' is 0"),
    "disjoint(J, K)": ([[0, 2], [1]], [[1, 3], [0]], [[1, 3], [1]], "Element 0 of 'q' is 1"),
}


@pytest.mark.parametrize("relation", RELATIONS)
def test_a_declared_relation_is_checked_even_where_all_is_vouched_for(relation):
    kernel = gs.compile(SCRIPT.format(name="two", relation=relation))
    first, second, wrong, message = RELATIONS[relation]
    good, bad = arrays(first, second), arrays(wrong, second)
    vouched = ("p", "q", "r", "s")
    bind(kernel, good, check=True)()
    assert (good["a"] == 2).all()
    assert (good["c"] == 3).all()
    for options in ({}, {"verified": vouched}, {"verified": vouched, "check": True}):
        with pytest.raises(ArgumentError, match=message):
            bind(kernel, bad, **options)


def test_arrays_that_the_caller_vouches_for_are_checked_on_request():
    script = SCRIPT.format(name="two", relation="").replace("    T.sp.assume()\n", "")
    kernel = gs.compile(script)
    bad = arrays([[0, 2], [9]], [[1], []])
    bind(kernel, bad, verified=("p", "q"))
    with pytest.raises(ArgumentError, match="Element 2 of 'q' is 9; expected a value from 0 to 5"):
        bind(kernel, bad, verified=("p", "q"), check=True)


@pytest.mark.parametrize("rows", [2, 100_000])
@pytest.mark.parametrize(("at", "change"), [(0, 1), (-1, -1)])
def test_offsets_that_do_not_lead_from_nothing_to_all_are_named(rows, at, change):
    kernel = gs.compile(SCRIPT.format(name="two", relation="").replace("    T.sp.assume()\n", ""))
    bad = arrays([[0, 2]] * rows, [[1]] * rows)
    bad["p"][at] += change
    place = at % (rows + 1)
    bind(kernel, bad, verified=("p", "q", "r", "s"))
    message = rf"Element {place} of 'p' is {bad['p'][at]}; expected {bad['p'][at] - change}\."
    for options in ({}, {"verified": ("p", "q"), "check": True}):
        with pytest.raises(ArgumentError, match=message) as caught:
            bind(kernel, bad, **options)
        assert caught.value.code == "kernel.value"


def test_a_tensor_whose_arrays_were_changed_is_named_where_it_is_checked():
    matrix = sparse.random_array((20, 30), density=0.3, rng=np.random.default_rng(3), format="csr")
    tensor = from_scipy(matrix.astype(np.float32))
    x, out = np.ones(30, np.float32), np.zeros(20, np.float32)
    gs.spmv.bind(tensor, x, out=out, check=True)()
    np.testing.assert_allclose(out, matrix @ x, rtol=tolerance(2 * 30, "float32"))
    indices = tensor.arrays["indices"]
    ctypes.c_int32.from_address(indices.ctypes.data + 5 * indices.itemsize).value = 1000
    gs.spmv.bind(tensor, x, out=out)
    with pytest.raises(
        ArgumentError, match="Element 5 of 'indices' is 1000; expected a value from 0"
    ):
        gs.spmv.bind(tensor, x, out=out, check=True)


def test_facts_survive_every_encoding():
    """They are the same in the module, after encoding, in the script and in the cached artifact."""
    from gossamer.compilation.pipeline import lower_by_stage
    from gossamer_ir.interchange.records import Schedule
    from gossamer_ir.script import print_module

    module = parse_module(SCRIPT.format(name="two", relation="subset(J, K)"))
    for stage in lower_by_stage(module, Schedule()):
        assert loads(dumps(stage)) == stage
        assert parse_module(print_module(stage)) == stage
    facts = {fact for param in signature_of(stage).buffers for fact in param.facts}
    assert {type(fact).__name__ for fact in facts} == {
        "HasValue", "InRange", "Monotone", "Relation", "SortedSegments",
    }  # fmt: skip
    kernel = gs.compile(module)
    stored = Artifact.decode(kernel.artifact.encode())
    assert {fact for param in stored.signature.buffers for fact in param.facts} == facts
