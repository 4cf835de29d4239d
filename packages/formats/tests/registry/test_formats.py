"""A format that another distribution registers: its description and its operators."""

from __future__ import annotations

import importlib
import pickle
import sys

import numpy as np
import pytest
from scipy import sparse

from gossamer_formats import Format, csr, from_arrays, from_scipy, to_scipy
from gossamer_formats.external_formats.torch_layout import TorchLayout
from gossamer_formats.registry.formats import FORMATS, format_names
from gossamer_formats.registry.operators import (
    OPERATORS,
    ignored_operators,
    operator_names,
    operator_of,
)
from gossamer_ir.errors import FormatError, InternalError, PluginError

ELL = '''
from functools import partial

import msgspec

from gossamer_formats import Format
from gossamer_formats.descriptions.sell import sell
from gossamer_ir.script import parse_format

SCRIPT = """
@T.format
def wide_ell(data: T.handle, columns: T.handle, m: T.int64, n: T.int64, width: T.int64) -> None:
    I = T.sp.dense_fixed(m)
    J = T.sp.compressed_fixed(I, (n, width), columns, "int32")
    A = T.sp.match_buffer(data, (I, J), "float32")
"""
FORMAT = Format("wide_ell", lambda: parse_format(SCRIPT), parameters={"width": 2})


def describe_nothing():
    return "an ELL"


def order_wrongly(counts, parameters):
    return counts[len(counts)]


UNDESCRIBED = Format("undescribed", describe_nothing)
SORTED_ROWS = Format("sorted_rows", sell, orders={"ROWS": order_wrongly})


def matmul(tensor, dense):
    return "the product of ELL"
'''
ENTRY_POINTS = """
[gossamer.formats]
wide_ell = ell_of_others:FORMAT
wrong = ell_of_others:matmul
not_there = ell_of_nobody:FORMAT
undescribed = ell_of_others:UNDESCRIBED
sorted_rows = ell_of_others:SORTED_ROWS
csr = ell_of_others:FORMAT

[gossamer.operators]
wide_ell.matmul = ell_of_others:matmul
wide_ell.rmatmul = ell_of_others:FORMAT
csr.solve = ell_of_others:matmul
coo.matmul = ell_of_nobody:matmul
"""
MATRIX = sparse.csr_array(np.array([[1, 0, 2], [0, 0, 0], [0, 3, 0]], dtype=np.float32))


