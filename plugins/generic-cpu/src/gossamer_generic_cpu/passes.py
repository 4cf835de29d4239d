"""The passes between emission and code generation, picked by measuring (`python -m
gossamer_generic_cpu.timing`): what the emitter leaves undone, and nothing that only tries."""

from __future__ import annotations

import llvmlite.binding as llvm


def optimize(module: llvm.ModuleRef, machine: llvm.TargetMachine) -> None:
    """Registers for stack slots, one copy of equal computations, cheap addresses in loops."""
    options = llvm.create_pipeline_tuning_options(speed_level=2)
    options.loop_vectorization = False
    options.slp_vectorization = False
    builder = llvm.create_pass_builder(machine, options)
    passes = llvm.create_new_function_pass_manager()
    passes.add_sroa_pass()
    passes.add_instruction_combine_pass()
    passes.add_simplify_cfg_pass()
    passes.add_new_gvn_pass()
    passes.add_instruction_combine_pass()
    passes.add_simplify_cfg_pass()
    passes.add_loop_strength_reduce_pass()
    for function in module.functions:
        if not function.is_declaration:
            passes.run(function, builder)
