"""Names in exported headers: any identifier that C can spell."""

import pytest
from exported_kernels import artifact

from gossamer_backend.export.symbol import symbol_for
from gossamer_ir.errors import ArgumentError


@pytest.mark.parametrize("name", ["my_kernel", "K2", "_k", "x" * 200])
def test_a_name_may_be_any_identifier(name):
    assert symbol_for(artifact(), name) == name


@pytest.mark.parametrize(
    "name",
    [
        "a-b",
        "2k",
        "a b",
        "int",
        "class",
        "main",
        "é",
        "__k",
        "_K",
        "x" * 201,
        "gossamer_workspace",
        3,
    ],
)
def test_a_name_that_c_has_no_room_for_is_refused(name):
    with pytest.raises(ArgumentError) as caught:
        symbol_for(artifact(), name)
    assert caught.value.code == "export.name"