@pytest.fixture(autouse=True)
def installed(tmp_path, monkeypatch):
    """Installs a distribution that registers the format."""
    (tmp_path / "ell_of_others.py").write_text(ELL)
    install("ell-of-others", ENTRY_POINTS, tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.invalidate_caches()
    forget()
    yield
    sys.modules.pop("ell_of_others", None)
    forget()


def install(name, entry_points, folder):
    info = folder / f"{name.replace('-', '_')}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(entry_points)


def forget():
    FORMATS.find.cache_clear()
    OPERATORS.find.cache_clear()
    operator_of.cache_clear()


def test_a_tensor_is_converted_to_the_format_and_back():
    tensor = from_scipy(MATRIX).asformat("wide_ell")
    assert tensor.format == "wide_ell"
    assert tensor.arrays["columns"].tolist() == [0, 2, 3, 3, 1, 3]
    assert to_scipy(tensor).toarray().tolist() == MATRIX.toarray().tolist()
    assert tensor.toarray().tolist() == MATRIX.toarray().tolist()
    assert tensor.T.toarray().tolist() == MATRIX.toarray().T.tolist()
    assert tensor.stats == from_scipy(MATRIX).stats
    assert (
        pickle.loads(pickle.dumps(tensor)).asformat("csr").description
        == from_scipy(MATRIX).description
    )


def test_arrays_of_the_format_are_checked():
    indices, data = np.array([0, 3, 1, 2], np.int32), np.ones(4, np.float32)
    tensor = from_arrays("wide_ell", (2, 3), columns=indices, data=data)
    assert tensor.toarray().tolist() == [[1, 0, 0], [0, 1, 1]]
    with pytest.raises(FormatError, match="columns"):
        from_arrays("wide_ell", (2, 3), columns=np.array([0, 4, 1, 2], np.int32), data=data)


def test_its_operators_come_before_those_of_csr():
    tensor = from_scipy(MATRIX).asformat("wide_ell")
    assert tensor @ np.ones(3) == "the product of ELL"


def test_an_unknown_format_lists_those_that_are_registered():
    names = "not_there, sorted_rows, undescribed, wide_ell, wrong"
    with pytest.raises(
        FormatError, match=rf"'rows'; expected one of: bitmask, blocked_sell, .*, v_n_m, {names}\."
    ):
        from_scipy(MATRIX).asformat("rows")


def test_an_entry_point_must_name_a_format():
    with pytest.raises(
        PluginError, match=r"'wrong' .*; expected a gossamer_formats\.Format"
    ) as caught:
        from_scipy(MATRIX).asformat("wrong")
    assert caught.value.code == "plugin.entry_point"


def test_exceptions_of_a_format_name_its_distribution():
    tensor = from_scipy(MATRIX)
    with pytest.raises(PluginError) as caught:
        tensor.asformat("undescribed")
    assert str(caught.value) == (
        "The plugin 'ell-of-others' cannot describe the format 'undescribed': TypeError: it returned "
        "'an ELL'; expected a FormatDescription. [plugin.failed]"
    )
    with pytest.raises(
        PluginError, match="'ell-of-others' cannot order an index array of the format 'sorted"
    ):
        tensor.asformat("sorted_rows")


def test_operators_that_are_never_used_are_reported(tmp_path):
    more = """
[gossamer.operators]
csr.solve = ell_of_others:matmul
wide.solve = ell_of_others:matmul
wide_ell.solved = ell_of_others:matmul
"""
    install("more-operators", more, tmp_path)
    # The other operators depend on whether distribution `gossamer` is installed.
    errors = [
        (point.name, reason)
        for point, reason in ignored_operators().items()
        if "solve" in point.name
    ]
    assert errors == [
        ("csr.solve", "ell-of-others and more-operators register it"),
        ("csr.solve", "ell-of-others and more-operators register it"),
        ("wide.solve", "there is no format 'wide'"),
        (
            "wide_ell.solved",
            f"'solved' is not an operator; expected one of {', '.join(operator_names())}",
        ),
    ]


def test_an_operator_must_be_a_function():
    with pytest.raises(
        PluginError, match=r"'wide_ell\.rmatmul' .* type 'Format'; expected a function"
    ):
        np.ones(3) @ from_scipy(MATRIX).asformat("wide_ell")


def test_a_distribution_that_cannot_be_imported_is_named():
    missing = "ModuleNotFoundError: No module named 'ell_of_nobody'"
    with pytest.raises(PluginError) as caught:
        from_scipy(MATRIX).asformat("not_there")
    reason = f"The plugin 'ell-of-others' cannot register the format 'not_there': {missing}."
    assert str(caught.value) == f"{reason} [plugin.failed]"
    with pytest.raises(PluginError) as caught:
        from_scipy(MATRIX).asformat("coo") @ np.ones(3)
    reason = f"The plugin 'ell-of-others' cannot register the operator 'coo.matmul': {missing}."
    assert str(caught.value) == f"{reason} [plugin.failed]"


def test_a_name_that_two_distributions_register_is_refused(tmp_path):
    tensor = from_scipy(MATRIX).asformat("wide_ell")
    tensor @ np.ones(3)  # what it converts to, which is looked up by name, is remembered
    install("more-ell", ENTRY_POINTS, tmp_path)
    forget()
    owners = r"ell-of-others, more-ell\. \[plugin\.duplicate\]"
    with pytest.raises(PluginError, match=rf"install the format 'wide_ell': {owners}"):
        from_scipy(MATRIX).asformat("wide_ell")
    with pytest.raises(PluginError, match=rf"install the operator 'wide_ell\.matmul': {owners}"):
        tensor @ np.ones(3)
    assert format_names().count("wide_ell") == 1


def test_the_names_of_the_library_are_its_own():
    assert (
        from_scipy(MATRIX).asformat("coo").asformat("csr").description
        == from_scipy(MATRIX).description
    )
    assert format_names().count("csr") == 1
    assert [(point.name, point.distribution) for point in FORMATS.ignored_entry_points()] == [
        ("csr", "ell-of-others")
    ]


def test_a_format_has_one_adapter_of_a_type():
    layouts = (TorchLayout("sparse_csr"), TorchLayout("sparse_csc"))
    with pytest.raises(
        InternalError, match="'twice' has several adapters of one type: TorchLayout"
    ):
        Format("twice", csr, adapters=layouts)
