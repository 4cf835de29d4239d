"""LLVM for one CPU: its triple, its target machine, its data layout."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import llvmlite.binding as llvm

CODEGEN_LEVEL = 2


@dataclass(frozen=True)
class Cpu:
    """A CPU as LLVM names it: `features` as in `+avx2,-avx512f`, `required` those that a machine
    must have to run the code."""

    name: str
    features: str
    required: frozenset[str]


@cache
def initialize() -> None:
    """Makes LLVM's native code generator available; any number of calls."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()


def triple() -> str:
    """The triple of this process."""
    return str(llvm.get_process_triple())


def architecture() -> str:
    """The first part of the triple: `x86_64`, `aarch64`, ..."""
    return triple().partition("-")[0]


@cache
def target_machine(cpu: Cpu) -> llvm.TargetMachine:
    """Generates position-independent code, so that an object can be exported as well as loaded."""
    initialize()
    target = llvm.Target.from_triple(triple())
    return target.create_target_machine(
        cpu=cpu.name, features=cpu.features, opt=CODEGEN_LEVEL, reloc="pic", codemodel="default"
    )


@cache
def data_layout(cpu: Cpu) -> str:
    """The layout that a module for this CPU must state."""
    return str(target_machine(cpu).target_data)
