"""From the text of LLVM IR to an optimized module: the passes between emission and code generation.

Backends that compile with LLVM share this module. Only it and `target_machines` import LLVM here. The passes
were chosen by measurement (`benchmarks/codegen_time.py`), and do what the emitter leaves undone.
Others seldom find anything: code generation does strength reduction of address computations itself, and the
emitter rotates loops and shares equal computations. (NewGVN would find a few more, but it aborts the process
on some large functions, where LLVM's assertion that it converges fails.)
"""

from __future__ import annotations

import llvmlite.binding as llvm

from gossamer_ir.errors import InternalError


def parse(text: str) -> llvm.ModuleRef:
    """Parse and verify LLVM IR; if LLVM refuses it, the emitter has a bug."""
    try:
        module = llvm.parse_assembly(text)
        module.verify()
    except RuntimeError as error:
        raise InternalError(f"LLVM refuses the emitted text: {error}") from error
    return module


def optimize(module: llvm.ModuleRef, machine: llvm.TargetMachine) -> None:
    """Promote stack slots to registers, fold operations, and simplify the control flow."""
    options = llvm.create_pipeline_tuning_options(speed_level=2)
    # The schedule has chosen the vectors already.
    options.loop_vectorization = False
    options.slp_vectorization = False
    builder = llvm.create_pass_builder(machine, options)
    # For the whole module: the analyses are set up once, not for each function.
    passes = llvm.create_new_module_pass_manager()
    # First: instructions can be combined only once local buffers are registers.
    passes.add_sroa_pass()
    passes.add_instruction_combine_pass()
    passes.add_simplify_cfg_pass()
    passes.run(module, builder)
