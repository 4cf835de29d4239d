"""Loops that stand for instructions of a warp."""

import pytest
from msgspec.structs import replace

from gossamer_ir.core.build import ZERO
from gossamer_ir.errors import UnsupportedError
from gossamer_ir.nodes import Load, Store
from gossamer_llvm import (
    FieldLoad,
    TargetInfo,
    WarpLoad,
    WarpProduct,
    emit_llvm_ir,
    nvptx_lowering,
    warp_instruction_of,
    warp_loop,
)

STORE = Store("X", (ZERO,), Load("X", (ZERO,), "float32"))
PRODUCT = WarpProduct(
    intrinsic="llvm.f",
    operand_type="i32",
    a_registers=4,
    b_registers=2,
    operand_bits=8,
    selector=1,
)


@pytest.mark.parametrize(
    "instruction",
    [PRODUCT, WarpLoad(count=4, is_transposed=True), FieldLoad(field_bits=4, mask=1, scale=10)],
)
def test_a_loop_has_all_fields_of_an_instruction(instruction):
    assert warp_instruction_of(warp_loop("i", instruction, (STORE,))) == instruction


@pytest.mark.parametrize(
    "annotations",
    [
        (("warp_instruction", "other"),),
        (("warp_instruction", "load"),),
        (("warp_instruction", "load"), ("count", 3)),
        (("warp_instruction", "field_load"), ("field_bits", 3), ("mask", 1)),
        (("warp_instruction", "product"), ("intrinsic", 1)),
    ],
    ids=["kind", "missing", "count", "bits", "type"],
)
def test_annotations_that_describe_no_instruction_are_refused(module, annotations):
    loop = replace(warp_loop("i", PRODUCT, (STORE,)), annotations=annotations)
    target_info = TargetInfo("nvptx64-nvidia-cuda", is_device=True)
    with pytest.raises(UnsupportedError, match="annotations of loop 'i'") as caught:
        emit_llvm_ir(
            module(loop), target_info=target_info, lowering=nvptx_lowering(has_async_copies=False)
        )
    assert caught.value.code == "llvm.warp_instruction"
