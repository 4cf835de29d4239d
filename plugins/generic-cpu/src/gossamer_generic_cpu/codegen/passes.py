"""The passes between emission and code generation, picked by measuring (`benchmarks/compile_time.py`):
what the emitter leaves undone, and nothing that only tries. Code generation reduces the strength of
address computations itself, and the emitter writes loops in the rotated form and equal computations
once. (NewGVN, which would find a few more, aborts the process on some large functions: LLVM asserts that
it converges.)"""

from __future__ import annotations

import llvmlite.binding as llvm


def optimize(module: llvm.ModuleRef, machine: llvm.TargetMachine) -> None:
    """Registers for stack slots, folded operations, no needless blocks."""
    options = llvm.create_pipeline_tuning_options(speed_level=2)
    options.loop_vectorization = False
    options.slp_vectorization = False
    builder = llvm.create_pass_builder(machine, options)
    passes = llvm.create_new_function_pass_manager()
    passes.add_sroa_pass()
    passes.add_instruction_combine_pass()
    passes.add_simplify_cfg_pass()
    for function in module.functions:
        if not function.is_declaration:
            passes.run(function, builder)
