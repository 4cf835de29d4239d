"""Tensors in parts of composable formats, and of formats that a user lists."""

from __future__ import annotations

import importlib
import sys

import numpy as np
import pytest
from scipy import sparse

from gossamer_formats import SparseTensor, convert, decompose, from_arrays, from_scipy
from gossamer_formats.registry.composable_formats import COMPOSABLE_FORMATS
from gossamer_ir.errors import ArgumentError, FormatError, PluginError
from gossamer_testkit.conformance.composable_formats import SPMV_SCRIPT

LOOPS = """
@T.prim_func
def empty(n: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 0})
    T.evaluate(0)
"""


def matrix(shape=(30, 20), density=0.3, seed=0, dtype=np.float32):
    rng = np.random.default_rng(seed)
    random = sparse.random_array(shape, density=density, format="csr", rng=rng, dtype=dtype)
    random.data = np.arange(1, random.nnz + 1, dtype=dtype)
    return random


def require_parts_of(decomposition, expected):
    """Requires that the parts have each element of a matrix once, and that the permutations are right."""
    assert np.array_equal(decomposition.toarray(), expected.toarray())
    places = [part.permutation[part.permutation >= 0] for part in decomposition.parts]
    assert sorted(np.concatenate([np.zeros(0, int), *places])) == list(range(expected.nnz))
    for part in decomposition.parts:
        stored = part.permutation >= 0
        values = part.tensor.storage.values
        assert np.array_equal(values[stored], expected.data[part.permutation[stored]])
        assert not values[~stored].any()
        SparseTensor(part.tensor.storage)  # checks its arrays


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("index_dtype", ["int32", "int64"])
@pytest.mark.parametrize("parameters", [{}, {"k": 0}, {"c": 3, "k": 1}, {"c": 99, "k": 24}])
@pytest.mark.parametrize(
    "shape", [(30, 20), (0, 5), (5, 0), (0, 0), (1, 1), (7, 1), (1, 40), (40, 3)]
)
def test_the_parts_of_hyb_have_each_element_once(shape, parameters, index_dtype, dtype):
    stored = matrix(shape, dtype=dtype)
    stored.indices, stored.indptr = (
        array.astype(index_dtype) for array in (stored.indices, stored.indptr)
    )
    decomposition = decompose(from_scipy(stored), "hyb", **parameters)
    require_parts_of(decomposition, stored)
    assert decomposition.shape == shape
    assert decomposition.dtype == dtype
    assert decomposition.nnz == stored.nnz


@pytest.mark.parametrize("format", ["csc", "coo", "ell", "bsr"])
def test_permutations_refer_to_the_tensor_that_was_decomposed(format):
    parameters = {"block_rows": 2, "block_columns": 5} if format == "bsr" else {}
    source = from_scipy(matrix()).asformat(format, **parameters)
    values = source.storage.values
    for decomposition in (
        decompose(source, "hyb", c=2),
        decompose(source, [("sell", left_of_4), "csr"]),
    ):
        assert np.array_equal(decomposition.toarray(), source.toarray())
        for part in decomposition.parts:
            stored = part.permutation >= 0
            assert np.array_equal(
                part.tensor.storage.values[stored], values[part.permutation[stored]]
            )
        assert np.array_equal(decomposition.with_values(2 * values).toarray(), 2 * source.toarray())
        part_values = [part.tensor.storage.values for part in decomposition.parts]
        assert np.array_equal(decomposition.gather_values(part_values), values)


def left_of_4(_rows, columns):
    return columns < 4


def test_columns_may_be_unsorted_and_borrowed():
    stored = matrix()
    stored.indices, stored.data = stored.indices.copy(), stored.data.copy()
    for row in range(30):
        row_slots = slice(stored.indptr[row], stored.indptr[row + 1])
        stored.indices[row_slots], stored.data[row_slots] = (
            stored.indices[row_slots][::-1],
            stored.data[row_slots][::-1],
        )
    for tensor in (from_scipy(stored), from_scipy(stored, copy=False), stored):
        assert np.array_equal(decompose(tensor, "hyb", c=2).toarray(), stored.toarray())


