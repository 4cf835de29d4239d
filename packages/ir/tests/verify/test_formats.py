"""The verifier of descriptions of formats."""

import pytest
from verified_modules import AXES

from gossamer_ir.core.build import ZERO, index_var
from gossamer_ir.nodes import Cast, Distinct, FormatDescription, IndexMap, Load, Param, SparseBuffer
from gossamer_ir.verify.formats import diagnostics_of_format

FORMAT = FormatDescription(
    "csr",
    (Param("indptr", "handle"), Param("indices", "handle"), Param("n", "int64")),
    AXES,
    SparseBuffer("A", ("I", "J"), "float32"),
)


def test_a_right_format_passes():
    assert diagnostics_of_format(FORMAT) == ()


FORMATS = {
    "a map of other rank": (
        FormatDescription("csr", FORMAT.params, AXES, FORMAT.buffer, map=IndexMap(("i",), (ZERO,))),
        "verify.format.map",
    ),
    "a shape of other rank": (
        FormatDescription(
            "csr", FORMAT.params, AXES, FORMAT.buffer, map=IndexMap(("i", "j"), (ZERO,)), shape=(ZERO, ZERO)
        ),
        "verify.format.shape",
    ),
    "a shape without a map": (
        FormatDescription("csr", FORMAT.params, AXES, FORMAT.buffer, shape=(ZERO,)), "verify.format.shape"
    ),
    "a fact about an axis": (
        FormatDescription("csr", FORMAT.params, AXES, FORMAT.buffer, facts=(Distinct("J_indices"),)),
        "verify.format.fact",
    ),
    "a map by an unknown array": (
        FormatDescription(
            "csr", FORMAT.params, AXES, FORMAT.buffer,
            map=IndexMap(("i", "j"), (Cast("int64", Load("P", (index_var("i"),), "int32")),)),
        ),
        "verify.buffer.undefined",
    ),
    "a name that is none": (
        FormatDescription("a-b", FORMAT.params, AXES, FORMAT.buffer), "verify.name.identifier"
    ),
    "an axis without array": (
        FormatDescription("csr", FORMAT.params[1:], AXES, FORMAT.buffer), "verify.handle.undefined"
    ),
}  # fmt: skip


@pytest.mark.parametrize(("wrong", "code"), FORMATS.values(), ids=FORMATS)
def test_wrong_formats_are_refused(wrong, code):
    assert [diagnostic.code for diagnostic in diagnostics_of_format(wrong)] == [code]
