"""The nodes that are lowered to instructions of Arm SME."""

from __future__ import annotations

from functools import partial

from gossamer_ir.nodes import Allocate, For, Load, Store
from gossamer_llvm.emitter.function_emitter import TargetLowering
from gossamer_llvm.targets.sme.outer_products import emit_outer_products
from gossamer_llvm.targets.sme.streaming import streaming_forms
from gossamer_llvm.targets.sme.tiles import emit_fragment, emit_row_load, emit_row_store
from gossamer_support.typed_calls import typed


@typed
def sme_lowering(*, attributes: tuple[str, ...]) -> TargetLowering:
    """Return the lowering for a CPU with SME; `attributes` are those of functions in streaming mode.

    >>> For in sme_lowering(attributes=("vscale_range(1,16)",)).stmts
    True
    """
    return TargetLowering(
        exprs={Load: emit_row_load},
        stmts={Allocate: emit_fragment, For: emit_outer_products, Store: emit_row_store},
        forms=partial(streaming_forms, attributes=attributes),
    )
