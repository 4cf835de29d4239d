"""Operators that a distribution registers for tensors in a format of its own."""

import importlib
import sys

import numpy as np
import pytest
from scipy import sparse

import gossamer as gs
from gossamer.operators import NAMES
from gossamer_formats import from_scipy
from gossamer_formats.registry.formats import FORMATS
from gossamer_formats.registry.operators import OPERATORS, operator_names, operator_of
from gossamer_ir.errors import ArgumentError, PluginError
from gossamer_support.plugins.installed_distributions import installed_entry_points
from gossamer_testkit.matrices.oracles import spmv

PLUGIN = """
from msgspec.structs import replace

from gossamer_formats import Format
from gossamer_formats.descriptions.ell import ell

FORMAT = Format("lanes", lambda: replace(ell(), name="lanes"))
CALLS = []


def spmm(A, B, *, alpha=1.0):
    CALLS.append(A.format)
    return alpha * (A.toarray() @ B)


def sddmm(pattern, X, Y, *, out=None):
    CALLS.append("out" if out is not None else "no out")
    return X @ Y.T
"""
ENTRY_POINTS = """
[gossamer.formats]
lanes = lanes_of_others:FORMAT

[gossamer.operators]
lanes.spmm = lanes_of_others:spmm
lanes.sddmm = lanes_of_others:sddmm
csr.spmv = lanes_of_others:spmm
"""
MATRIX = sparse.csr_array(np.array([[1, 0, 2], [0, 0, 0], [0, 3, 0]], dtype=np.float32))


@pytest.fixture
def plugin(tmp_path, monkeypatch):
    info = tmp_path / "lanes_of_others-1.0.dist-info"
    info.mkdir()
    (tmp_path / "lanes_of_others.py").write_text(PLUGIN)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: lanes-of-others\nVersion: 1\n")
    (info / "entry_points.txt").write_text(ENTRY_POINTS)
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.invalidate_caches()
    forget()
    yield importlib.import_module("lanes_of_others")
    sys.modules.pop("lanes_of_others", None)
    forget()


def forget():
    for cached in (FORMATS.find, OPERATORS.find, operator_of):
        cached.cache_clear()


def test_every_operator_is_open_and_registered_for_csr():
    assert {*operator_names()} == {"matmul", "rmatmul", *NAMES}
    points = installed_entry_points(OPERATORS.group)
    names = {point.name for point in points if point.distribution == "gossamer"}
    assert names == {f"csr.{name}" for name in operator_names()}


def test_an_operator_of_the_format_is_called_by_its_name_and_by_at(plugin):
    tensor = from_scipy(MATRIX).asformat("lanes")
    dense = np.arange(6, dtype=np.float32).reshape(3, 2)
    expected = MATRIX.toarray() @ dense
    np.testing.assert_array_equal(gs.spmm(tensor, dense), expected)
    np.testing.assert_array_equal(gs.spmm(A=tensor, B=dense, alpha=2.0), 2 * expected)
    np.testing.assert_array_equal(tensor @ dense, expected)
    assert plugin.CALLS == ["lanes"] * 3


def test_only_the_options_that_are_passed_reach_it(plugin):
    tensor = from_scipy(MATRIX).asformat("lanes")
    dense = np.ones((3, 2), np.float32)
    gs.sddmm(tensor, dense, dense)
    gs.sddmm(tensor, dense, dense, out=np.ones((3, 3), np.float32))
    assert plugin.CALLS == ["no out", "out"]
    with pytest.raises(TypeError, match="target"):
        gs.sddmm(tensor, dense, dense, target="generic-cpu")


def test_an_operator_that_the_format_lacks_converts_it_to_csr(plugin):
    tensor = from_scipy(MATRIX).asformat("lanes")
    vector = np.ones(3, np.float32)
    np.testing.assert_array_equal(gs.spmv(tensor, vector), spmv(MATRIX, vector))
    assert plugin.CALLS == []


def test_bind_is_that_of_the_function_of_the_format(plugin, monkeypatch):
    tensor, dense = from_scipy(MATRIX).asformat("lanes"), np.ones((3, 2), np.float32)
    with pytest.raises(ArgumentError, match=r"'spmm' .* 'lanes' cannot be bound") as caught:
        gs.spmm.bind(tensor, dense, out=np.zeros((3, 2), np.float32))
    assert caught.value.code == "operator.bind"
    passed_options = {}

    def bind(A, B, *, out, **options):
        passed_options.update(options)
        return lambda: np.copyto(out, A.toarray() @ B)

    monkeypatch.setattr(plugin.spmm, "bind", bind, raising=False)
    out = np.zeros((3, 2), np.float32)
    gs.spmm.bind(tensor, dense, out=out, target="generic-cpu")()
    np.testing.assert_array_equal(out, MATRIX.toarray() @ dense)
    assert passed_options == {"target": "generic-cpu"}


def test_an_operator_of_the_library_is_not_replaced(plugin):
    gs.spmv.forget()
    owners = r"gossamer, lanes-of-others\. \[plugin\.duplicate\]"
    with pytest.raises(PluginError, match=rf"install the operator 'csr\.spmv': {owners}"):
        gs.spmv(from_scipy(MATRIX), np.ones(3, np.float32))