def test_a_list_of_formats_takes_each_element_in_the_first_part_that_chooses_it():
    stored = matrix((32, 32))
    decomposition = decompose(
        from_scipy(stored),
        [
            ("dia", lambda i, j: abs(i - j) <= 1),
            ("bsr", lambda i, j: (i // 8 + j // 8) % 2 == 0, {"block_rows": 8, "block_columns": 8}),
            ("ell_rows", lambda i, j: j < 0, {"width": 4}),
            "csr",
        ],
    )
    assert [part.name for part in decomposition.parts] == ["dia_0", "bsr_1", "csr_3"]
    assert [part.fixed_sizes for part in decomposition.parts][1] == {
        "block_rows": 8,
        "block_columns": 8,
    }
    require_parts_of(decomposition, stored)


def test_values_are_updated_through_the_permutations():
    stored = matrix()
    decomposition = decompose(from_scipy(stored), "hyb", c=2, k=2)
    values = np.arange(stored.nnz, dtype=np.float32)
    updated = decomposition.with_values(values)
    stored.data = values
    assert np.array_equal(updated.toarray(), stored.toarray())
    assert all(
        new.tensor.arrays["indices"] is old.tensor.arrays["indices"]
        for new, old in zip(updated.parts, decomposition.parts, strict=True)
    )
    with pytest.raises(ArgumentError, match="expected") as caught:
        decomposition.with_values(values[1:])
    assert caught.value.code == "decomposition.values"


def test_a_program_is_rewritten_for_the_parts():
    decomposition = decompose(matrix(), "hyb", c=2, k=2)
    program = decomposition.rewrite(SPMV_SCRIPT)
    (function,) = program.functions
    assert [stmt.name for stmt in function.body] == [
        "spmv_init",
        *(f"spmv_{part.name}" for part in decomposition.parts),
    ]
    handles = {param.name for param in function.params if param.dtype == "handle"}
    names = {param.name for param in function.params}
    assert names == {"x", "y", "m", "n", *decomposition.arguments}
    assert "data_p0b0" in handles
    assert "width_p0b0" not in names


@pytest.mark.parametrize(
    ("formats", "parameters", "code"),
    [
        ("hub", {}, "format.unknown"),
        ("hyb", {"b": 3}, "format.parameter"),
        ("hyb", {"c": 0}, "format.parameter.value"),
        ("hyb", {"c": None}, "format.parameter.value"),
        ("hyb", {"c": 2.0}, "format.parameter.value"),
        ("hyb", {"k": -1}, "format.parameter.value"),
        ("hyb", {"k": 25}, "format.parameter.value"),
        (["csr"], {"c": 1}, "format.parameter"),
        (["rows"], {}, "format.unknown"),
        (["bsr"], {}, "format.parameter.missing"),
        ([("csr", left_of_4)], {}, "format.parts"),
        (["ell3d"], {}, "format.dimensions"),
        ([("csr", "left")], {}, "format.parts"),
        ([("csr", left_of_4, {}, {})], {}, "format.parts"),
        ([("csr", lambda i, j: j)], {}, "format.parts"),
        ([("csr", lambda i, j: np.array([True]))], {}, "format.parts"),
        ([("ell", None, {"width": 1})], {}, "format.width"),
    ],
)
def test_what_cannot_be_decomposed_raises(formats, parameters, code):
    with pytest.raises(FormatError) as caught:
        decompose(from_scipy(matrix()), formats, **parameters)
    assert caught.value.code == code


def test_only_matrices_without_duplicates_are_decomposed():
    cube = from_scipy(matrix()).asformat("coo").storage
    stored = sparse.csr_array((np.ones(2), np.array([1, 1]), np.array([0, 2])), shape=(1, 3))
    assert len(cube.shape) == 2
    with pytest.raises(FormatError) as caught:
        decompose(stored, "hyb")
    assert caught.value.code == "format.duplicate"


def test_a_program_that_looks_up_elements_is_refused():
    decomposition = decompose(matrix(), "hyb")
    with pytest.raises(FormatError, match="looks up elements") as caught:
        decomposition.rewrite(SPMV_SCRIPT.replace("A[i, j] * X[j]", "A[i, j] * A[i, 0]"))
    assert caught.value.code == "format.program"
    with pytest.raises(FormatError, match="'Z' is not a sparse buffer"):
        decomposition.rewrite(SPMV_SCRIPT, "Z")
    with pytest.raises(FormatError, match="1 function of the loop stage"):
        decomposition.rewrite(LOOPS)


PLUGIN = '''
"""Upper and lower triangles."""

import numpy as np

from gossamer_formats import ComposableFormat
from gossamer_formats.decomposition.format_list import chosen_parts


def triangles(matrix, *, offset):
    return chosen_parts(matrix, [("csr", lambda i, j: j >= i + offset), "csc"])


def twice(matrix):
    return [
        *chosen_parts(matrix, ["csr"]),
        *(part._replace(name="again") for part in chosen_parts(matrix, ["csc"])),
    ]


def nothing(matrix):
    return None


def failing(matrix):
    yield from chosen_parts(matrix, ["csr"])
    raise KeyError("rows")


def altered(**changes):
    def decompose(matrix):
        return [part._replace(**changes) for part in chosen_parts(matrix, ["csr"])]

    return decompose


TRIANGLES = ComposableFormat("triangles", triangles, parameters={"offset": None})
TWICE = ComposableFormat("twice", twice)
NOTHING = ComposableFormat("nothing", nothing)
FAILING = ComposableFormat("failing", failing)
NUMBERS = ComposableFormat("numbers", lambda matrix: [1, 2])
NAMELESS = ComposableFormat("nameless", altered(name="upper left"))
SAME = ComposableFormat("same", lambda matrix: 2 * [*chosen_parts(matrix, ["csr"])])
SHORT = ComposableFormat("short", altered(permutation=np.arange(3)))
'''
ENTRY_POINTS = """
[gossamer.composable_formats]
triangles = parts_of_others:TRIANGLES
twice = parts_of_others:TWICE
nothing = parts_of_others:NOTHING
failing = parts_of_others:FAILING
numbers = parts_of_others:NUMBERS
nameless = parts_of_others:NAMELESS
same = parts_of_others:SAME
short = parts_of_others:SHORT
wrong = parts_of_others:triangles
hyb = parts_of_others:TWICE
"""


@pytest.fixture
def plugin(tmp_path, monkeypatch):
    """Installs a distribution that registers composable formats."""
    info = tmp_path / "parts_of_others-1.0.dist-info"
    info.mkdir()
    (tmp_path / "parts_of_others.py").write_text(PLUGIN)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: parts-of-others\nVersion: 1\n")
    (info / "entry_points.txt").write_text(ENTRY_POINTS)
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.invalidate_caches()
    COMPOSABLE_FORMATS.find.cache_clear()
    yield
    COMPOSABLE_FORMATS.find.cache_clear()
    sys.modules.pop("parts_of_others", None)


@pytest.mark.usefixtures("plugin")
def test_another_distribution_registers_a_composable_format():
    assert {"hyb", "triangles", "twice", "wrong"} <= {*COMPOSABLE_FORMATS.names()}
    assert [point.name for point in COMPOSABLE_FORMATS.ignored()] == ["hyb"]
    stored = matrix()
    decomposition = decompose(stored, "triangles", offset=2)
    assert [part.name for part in decomposition.parts] == ["csr_0", "csc_1"]
    require_parts_of(decomposition, stored)
    with pytest.raises(FormatError, match="Pass offset=") as caught:
        decompose(stored, "triangles")
    assert caught.value.code == "format.parameter.missing"
    with pytest.raises(
        PluginError, match=r"expected a gossamer_formats\.ComposableFormat"
    ) as wrong:
        decompose(stored, "wrong")
    assert wrong.value.code == "plugin.entry_point"


@pytest.mark.usefixtures("plugin")
@pytest.mark.parametrize(
    ("name", "code", "message"),
    [
        ("twice", "composable_format", "stored value 0 of the matrix in 2 slots; each value"),
        ("numbers", "composable_format", "returned an object of type 'int'; expected a gossamer"),
        ("nameless", "composable_format", "named a part 'upper left'; expected letters"),
        ("same", "composable_format", "named two parts 'csr_0'; expected a name of its own"),
        ("short", "composable_format", "a permutation of the shape (3,) and the dtype int64"),
        (
            "nothing",
            "failed",
            "'parts-of-others' cannot decompose a matrix by the composable format",
        ),
        ("failing", "failed", "'failing': KeyError: 'rows'."),
    ],
)
def test_what_a_composable_format_returns_is_checked(name, code, message):
    with pytest.raises(PluginError) as caught:
        decompose(matrix(), name)
    assert caught.value.code == f"plugin.{code}"
    assert message in str(caught.value)


@pytest.mark.parametrize("parameters", [{}, {"c": 3, "k": 1}, {"c": 2, "k": 0}])
@pytest.mark.parametrize("shape", [(30, 20), (0, 5), (5, 0), (1, 40)])
def test_hyb_is_a_format_like_others(shape, parameters):
    stored = matrix(shape)
    decomposition = from_scipy(stored).asformat("hyb", **parameters)
    decomposition.check()
    assert decomposition.format == "hyb"
    assert np.array_equal(decomposition.toarray(), stored.toarray())
    for name in ("csr", "csc", "coo", "ell"):
        back = decomposition.asformat(name)
        assert back.format == name
        assert back.nnz >= stored.nnz
        assert np.array_equal(back.toarray(), stored.toarray())
    back = decomposition.tocsr()
    assert back is decomposition.tocsr()
    assert np.array_equal(back.arrays["indices"], stored.indices)
    assert np.array_equal(back.arrays["data"], stored.data)
    assert np.array_equal(decomposition.T.toarray(), stored.toarray().T)
    assert np.array_equal(decomposition.asformat("hyb", k=1).toarray(), stored.toarray())


def test_the_values_of_parts_have_another_dtype():
    stored = matrix()
    decomposition = from_scipy(stored).asformat("hyb", c=2).astype(np.float64)
    assert decomposition.dtype == np.float64
    assert np.array_equal(decomposition.toarray(), stored.toarray())


def test_duplicates_are_added_before_a_matrix_is_stored_in_parts():
    arrays = {"indices_0": np.array([0, 0, 1]), "indices_1": np.array([1, 1, 0])}
    tensor = from_arrays("coo", (2, 2), data=np.array([1.0, 2.0, 4.0]), **arrays)
    assert tensor.asformat("hyb").toarray().tolist() == [[0.0, 3.0], [4.0, 0.0]]
    with pytest.raises(FormatError) as caught:
        tensor.asformat("hyb", duplicates="error")
    assert caught.value.code == "format.duplicate"


def test_a_list_of_formats_is_converted_back():
    stored = matrix()
    decomposition = decompose(
        stored, [("bsr", left_of_4, {"block_rows": 2, "block_columns": 2}), "csr"]
    )
    decomposition.check()
    assert np.array_equal(decomposition.tocsr().toarray(), stored.toarray())


def test_an_element_in_two_parts_is_found():
    decomposition = from_scipy(matrix()).asformat("hyb", k=2)
    decomposition.parts = (*decomposition.parts, decomposition.parts[0]._replace(name="again"))
    with pytest.raises(FormatError, match=r"is in the parts 'p0b\d' and 'again'") as caught:
        decomposition.check()
    assert caught.value.code == "format.parts"


def test_a_conversion_to_several_tensors_says_what_to_call():
    with pytest.raises(FormatError, match=r"Call decompose\(tensor, 'hyb'\)") as caught:
        convert(SparseTensor(sparse.eye_array(3)), "hyb")
    assert caught.value.code == "format.composable"
