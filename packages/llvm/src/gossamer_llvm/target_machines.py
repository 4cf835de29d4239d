"""LLVM's target machines for any architecture, on any machine."""

from __future__ import annotations

from functools import cache

import llvmlite.binding as llvm


@cache
def cross_target_machine(
    triple: str, *, cpu: str, features: str, calling_convention: str = ""
) -> llvm.TargetMachine:
    """Return a target machine for position-independent code of `-O2`, which can be both exported and loaded.

    `cpu`, `features` (as in `+v,+zvl256b`) and the calling convention have LLVM's names. The host runtime has
    one for the CPU of this machine, for which LLVM initializes fewer code generators.

    >>> machine = cross_target_machine("aarch64-unknown-linux-gnu", cpu="generic", features="+sve")
    >>> machine.triple
    'aarch64-unknown-linux-gnu'
    """
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    return llvm.Target.from_triple(triple).create_target_machine(
        cpu=cpu,
        features=features,
        opt=2,
        reloc="pic",
        codemodel="default",
        abiname=calling_convention,
    )
