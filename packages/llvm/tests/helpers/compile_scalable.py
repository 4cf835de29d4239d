"""Compiles texts of LLVM IR with scalable vectors, each in a process of its own: where LLVM cannot lower an
operation on them, it ends the process.

Reads a target and a list of texts as JSON, and writes a list with the assembly of each text, None where the
process ended.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile

import llvmlite.binding as llvm

from gossamer_llvm.optimization import optimize, parse


def assembly(text: str, triple: str, features: str) -> str:
    target = llvm.Target.from_triple(triple)
    machine = target.create_target_machine(features=features, opt=2)
    # As the backends do: other passes would remove stores that later ones overwrite.
    module = parse(text)
    optimize(module, machine)
    return machine.emit_assembly(module)


def in_a_process(text: str, triple: str, features: str) -> str | None:
    with tempfile.TemporaryFile("w+") as file:
        child = os.fork()
        if not child:
            try:
                file.write(assembly(text, triple, features))
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
    request = json.load(sys.stdin)
    target = (request["triple"], request["features"])
    json.dump([in_a_process(text, *target) for text in request["texts"]], sys.stdout)
