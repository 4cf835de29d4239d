"""The contract of an operator, which is checked when one is defined: scripts that break it."""

from __future__ import annotations

import re

import pytest
from msgspec.structs import replace

from gossamer.operator_calls.operator import operator
from gossamer.operator_calls.operator_contract import require_operator_contract
from gossamer.operators import ALL_NAMES, operator_named
from gossamer.operators.spmm import PROGRAM
from gossamer_ir.errors import InternalError

NEW = replace(PROGRAM, parsed=None)
BROKEN = [
    (("indptr: T.handle", "offsets: T.handle"), ("(indptr,", "(offsets,"), "has no handle 'indptr'"),
    (("n: T.int64", "k: T.int64"), ("(n", "(k"), "has no int64 parameter 'n'; no call passes 'k'"),
    (("B = ", "D = "), ("B[", "D["), "has no buffer 'B'"),
    (("B = T.sp.match_buffer(b,", "B = T.sp.match_buffer(d,"), ("    b:", "    d:"),
     "names the handle of 'B' 'd', not 'b'"),
    (("J", "P"), ("P_detach", "J_detach"), "has no axis 'J'"),
    (("compressed_varied(I, (n, nnz), (indptr, indices), \"int32\", sorted=False, unique=False)",
      "dense_varied(I, (n, nnz), indptr, \"int32\")"), ("", ""),
     "does not read 'indices' by the axis I or J"),
]  # fmt: skip


@pytest.mark.parametrize(("first", "second", "wrong"), BROKEN)
def test_what_a_script_does_not_declare_is_named(first, second, wrong):
    broken = replace(NEW, script=NEW.script.replace(*first).replace(*second))
    with pytest.raises(InternalError, match=re.escape(wrong)):
        operator(broken, lambda: None)


def test_a_size_that_is_not_declared_is_named():
    with pytest.raises(
        InternalError, match="has no int64 parameter 'width'; no call passes 'feat_size'"
    ):
        operator(replace(NEW, features="width"), lambda: None)


def test_a_program_that_ignores_values_needs_no_handle_for_them():
    script = NEW.script.replace("    a: T.handle,\n", "").replace(
        "match_buffer(a,", "match_buffer(b,"
    )
    with pytest.raises(InternalError, match="has no handle 'a'"):
        require_operator_contract(replace(NEW, script=script))
    require_operator_contract(replace(NEW, script=script, values=None, buffers=("B", "C")))


@pytest.mark.parametrize("name", ALL_NAMES)
def test_all_operators_keep_the_contract(name):
    program = operator_named(name).program
    for each in (program, *dict(program.special or ()).values()):
        require_operator_contract(each)
