"""The nodes that are lowered to instructions of AVX-512."""

from __future__ import annotations

from gossamer_ir.nodes import Load
from gossamer_llvm.emitter.function_emitter import TargetLowering
from gossamer_llvm.targets.avx512.register_tables import emit_permuted_load
from gossamer_support.typed_calls import typed


@typed
def avx512_lowering() -> TargetLowering:
    """Return the lowering for a CPU with AVX-512.

    >>> [node.__name__ for node in avx512_lowering().exprs]
    ['Load']
    """
    return TargetLowering(exprs={Load: emit_permuted_load})
