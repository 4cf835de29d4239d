"""Compiles texts of LLVM IR for AArch64 with SVE, each in a process of its own: where LLVM cannot lower an
operation on scalable vectors, it ends the process.

Reads a list of texts as JSON and writes a list with the assembly of each, None where the process ended.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile

import llvmlite.binding as llvm

TRIPLE = "aarch64-unknown-linux-gnu"


def assembly(text: str) -> str:
    module = llvm.parse_assembly(text)
    module.verify()
    target = llvm.Target.from_triple(TRIPLE)
    machine = target.create_target_machine(features="+sve", opt=2)
    builder = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=2))
    builder.getModulePassManager().run(module, builder)
    return machine.emit_assembly(module)


def in_a_process(text: str) -> str | None:
    with tempfile.TemporaryFile("w+") as file:
        child = os.fork()
        if not child:
            try:
                file.write(assembly(text))
                file.flush()
                os._exit(0)
            finally:
                os._exit(1)
        _, status = os.waitpid(child, 0)
        file.seek(0)
        return None if status else file.read()


if __name__ == "__main__":
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    json.dump([in_a_process(text) for text in json.load(sys.stdin)], sys.stdout)
